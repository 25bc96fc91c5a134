export type WaitForSelectorOptions = {
    /**
     * ms; default 10,000; `Infinity` for none
     */
    timeout?: number | undefined;
    signal?: AbortSignal | null | undefined;
    /**
     * whether it must also be rendered; default false
     */
    visible?: boolean | undefined;
};
/**
 * @typedef {object} WaitForSelectorOptions
 * @property {number | undefined} [timeout] ms; default 10,000; `Infinity` for none
 * @property {AbortSignal | null | undefined} [signal]
 * @property {boolean | undefined} [visible] whether it must also be rendered; default false
 */
/**
 * Waits until an element matches a selector.
 *
 * @template {Element} [T=Element]
 * @param {string} selector
 * @param {WaitForSelectorOptions} [options]
 * @returns {Promise<T>} the first match; rejects with a `ToolError` TIMEOUT, or with the
 *   signal's reason
 */
export declare function waitForSelector<T extends Element = Element>(selector: string, { visible, ...options }?: WaitForSelectorOptions): Promise<T>;
/**
 * Waits until no element matches a selector.
 *
 * @param {string} selector
 * @param {Omit<WaitForSelectorOptions, "visible">} [options]
 * @returns {Promise<void>} rejects with a `ToolError` TIMEOUT, or with the signal's reason
 */
export declare function waitForSelectorRemoval(selector: string, options?: Omit<WaitForSelectorOptions, "visible">): Promise<void>;
/**
 * Returns all matching elements as an array.
 *
 * @template {Element} [T=Element]
 * @param {string} selector
 * @returns {T[]}
 */
export declare function querySelectorAll<T extends Element = Element>(selector: string): T[];
/**
 * Returns the trimmed text of the first matching element.
 *
 * @param {string} selector
 * @returns {string | null} null if none matches
 */
export declare function getTextContent(selector: string): string | null;
/**
 * Returns the content of `<meta name="…">` or `<meta property="…">`.
 *
 * @param {string} name
 * @returns {string | null}
 */
export declare function getMetaContent(name: string): string | null;
/**
 * Calls a function when the DOM below an element changes. Errors of the function are logged.
 *
 * @param {string | Node} target a node, or a selector for the first match
 * @param {(mutations: MutationRecord[], observer: MutationObserver) => unknown} callback
 * @param {MutationObserverInit} [options] default: added and removed nodes, at any depth
 * @returns {() => void} stops observing; call it in `teardown` at the latest
 * @throws {ToolError} NOT_FOUND if nothing matches
 */
export declare function observeDOM(target: string | Node, callback: (mutations: MutationRecord[], observer: MutationObserver) => unknown, options?: MutationObserverInit): () => void;
