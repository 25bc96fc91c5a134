/**
 * What was cached for a namespace in this document: a token that was costly to find, say.
 *
 * @template [T=unknown]
 * @param {string} namespace the plugin's name, usually
 * @returns {T | null}
 */
export declare function getAuthCache<T = unknown>(namespace: string): T | null;
/**
 * Keeps a value until the document goes, a new version of the plugin notwithstanding.
 *
 * @param {string} namespace
 * @param {unknown} value
 */
export declare function setAuthCache(namespace: string, value: unknown): void;
/**
 * Forgets it, when the site has refused the token, say.
 *
 * @param {string} namespace
 */
export declare function clearAuthCache(namespace: string): void;
