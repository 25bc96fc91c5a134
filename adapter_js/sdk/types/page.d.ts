/**
 * A value that the page's own scripts have left on `window`.
 *
 * @example
 * const token = getPageGlobal("APP.session.token");
 *
 * @template [T=unknown]
 * @param {string} path names joined by dots
 * @returns {T | undefined} undefined when any step is missing, throws, or is one of `__proto__`,
 *   `constructor` and `prototype`
 */
export declare function getPageGlobal<T = unknown>(path: string): T | undefined;
/**
 * The page's URL as it is now.
 *
 * @returns {string}
 */
export declare function getCurrentUrl(): string;
/**
 * The page's title as it is now.
 *
 * @returns {string}
 */
export declare function getPageTitle(): string;
