const LONGEST = 2 ** 31 - 1; // ms; what is longer, a timer takes for 1 ms

/**
 * A signal that fires when time is up, or when another does; its reason says which came first.
 *
 * @param {number} ms `Infinity` for no limit
 * @param {() => unknown} why gives the reason when time is up
 * @param {AbortSignal | null | undefined} outer
 * @returns {{signal: AbortSignal, clear: () => void}} `clear` stops the clock; `outer` stays
 */
export function limit(ms, why, outer) {
  const controller = new AbortController();
  const timer = ms <= LONGEST ? setTimeout(() => controller.abort(why()), ms) : undefined;
  const signals = outer ? [outer, controller.signal] : [controller.signal];
  return { signal: AbortSignal.any(signals), clear: () => clearTimeout(timer) };
}

/**
 * What `promise` gives, or the signal's reason if that fires first.
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
