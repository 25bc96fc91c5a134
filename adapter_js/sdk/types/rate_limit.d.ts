/**
 * Parses a `Retry-After` header: whole or fractional seconds, or an HTTP-date.
 *
 * @param {string | null | undefined} value
 * @returns {number | undefined} ms from now, never negative; undefined if it is not valid
 */
export declare function parseRetryAfterMs(value: string | null | undefined): number | undefined;
export type RateLimit = {
    /**
     * how many requests a window allows
     */
    limit?: number;
    /**
     * how many are left
     */
    remaining?: number;
    /**
     * ms from now until the window ends
     */
    resetMs?: number;
};
/**
 * @typedef {object} RateLimit
 * @property {number} [limit] how many requests a window allows
 * @property {number} [remaining] how many are left
 * @property {number} [resetMs] ms from now until the window ends
 */
/**
 * Reads a site's rate limit from `RateLimit-*`, `X-RateLimit-*` or `X-Rate-Limit-*` with
 * `Limit`, `Remaining` and `Reset` (seconds from now, seconds or milliseconds since 1970, or a
 * date), or from the single header of the later drafts, as in `RateLimit: "default";r=50;t=30`.
 *
 * @param {Headers | {headers: Headers}} source headers, or an object with headers, such as a
 *   `Response`
 * @returns {RateLimit} `{}` if there are no such headers
 */
export declare function parseRateLimitHeader(source: Headers | {
    headers: Headers;
}): RateLimit;
