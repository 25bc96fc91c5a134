import { log } from "./log.js";
export type PreScriptContext = {
    /**
     *   stores a value for the tools, which read it with `getPreScriptValue(key)`
     */
    set: (key: string, value: unknown) => void;
    log: typeof log;
};
/**
 * The argument of a pre-script.
 *
 * @typedef {object} PreScriptContext
 * @property {(key: string, value: unknown) => void} set
 *   stores a value for the tools, which read it with `getPreScriptValue(key)`
 * @property {typeof log} log
 */
/**
 * Runs a function at the start of the document, before any script of the page, so it can see what
 * the page hides later. The document is still empty. Errors are logged.
 *
 * @example
 * definePreScript(({ set }) => {
 *   const { fetch } = globalThis;
 *   globalThis.fetch = (url, init) => {
 *     const token = new Headers(init?.headers).get("authorization");
 *     if (token !== null) set("token", token);
 *     return fetch(url, init);
 *   };
 * });
 *
 * @param {(context: PreScriptContext) => unknown} run
 */
export declare function definePreScript(run: (context: PreScriptContext) => unknown): void;
/**
 * Returns a value that the plugin's pre-script has stored.
 *
 * @template [T=unknown]
 * @param {string} key
 * @returns {T | undefined}
 */
export declare function getPreScriptValue<T = unknown>(key: string): T | undefined;
