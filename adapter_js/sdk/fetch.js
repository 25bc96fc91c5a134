import { exchange, exchangeJSON } from "./exchange.js";
import { buildQueryString } from "./params.js";

/** @import { FetchFromPageInit } from "./exchange.js" */
/** @import { Schema } from "./schema.js" */

/**
 * With a schema, the answer is what the schema makes of it; without one, it is taken as it is, and
 * undefined when it is empty.
 *
 * @typedef {{
 *   <T>(url: string | URL, init: FetchFromPageInit | undefined, schema: Schema<T>): Promise<T>,
 *   <T = unknown>(url: string | URL, init?: FetchFromPageInit): Promise<T | undefined>,
 * }} FetchJSON
 */

/**
 * @template Body
 * @typedef {{
 *   <T>(url: string | URL, body: Body, init: FetchFromPageInit | undefined, schema: Schema<T>): Promise<T>,
 *   <T = unknown>(url: string | URL, body: Body, init?: FetchFromPageInit): Promise<T | undefined>,
 * }} SendJSON
 */

/**
 * Fetches with the page's session: cookies go along.
 *
 * @param {string | URL} url may be relative to the page
 * @param {FetchFromPageInit} [init] `timeout` is for the answer's headers, not for its body
 * @returns {Promise<Response>} one with a 2xx status
 * @throws {ToolError} TIMEOUT; INTERNAL_ERROR, retryable, when the site cannot be reached; what
 *   `httpStatusToToolError` makes of any other status
 */
export function fetchFromPage(url, init) {
  return exchange(url, init, (response) => response);
}

/**
 * Fetches text.
 *
 * @param {string | URL} url
 * @param {FetchFromPageInit} [init]
 * @returns {Promise<string>}
 * @throws {ToolError} as `fetchFromPage` does
 */
export function fetchText(url, init) {
  return exchange(url, init, (response) => response.text());
}

/**
 * Fetches JSON: `fetchJSON<T>(url, init?, schema?)`.
 *
 * @example
 * const me = await fetchJSON("/api/me", { signal: context?.signal }, z.object({ id: z.string() }));
 *
 * @type {FetchJSON}
 * @throws {ToolError} as `fetchFromPage` does; UNEXPECTED_RESPONSE when the answer is not JSON or
 *   not what the schema wants
 */
export const fetchJSON = exchangeJSON;

/**
 * Deletes, and gives the JSON of the answer: `deleteJSON<T>(url, init?, schema?)`.
 *
 * @type {FetchJSON}
 * @throws {ToolError} as `fetchJSON` does
 */
export const deleteJSON = sendDelete;

/**
 * Posts JSON: `postJSON<T>(url, body, init?, schema?)`. No body is sent when it is undefined.
 *
 * @type {SendJSON<unknown>}
 * @throws {ToolError} as `fetchJSON` does
 */
export const postJSON = /* @__PURE__ */ sender("POST", json);

/**
 * Puts JSON: `putJSON<T>(url, body, init?, schema?)`.
 *
 * @type {SendJSON<unknown>}
 * @throws {ToolError} as `fetchJSON` does
 */
export const putJSON = /* @__PURE__ */ sender("PUT", json);

/**
 * Patches with JSON: `patchJSON<T>(url, body, init?, schema?)`.
 *
 * @type {SendJSON<unknown>}
 * @throws {ToolError} as `fetchJSON` does
 */
export const patchJSON = /* @__PURE__ */ sender("PATCH", json);

/**
 * Posts a form, URL-encoded as `buildQueryString` does it:
 * `postForm<T>(url, {name: "value"}, init?, schema?)`.
 *
 * @type {SendJSON<Record<string, any>>}
 * @throws {ToolError} as `fetchJSON` does
 */
export const postForm = /* @__PURE__ */ sender("POST", (fields) => ({
  body: new URLSearchParams(buildQueryString(fields)),
}));

/**
 * Posts a form with files, as `multipart/form-data`:
 * `postFormData<T>(url, formData, init?, schema?)`.
 *
 * @type {SendJSON<FormData>}
 * @throws {ToolError} as `fetchJSON` does
 */
export const postFormData = /* @__PURE__ */ sender("POST", (body) => ({ body }));

/**
 * @param {string | URL} url
 * @param {FetchFromPageInit} [init]
 * @param {Schema<any>} [schema]
 */
function sendDelete(url, init, schema) {
  return exchangeJSON(url, { ...init, method: "DELETE" }, schema);
}

/**
 * @param {string} method
 * @param {(body: any, init: FetchFromPageInit | undefined) => RequestInit} encode
 * @returns {SendJSON<any>}
 */
function sender(method, encode) {
  /**
   * @param {string | URL} url
   * @param {unknown} body
   * @param {FetchFromPageInit} [init]
   * @param {Schema<any>} [schema]
   */
  function send(url, body, init, schema) {
    return exchangeJSON(url, { ...init, method, ...encode(body, init) }, schema);
  }
  return send;
}

/**
 * @param {unknown} body
 * @param {FetchFromPageInit | undefined} init
 */
function json(body, init) {
  if (body === undefined) {
    return {};
  }
  const headers = new Headers(init?.headers);
  if (!headers.has("content-type")) {
    headers.set("content-type", "application/json");
  }
  return { headers, body: JSON.stringify(body) };
}
