import { ToolError } from "./errors.js";
import { limit, throwIfAborted } from "./limit.js";
import { parse } from "./schema.js";
import { httpStatusToToolError } from "./status.js";

/** @import { Schema } from "./schema.js" */

const TIMEOUT = 30_000; // ms
/** How Chromium begins the error for a URL, a method, headers or a body that cannot be sent. */
const UNSENDABLE = "Failed to execute 'fetch'";
const EXCERPT = 300; // characters of a response that an error quotes

/**
 * The options of `fetch()`, plus a timeout.
 *
 * @typedef {Omit<RequestInit, "signal"> & FetchLimits} FetchFromPageInit
 */

/**
 * @typedef {object} FetchLimits
 * @property {number | undefined} [timeout] ms; default 30,000; `Infinity` for none
 * @property {AbortSignal | null | undefined} [signal] if it fires, its reason is thrown
 */

/**
 * Makes one request and reads a 2xx response with `read`, within the timeout.
 *
 * @template T
 * @param {string | URL} url
 * @param {FetchFromPageInit | undefined} init
 * @param {(response: Response) => T | PromiseLike<T>} read
 * @returns {Promise<T>}
 */
export async function exchange(url, init = {}, read) {
  const { timeout = TIMEOUT, signal, ...given } = init;
  throwIfAborted(signal);
  const what = describe(url, init);
  const tooLate = () => ToolError.timeout(`${what} got no response within ${timeout} ms.`);
  const bound = limit(timeout, tooLate, signal);
  try {
    const request = { credentials: /** @type {const} */ ("include"), ...given };
    const response = await fetch(url, { ...request, signal: bound.signal });
    if (!response.ok) {
      throw await refusal(response, what);
    }
    return await read(response);
  } catch (error) {
    if (error instanceof ToolError) {
      throw error;
    }
    throwIfAborted(bound.signal);
    throw unanswered(what, error);
  } finally {
    bound.clear();
  }
}

/**
 * @param {string | URL} url
 * @param {FetchFromPageInit} [init]
 * @param {Schema<any>} [schema]
 * @returns {Promise<any>} the response parsed by the schema; an empty response is undefined
 */
export async function exchangeJSON(url, init, schema) {
  const { type, text } = await exchange(url, init, async (response) => ({
    type: response.headers.get("content-type") ?? "no content-type",
    text: await response.text(),
  }));
  const what = describe(url, init);
  const value = text.trim() === "" ? undefined : decode(text, type, what);
  return schema === undefined ? value : parse(schema, value, (issues) => unexpected(what, issues));
}

/**
 * @param {string} text
 * @param {string} type
 * @param {string} what
 */
function decode(text, type, what) {
  try {
    return JSON.parse(text);
  } catch {
    throw unexpected(what, `it is not JSON but ${type}, starting with: ${cut(text)}`);
  }
}

/**
 * @param {string | URL} url
 * @param {RequestInit | FetchFromPageInit | undefined} init
 */
function describe(url, init) {
  // Queries may contain secrets, and many users read errors.
  const address = String(url).replace(/[?#].*$/s, "");
  return `${init?.method?.toUpperCase() ?? "GET"} ${address}`;
}

/**
 * @param {Response} response
 * @param {string} what
 */
async function refusal(response, what) {
  const body = await beginning(response);
  const status = `${response.status} ${response.statusText}`.trim();
  return httpStatusToToolError(response, `${what} answered ${status}${body && `: ${body}`}`);
}

/** @param {Response} response */
async function beginning(response) {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length >= EXCERPT) {
        break; // this cancels the rest
      }
    }
  } catch {
    // The status is enough.
  }
  return cut(text);
}

/** @param {string} text */
function cut(text) {
  return text.slice(0, EXCERPT).toWellFormed().replace(/\s+/g, " ").trim();
}

/**
 * @param {string} what
 * @param {unknown} cause
 */
function unanswered(what, cause) {
  const why = cause instanceof Error ? cause.message : String(cause);
  if (why.startsWith(UNSENDABLE)) {
    const message = `${what} cannot be sent: ${why}`;
    return new ToolError(message, "INTERNAL_ERROR", { category: "internal", cause });
  }
  const message = `${what} failed: ${why}. The site cannot be reached, or does not allow requests from this page.`;
  return new ToolError(message, "INTERNAL_ERROR", { category: "internal", retryable: true, cause });
}

/**
 * @param {string} what
 * @param {string} why
 */
function unexpected(what, why) {
  const message = `${what} returned a response that this plugin does not expect: ${why}`;
  return ToolError.internal(message, "UNEXPECTED_RESPONSE");
}
