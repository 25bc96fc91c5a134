import { PLUGIN } from "./identity.js";
import { log } from "./log.js";
import { registry, setEntry } from "./registry.js";

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
export function definePreScript(run) {
  /** @type {PreScriptContext["set"]} */
  const set = (key, value) => {
    setEntry("preScript", PLUGIN, { ...registry().preScript?.[PLUGIN], [key]: value });
  };
  const complain = (/** @type {unknown} */ error) => log.error("The pre-script failed", error);
  try {
    Promise.resolve(run({ set, log })).catch(complain);
  } catch (error) {
    complain(error);
  }
}

/**
 * Returns a value that the plugin's pre-script has stored.
 *
 * @template [T=unknown]
 * @param {string} key
 * @returns {T | undefined}
 */
export function getPreScriptValue(key) {
  const values = registry().preScript?.[PLUGIN] ?? {};
  return Object.hasOwn(values, key) ? /** @type {T} */ (values[key]) : undefined;
}
