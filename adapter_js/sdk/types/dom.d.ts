export type WaitForSelectorOptions = {
    /**
     * ms; default 10,000; `Infinity` for none
     */
    timeout?: number | undefined;
    signal?: AbortSignal | null | undefined;
    /**
     * whether it has to be rendered, too; default false
     */
    visible?: boolean | undefined;
};
/**
 * @typedef {object} WaitForSelectorOptions
 * @property {number | undefined} [timeout] ms; default 10,000; `Infinity` for none
 * @property {AbortSignal | null | undefined} [signal]
 * @property {boolean | undefined} [visible] whether it has to be rendered, too; default false
 */
/**
 * Waits for an element.
 *
 * @template {Element} [T=Element]
 * @param {string} selector
 * @param {WaitForSelectorOptions} [options]
 * @returns {Promise<T>} the first that matches; rejects with a `ToolError` TIMEOUT, or with the
 *   signal's reason
 */
export declare function waitForSelector<T extends Element = Element>(selector: string, { visible, ...options }?: WaitForSelectorOptions): Promise<T>;
/**
 * Waits until no element matches.
 *
 * @param {string} selector
 * @param {Omit<WaitForSelectorOptions, "visible">} [options]
 * @returns {Promise<void>} rejects with a `ToolError` TIMEOUT, or with the signal's reason
 */
export declare function waitForSelectorRemoval(selector: string, options?: Omit<WaitForSelectorOptions, "visible">): Promise<void>;
/**
 * All elements that match, as an array.
 *
 * @template {Element} [T=Element]
 * @param {string} selector
 * @returns {T[]}
 */
export declare function querySelectorAll<T extends Element = Element>(selector: string): T[];
/**
 * The text of the first element that matches, without the space around it.
 *
 * @param {string} selector
 * @returns {string | null} null when none matches
 */
export declare function getTextContent(selector: string): string | null;
/**
 * The content of `<meta name="…">` or `<meta property="…">`.
 *
 * @param {string} name
 * @returns {string | null}
 */
export declare function getMetaContent(name: string): string | null;
/**
 * Calls back on changes below an element. What the callback throws is logged.
 *
 * @param {string | Node} target a selector takes the first that matches
 * @param {(mutations: MutationRecord[], observer: MutationObserver) => unknown} callback
 * @param {MutationObserverInit} [options] default: added and removed nodes, at any depth
 * @returns {() => void} stops it; call it in `teardown`, at the latest
 * @throws {ToolError} NOT_FOUND when nothing matches
 */
export declare function observeDOM(target: string | Node, callback: (mutations: MutationRecord[], observer: MutationObserver) => unknown, options?: MutationObserverInit): () => void;
