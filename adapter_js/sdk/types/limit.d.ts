/**
 * A signal that fires when time is up, or when another does; its reason says which came first.
 *
 * @param {number} ms `Infinity` for no limit
 * @param {() => unknown} why gives the reason when time is up
 * @param {AbortSignal | null | undefined} outer
 * @returns {{signal: AbortSignal, clear: () => void}} `clear` stops the clock; `outer` stays
 */
export declare function limit(ms: number, why: () => unknown, outer: AbortSignal | null | undefined): {
    signal: AbortSignal;
    clear: () => void;
};
/**
 * What `promise` gives, or the signal's reason if that fires first.
 *
 * @template T
 * @param {T | PromiseLike<T>} promise
 * @param {AbortSignal | null | undefined} signal
 * @returns {Promise<T>}
 */
export declare function unlessAborted<T>(promise: T | PromiseLike<T>, signal: AbortSignal | null | undefined): Promise<T>;
