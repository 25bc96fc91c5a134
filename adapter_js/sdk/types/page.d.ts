/**
 * Returns a value that the page's own scripts have set on `window`.
 *
 * @example
 * const token = getPageGlobal("APP.session.token");
 *
 * @template [T=unknown]
 * @param {string} path names joined by dots
 * @returns {T | undefined} undefined if any step is missing, throws, or is one of `__proto__`,
 *   `constructor` and `prototype`
 */
export declare function getPageGlobal<T = unknown>(path: string): T | undefined;
/**
 * Returns the page's current URL.
 *
 * @returns {string}
 */
export declare function getCurrentUrl(): string;
/**
 * Returns the page's current title.
 *
 * @returns {string}
 */
export declare function getPageTitle(): string;
