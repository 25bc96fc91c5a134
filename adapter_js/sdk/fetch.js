import { exchange, exchangeJSON } from "./exchange.js";
import { buildQueryString } from "./params.js";

/** @import { FetchFromPageInit } from "./exchange.js" */
/** @import { Schema } from "./schema.js" */

/**
 * With a schema, returns the response parsed by that schema; without one, returns the response
 * unchecked, or undefined if it is empty.
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
 * Fetches with the page's session, including its cookies.
 *
 * @param {string | URL} url may be relative to the page
 * @param {FetchFromPageInit} [init] `timeout` covers the response headers, not the body
 * @returns {Promise<Response>} a response with a 2xx status
 * @throws {ToolError} TIMEOUT; INTERNAL_ERROR, retryable, if the site cannot be reached, and not
 *   if the request cannot be sent, as with an invalid URL; for any other status, the error from
 *   `httpStatusToToolError`
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
 * @throws {ToolError} as `fetchFromPage` does; UNEXPECTED_RESPONSE if the response is not JSON
 *   or does not match the schema
 */
export const fetchJSON = exchangeJSON;

/**
 * Sends DELETE and returns the response's JSON: `deleteJSON<T>(url, init?, schema?)`.
 *
 * @type {FetchJSON}
 * @throws {ToolError} as `fetchJSON` does
 */
export const deleteJSON = sendDelete;

/**
 * Posts JSON: `postJSON<T>(url, body, init?, schema?)`. Sends no body if it is undefined.
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
 * Posts a form, URL-encoded like `buildQueryString`:
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
