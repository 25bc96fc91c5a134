import { log } from "./log.js";
export type PreScriptContext = {
    /**
     *   keeps a value for the tools, which read it with `getPreScriptValue(key)`
     */
    set: (key: string, value: unknown) => void;
    log: typeof log;
};
/**
 * What a pre-script is given.
 *
 * @typedef {object} PreScriptContext
 * @property {(key: string, value: unknown) => void} set
 *   keeps a value for the tools, which read it with `getPreScriptValue(key)`
 * @property {typeof log} log
 */
/**
 * Runs a function at the start of the document, before any script of the page: it can see what the
 * page later hides. The document is still empty. What it throws is logged.
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
 * What the plugin's pre-script has kept.
 *
 * @template [T=unknown]
 * @param {string} key
 * @returns {T | undefined}
 */
export declare function getPreScriptValue<T = unknown>(key: string): T | undefined;
