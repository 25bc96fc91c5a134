import { ToolError } from "./errors.js";

export const LONGEST = 2 ** 31 - 1; // ms; timers treat a longer delay as 1 ms
const STACK_MAX = 8000; // characters; a tool that catches the reason may wait again, and again
const FRAMES = /(\n {4}at .*)+$/; // of a stack
/** @type {WeakSet<object>} the errors that `placeHere` has placed */
const placed = new WeakSet();

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
  } catch (error) {
    if (error === signal?.reason) {
      placeHere(error);
    }
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/**
 * Throws the signal's reason if it has fired.
 *
 * @param {AbortSignal | null | undefined} signal
 */
export function throwIfAborted(signal) {
  if (signal?.aborted) {
    placeHere(signal.reason);
    throw signal.reason;
  }
}

/**
 * Lets the stack of a signal's reason show where the tool waited, instead of the timer, or the
 * cancellation, that made the error. If it ends a wait within another, which V8 does not connect, the
 * frames of the other follow.
 *
 * @param {unknown} reason
 */
function placeHere(reason) {
  const isOurs = reason instanceof DOMException || reason instanceof ToolError;
  if (!isOurs || !Object.isExtensible(reason)) {
    return;
  }
  const within = placed.has(reason) ? String(reason.stack) : "";
  if (within.length > STACK_MAX) {
    return;
  }
  placed.add(reason);
  Error.captureStackTrace(reason, placeHere);
  if (within !== "") {
    reason.stack = within + (String(reason.stack).match(FRAMES)?.[0] ?? "");
  }
}
