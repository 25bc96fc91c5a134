import { ToolError } from "./errors.js";
import { LONGEST, limit, throwIfAborted, unlessAborted } from "./limit.js";

// In a hidden tab, timers run once a second, and after five minutes once a minute.

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
export async function sleep(ms, { signal } = {}) {
  throwIfAborted(signal);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const elapsed = new Promise((resolve) => {
    /** @param {number} left */
    const wait = (left) => {
      const next = Math.min(left, LONGEST);
      timer = setTimeout(() => (left > next ? wait(left - next) : resolve(undefined)), next);
    };
    if (ms !== Number.POSITIVE_INFINITY) {
      wait(ms);
    }
  });
  try {
    await unlessAborted(elapsed, signal);
  } finally {
    clearTimeout(timer);
  }
}

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
export async function waitUntil(predicate, options = {}) {
  const { interval = 200, timeout = 10_000, signal } = options;
  throwIfAborted(signal);
  const tooLate = () => ToolError.timeout(`The condition did not hold within ${timeout} ms.`);
  const bound = limit(timeout, tooLate, signal);
  try {
    while (!(await unlessAborted(predicate(), bound.signal))) {
      await sleep(interval, { signal: bound.signal });
    }
  } finally {
    bound.clear();
  }
}

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
export async function retry(run, options = {}) {
  const { maxAttempts = 3, delay = 1000, maxDelay = 30_000, signal } = options;
  const { backoff = true, shouldRetry = isRetryable } = options;
  const factor = typeof backoff === "number" ? backoff : backoff ? 2 : 1;
  for (let attempt = 1; ; attempt++) {
    throwIfAborted(signal);
    try {
      return await unlessAborted(run(attempt), signal);
    } catch (error) {
      signal?.throwIfAborted(); // its stack has this place already
      const wait = askedWait(error) ?? Math.min(delay * factor ** (attempt - 1), maxDelay);
      if (attempt >= maxAttempts || wait > maxDelay || !shouldRetry(error, attempt)) {
        throw error;
      }
      await sleep(wait, { signal });
    }
  }
}

/**
 * @param {unknown} error
 * @returns {number | undefined} the error's `retryAfterMs`; undefined unless it is a valid time (a
 *   header that is not a number gives NaN, for example)
 */
function askedWait(error) {
  const asked = /** @type {{retryAfterMs?: unknown} | undefined} */ (error)?.retryAfterMs;
  return typeof asked === "number" && asked >= 0 ? asked : undefined;
}

/** @param {unknown} error */
function isRetryable(error) {
  return /** @type {{retryable?: unknown} | undefined} */ (error)?.retryable !== false;
}
