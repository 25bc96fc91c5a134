export const LONGEST = 2 ** 31 - 1; // ms; timers treat a longer delay as 1 ms

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
export function limit(ms, why, outer) {
  const controller = new AbortController();
  const timer = ms <= LONGEST ? setTimeout(() => controller.abort(why()), ms) : undefined;
  const signals = outer ? [outer, controller.signal] : [controller.signal];
  return { signal: AbortSignal.any(signals), clear: () => clearTimeout(timer) };
}

/**
 * Settles like `promise`, or rejects with the signal's reason if that fires first.
 *
 * @template T
 * @param {T | PromiseLike<T>} promise
 * @param {AbortSignal | null | undefined} signal
 * @returns {Promise<T>}
 */
export async function unlessAborted(promise, signal) {
  let stop = () => {};
  /** @type {Promise<never>} */
  const stopped = new Promise((_, reject) => {
    stop = () => reject(signal?.reason);
  });
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) {
    stop();
  }
  try {
    return await Promise.race([stopped, promise]);
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}
