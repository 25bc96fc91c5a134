import { registry, setEntry } from "./registry.js";

// The cache is the page's as much as the plugin's: it lasts as long as the document, beyond a new
// version of the plugin, and any script of the page can read it.

/**
 * What was cached for a namespace in this document: a token that was costly to find, say.
 *
 * @template [T=unknown]
 * @param {string} namespace the plugin's name, usually
 * @returns {T | null}
 */
export function getAuthCache(namespace) {
  const cache = registry().tokenCache ?? {};
  return Object.hasOwn(cache, namespace) ? /** @type {T} */ (cache[namespace] ?? null) : null;
}

/**
 * Keeps a value until the document goes, a new version of the plugin notwithstanding.
 *
 * @param {string} namespace
 * @param {unknown} value
 */
export function setAuthCache(namespace, value) {
  setEntry("tokenCache", namespace, value);
}

/**
 * Forgets it, when the site has refused the token, say.
 *
 * @param {string} namespace
 */
export function clearAuthCache(namespace) {
  setEntry("tokenCache", namespace, undefined);
}
