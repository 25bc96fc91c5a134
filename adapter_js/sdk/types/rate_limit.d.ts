/**
 * How long to wait, of a `Retry-After` header: whole or broken seconds, or an HTTP-date.
 *
 * @param {string | null | undefined} value
 * @returns {number | undefined} ms from now, never negative; undefined when it says nothing
 */
export declare function parseRetryAfterMs(value: string | null | undefined): number | undefined;
export type RateLimit = {
    /**
     * how many requests a window has
     */
    limit?: number;
    /**
     * how many are left of it
     */
    remaining?: number;
    /**
     * ms from now until the window ends
     */
    resetMs?: number;
};
/**
 * @typedef {object} RateLimit
 * @property {number} [limit] how many requests a window has
 * @property {number} [remaining] how many are left of it
 * @property {number} [resetMs] ms from now until the window ends
 */
/**
 * What a site says about its rate limit: `RateLimit-*`, `X-RateLimit-*` or `X-Rate-Limit-*` with
 * `Limit`, `Remaining` and `Reset` (seconds from now, seconds or milliseconds since 1970, or a
 * date), or the one header of the later drafts, as in `RateLimit: "default";r=50;t=30`.
 *
 * @param {Headers | {headers: Headers}} source headers, or what has some, such as a `Response`
 * @returns {RateLimit} `{}` when the site says nothing
 */
export declare function parseRateLimitHeader(source: Headers | {
    headers: Headers;
}): RateLimit;
