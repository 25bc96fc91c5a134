/**
 * A cookie that scripts may read; one that is HttpOnly goes along with `fetchFromPage`, unread.
 *
 * @param {string} name
 * @returns {string | null} its value, decoded; null when there is none
 */
export declare function getCookie(name: string): string | null;
