/** @typedef {"localStorage" | "sessionStorage"} Area */
export type Area = "localStorage" | "sessionStorage";
/**
 * @param {string} key
 * @returns {string | null} null when there is none, or the page has no storage
 */
export declare function getLocalStorage(key: string): string | null;
/**
 * @param {string} key
 * @param {string} value
 * @returns {boolean} whether it is stored
 */
export declare function setLocalStorage(key: string, value: string): boolean;
/**
 * @param {string} key
 * @returns {boolean} whether it is not, or no longer, stored
 */
export declare function removeLocalStorage(key: string): boolean;
/**
 * @param {string} key
 * @returns {string | null} null when there is none, or the page has no storage
 */
export declare function getSessionStorage(key: string): string | null;
/**
 * @param {string} key
 * @param {string} value
 * @returns {boolean} whether it is stored
 */
export declare function setSessionStorage(key: string, value: string): boolean;
/**
 * @param {string} key
 * @returns {boolean} whether it is not, or no longer, stored
 */
export declare function removeSessionStorage(key: string): boolean;
/**
 * Finds the first matching entry of `localStorage`, for keys that contain an id or a hash.
 *
 * @param {(key: string, value: string) => unknown} predicate its exceptions are passed on
 * @returns {{key: string, value: string} | null}
 */
export declare function findLocalStorageEntry(predicate: (key: string, value: string) => unknown): {
    key: string;
    value: string;
} | null;
