/**
 * Returns a cookie that scripts can read. HttpOnly cookies cannot be read, but `fetchFromPage`
 * sends them.
 *
 * @param {string} name
 * @returns {string | null} the decoded value; null if there is none
 */
export declare function getCookie(name: string): string | null;
