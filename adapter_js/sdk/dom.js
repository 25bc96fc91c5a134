import { ToolError } from "./errors.js";
import { limit, throwIfAborted, unlessAborted } from "./limit.js";
import { log } from "./log.js";

const POLL = 200; // ms; a state such as :checked, or what CSS shows, changes without a mutation
const ANY_CHANGE = { childList: true, subtree: true, attributes: true, characterData: true };

/**
 * @typedef {object} WaitForSelectorOptions
 * @property {number | undefined} [timeout] ms; default 10,000; `Infinity` for none
 * @property {AbortSignal | null | undefined} [signal]
 * @property {boolean | undefined} [visible] whether it must also be rendered; default false
 */

/**
 * Waits until an element matches a selector.
 *
 * @template {Element} [T=Element]
 * @param {string} selector
 * @param {WaitForSelectorOptions} [options]
 * @returns {Promise<T>} the first match; rejects with a `ToolError` TIMEOUT, or with the
 *   signal's reason
 */
export function waitForSelector(selector, { visible = false, ...options } = {}) {
  const what = `No ${visible ? "visible " : ""}element matched ${selector}`;
  return waitForDOM(what, options, () => {
    const found = /** @type {T[]} */ (querySelectorAll(selector));
    return visible ? found.find(isVisible) : found[0];
  });
}

/**
 * Waits until no element matches a selector.
 *
 * @param {string} selector
 * @param {Omit<WaitForSelectorOptions, "visible">} [options]
 * @returns {Promise<void>} rejects with a `ToolError` TIMEOUT, or with the signal's reason
 */
export async function waitForSelectorRemoval(selector, options = {}) {
  const isGone = () => document.querySelector(selector) === null || undefined;
  await waitForDOM(`An element still matched ${selector}`, options, isGone);
}

/**
 * @template T
 * @param {string} what did not happen
 * @param {Omit<WaitForSelectorOptions, "visible">} options
 * @param {() => T | undefined} look
 * @returns {Promise<T>}
 */
async function waitForDOM(what, { timeout = 10_000, signal }, look) {
  throwIfAborted(signal);
  const found = look();
  if (found !== undefined) {
    return found;
  }
  const bound = limit(timeout, () => ToolError.timeout(`${what} within ${timeout} ms.`), signal);
  /** @type {() => void} */
  let stop = () => {};
  /** @type {Promise<T>} */
  const change = new Promise((resolve) => {
    const lookAgain = () => {
      const value = look();
      if (value !== undefined) {
        resolve(value);
      }
    };
    const observer = new MutationObserver(lookAgain);
    observer.observe(document, ANY_CHANGE);
    const poll = setInterval(lookAgain, POLL);
    stop = () => {
      observer.disconnect();
      clearInterval(poll);
    };
  });
  try {
    return await unlessAborted(change, bound.signal);
  } finally {
    stop();
    bound.clear();
  }
}

/** @param {Element} element */
function isVisible(element) {
  return element.checkVisibility({ visibilityProperty: true, opacityProperty: false });
}

/**
 * Returns all matching elements as an array.
 *
 * @template {Element} [T=Element]
 * @param {string} selector
 * @returns {T[]}
 */
export function querySelectorAll(selector) {
  return [.../** @type {NodeListOf<T>} */ (document.querySelectorAll(selector))];
}

/**
 * Returns the trimmed text of the first matching element.
 *
 * @param {string} selector
 * @returns {string | null} null if none matches
 */
export function getTextContent(selector) {
  return document.querySelector(selector)?.textContent?.trim() ?? null;
}

/**
 * Returns the content of `<meta name="…">` or `<meta property="…">`.
 *
 * @param {string} name
 * @returns {string | null}
 */
export function getMetaContent(name) {
  const names = (/** @type {Element} */ meta) =>
    meta.getAttribute("name") === name || meta.getAttribute("property") === name;
  return querySelectorAll("meta[content]").find(names)?.getAttribute("content") ?? null;
}

/**
 * Calls a function when the DOM below an element changes. Errors of the function are logged.
 *
 * @param {string | Node} target a node, or a selector for the first match
 * @param {(mutations: MutationRecord[], observer: MutationObserver) => unknown} callback
 * @param {MutationObserverInit} [options] default: added and removed nodes, at any depth
 * @returns {() => void} stops observing; call it in `teardown` at the latest
 * @throws {ToolError} NOT_FOUND if nothing matches
 */
export function observeDOM(target, callback, options = { childList: true, subtree: true }) {
  const node = typeof target === "string" ? document.querySelector(target) : target;
  if (node === null) {
    throw ToolError.notFound(`Cannot observe ${target}: no element matches.`);
  }
  const observer = new MutationObserver((mutations) => {
    try {
      callback(mutations, observer);
    } catch (error) {
      log.error("The callback of observeDOM() failed", error);
    }
  });
  observer.observe(node, options);
  return () => observer.disconnect();
}
