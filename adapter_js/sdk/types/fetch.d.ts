import type { FetchFromPageInit } from "./exchange.js";
import type { Schema } from "./schema.js";
export type FetchJSON = {
    <T>(url: string | URL, init: FetchFromPageInit | undefined, schema: Schema<T>): Promise<T>;
    <T = unknown>(url: string | URL, init?: FetchFromPageInit): Promise<T | undefined>;
};
export type SendJSON<Body> = {
    <T>(url: string | URL, body: Body, init: FetchFromPageInit | undefined, schema: Schema<T>): Promise<T>;
    <T = unknown>(url: string | URL, body: Body, init?: FetchFromPageInit): Promise<T | undefined>;
};
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
export declare function fetchFromPage(url: string | URL, init?: FetchFromPageInit): Promise<Response>;
/**
 * Fetches text.
 *
 * @param {string | URL} url
 * @param {FetchFromPageInit} [init]
 * @returns {Promise<string>}
 * @throws {ToolError} as `fetchFromPage` does
 */
export declare function fetchText(url: string | URL, init?: FetchFromPageInit): Promise<string>;
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
export declare const fetchJSON: FetchJSON;
/**
 * Sends DELETE and returns the response's JSON: `deleteJSON<T>(url, init?, schema?)`.
 *
 * @type {FetchJSON}
 * @throws {ToolError} as `fetchJSON` does
 */
export declare const deleteJSON: FetchJSON;
/**
 * Posts JSON: `postJSON<T>(url, body, init?, schema?)`. Sends no body if it is undefined.
 *
 * @type {SendJSON<unknown>}
 * @throws {ToolError} as `fetchJSON` does
 */
export declare const postJSON: SendJSON<unknown>;
/**
 * Puts JSON: `putJSON<T>(url, body, init?, schema?)`.
 *
 * @type {SendJSON<unknown>}
 * @throws {ToolError} as `fetchJSON` does
 */
export declare const putJSON: SendJSON<unknown>;
/**
 * Patches with JSON: `patchJSON<T>(url, body, init?, schema?)`.
 *
 * @type {SendJSON<unknown>}
 * @throws {ToolError} as `fetchJSON` does
 */
export declare const patchJSON: SendJSON<unknown>;
/**
 * Posts a form, URL-encoded like `buildQueryString`:
 * `postForm<T>(url, {name: "value"}, init?, schema?)`.
 *
 * @type {SendJSON<Record<string, any>>}
 * @throws {ToolError} as `fetchJSON` does
 */
export declare const postForm: SendJSON<Record<string, any>>;
/**
 * Posts a form with files, as `multipart/form-data`:
 * `postFormData<T>(url, formData, init?, schema?)`.
 *
 * @type {SendJSON<FormData>}
 * @throws {ToolError} as `fetchJSON` does
 */
export declare const postFormData: SendJSON<FormData>;
