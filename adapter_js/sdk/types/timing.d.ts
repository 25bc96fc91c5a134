export type SleepOptions = {
    signal?: AbortSignal | null | undefined;
};
/**
 * @typedef {object} SleepOptions
 * @property {AbortSignal | null | undefined} [signal]
 */
/**
 * Waits for some time.
 *
 * @param {number} ms `Infinity` to wait for the signal alone
 * @param {SleepOptions} [options]
 * @returns {Promise<void>} rejects with the signal's reason if that fires
 */
export declare function sleep(ms: number, { signal }?: SleepOptions): Promise<void>;
export type WaitUntilOptions = {
    /**
     * ms between checks; default 200
     */
    interval?: number | undefined;
    /**
     * ms; default 10,000; `Infinity` for none
     */
    timeout?: number | undefined;
    signal?: AbortSignal | null | undefined;
};
/**
 * @typedef {object} WaitUntilOptions
 * @property {number | undefined} [interval] ms between checks; default 200
 * @property {number | undefined} [timeout] ms; default 10,000; `Infinity` for none
 * @property {AbortSignal | null | undefined} [signal]
 */
/**
 * Waits until a condition holds. Checks it at once, and then at intervals.
 *
 * @param {() => unknown} predicate may be async; an exception ends the wait
 * @param {WaitUntilOptions} [options]
 * @returns {Promise<void>} rejects with a `ToolError` TIMEOUT, or with the signal's reason
 */
export declare function waitUntil(predicate: () => unknown, options?: WaitUntilOptions): Promise<void>;
export type RetryOptions = {
    /**
     * default 3
     */
    maxAttempts?: number | undefined;
    /**
     * ms before the second attempt; default 1000
     */
    delay?: number | undefined;
    /**
     * the factor between consecutive delays; default 2; `false` is 1
     */
    backoff?: number | boolean | undefined;
    /**
     * ms; default 30,000. An error that asks for a longer wait is thrown at once.
     */
    maxDelay?: number | undefined;
    signal?: AbortSignal | null | undefined;
    /**
     * default: every error except those with `retryable: false`, like most `ToolError`s
     */
    shouldRetry?: ((error: unknown, attempt: number) => boolean) | undefined;
};
/**
 * @typedef {object} RetryOptions
 * @property {number | undefined} [maxAttempts] default 3
 * @property {number | undefined} [delay] ms before the second attempt; default 1000
 * @property {number | boolean | undefined} [backoff]
 *   the factor between consecutive delays; default 2; `false` is 1
 * @property {number | undefined} [maxDelay]
 *   ms; default 30,000. An error that asks for a longer wait is thrown at once.
 * @property {AbortSignal | null | undefined} [signal]
 * @property {((error: unknown, attempt: number) => boolean) | undefined} [shouldRetry]
 *   default: every error except those with `retryable: false`, like most `ToolError`s
 */
/**
 * Calls a function until it succeeds, with growing delays in between. If an error has
 * `retryAfterMs`, waits that long instead.
 *
 * @template T
 * @param {(attempt: number) => T | PromiseLike<T>} run receives the number of the attempt, from 1
 * @param {RetryOptions} [options]
 * @returns {Promise<T>} rejects with the last error, or with the signal's reason
 */
export declare function retry<T>(run: (attempt: number) => T | PromiseLike<T>, options?: RetryOptions): Promise<T>;
