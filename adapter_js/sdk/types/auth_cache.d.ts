/**
 * Returns the cached value of a namespace in this document, such as a token that is expensive to
 * find.
 *
 * @template [T=unknown]
 * @param {string} namespace the plugin's name, usually
 * @returns {T | null}
 */
export declare function getAuthCache<T = unknown>(namespace: string): T | null;
/**
 * Caches a value for the lifetime of the document, even across new versions of the plugin.
 *
 * @param {string} namespace
 * @param {unknown} value
 */
export declare function setAuthCache(namespace: string, value: unknown): void;
/**
 * Clears the cached value, for example when the site has rejected the token.
 *
 * @param {string} namespace
 */
export declare function clearAuthCache(namespace: string): void;
