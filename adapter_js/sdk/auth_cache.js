import { registry, setEntry } from "./registry.js";

// The cache lives in the page: it lasts as long as the document, survives new versions of the
// plugin, and any script of the page can read it.

/**
 * Returns the cached value of a namespace in this document, such as a token that is expensive to
 * find.
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
 * Caches a value for the lifetime of the document, even across new versions of the plugin.
 *
 * @param {string} namespace
 * @param {unknown} value
 */
export function setAuthCache(namespace, value) {
  setEntry("tokenCache", namespace, value);
}

/**
 * Clears the cached value, for example when the site has rejected the token.
 *
 * @param {string} namespace
 */
export function clearAuthCache(namespace) {
  setEntry("tokenCache", namespace, undefined);
}
