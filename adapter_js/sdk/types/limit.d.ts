export declare const LONGEST: number;
/**
 * Creates a signal that fires when the time is up, or when another signal fires; its reason says
 * which came first.
 *
 * @param {number} ms `Infinity` for no limit
 * @param {() => unknown} why returns the reason if the time is up
 * @param {AbortSignal | null | undefined} outer
 * @returns {{signal: AbortSignal, clear: () => void}} `clear` stops the timer; `outer` stays
 *   connected
 */
export declare function limit(ms: number, why: () => unknown, outer: AbortSignal | null | undefined): {
    signal: AbortSignal;
    clear: () => void;
};
/**
 * Settles like `promise`, or rejects with the signal's reason if that fires first.
 *
 * @template T
 * @param {T | PromiseLike<T>} promise
 * @param {AbortSignal | null | undefined} signal
 * @returns {Promise<T>}
 */
export declare function unlessAborted<T>(promise: T | PromiseLike<T>, signal: AbortSignal | null | undefined): Promise<T>;
/**
 * Throws the signal's reason if it has fired.
 *
 * @param {AbortSignal | null | undefined} signal
 */
export declare function throwIfAborted(signal: AbortSignal | null | undefined): void;
