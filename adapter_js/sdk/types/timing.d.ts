export type SleepOptions = {
    signal?: AbortSignal | null | undefined;
};
/**
 * @typedef {object} SleepOptions
 * @property {AbortSignal | null | undefined} [signal]
 */
/**
 * Waits.
 *
 * @param {number} ms
 * @param {SleepOptions} [options]
 * @returns {Promise<void>} rejects with the signal's reason when that fires
 */
export declare function sleep(ms: number, { signal }?: SleepOptions): Promise<void>;
export type WaitUntilOptions = {
    /**
     * ms between two looks; default 200
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
 * @property {number | undefined} [interval] ms between two looks; default 200
 * @property {number | undefined} [timeout] ms; default 10,000; `Infinity` for none
 * @property {AbortSignal | null | undefined} [signal]
 */
/**
 * Waits until a condition holds. It is looked at once at the start, and then at intervals.
 *
 * @param {() => unknown} predicate may be async; what it throws ends the wait
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
     * by how much each delay is longer than the one before; default 2; `false` is 1
     */
    backoff?: number | boolean | undefined;
    /**
     * ms; default 30,000. An error that asks for a longer wait is thrown at once.
     */
    maxDelay?: number | undefined;
    signal?: AbortSignal | null | undefined;
    /**
     * default: all but an error that says `retryable: false`, as most of `ToolError`'s do
     */
    shouldRetry?: ((error: unknown, attempt: number) => boolean) | undefined;
};
/**
 * @typedef {object} RetryOptions
 * @property {number | undefined} [maxAttempts] default 3
 * @property {number | undefined} [delay] ms before the second attempt; default 1000
 * @property {number | boolean | undefined} [backoff]
 *   by how much each delay is longer than the one before; default 2; `false` is 1
 * @property {number | undefined} [maxDelay]
 *   ms; default 30,000. An error that asks for a longer wait is thrown at once.
 * @property {AbortSignal | null | undefined} [signal]
 * @property {((error: unknown, attempt: number) => boolean) | undefined} [shouldRetry]
 *   default: all but an error that says `retryable: false`, as most of `ToolError`'s do
 */
/**
 * Calls a function again while it fails, with growing delays in between. The `retryAfterMs` of an
 * error is waited for instead of the delay.
 *
 * @template T
 * @param {(attempt: number) => T | PromiseLike<T>} run is told which attempt this is, from 1 on
 * @param {RetryOptions} [options]
 * @returns {Promise<T>} rejects with the last error, or with the signal's reason
 */
export declare function retry<T>(run: (attempt: number) => T | PromiseLike<T>, options?: RetryOptions): Promise<T>;
