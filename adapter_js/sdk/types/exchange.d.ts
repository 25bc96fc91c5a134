import type { Schema } from "./schema.js";
export type FetchFromPageInit = Omit<RequestInit, "signal"> & FetchLimits;
export type FetchLimits = {
    /**
     * ms; default 30,000; `Infinity` for none
     */
    timeout?: number | undefined;
    /**
     * if it fires, its reason is thrown
     */
    signal?: AbortSignal | null | undefined;
};
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
export declare function exchange<T>(url: string | URL, init: FetchFromPageInit | undefined, read: (response: Response) => T | PromiseLike<T>): Promise<T>;
/**
 * @param {string | URL} url
 * @param {FetchFromPageInit} [init]
 * @param {Schema<any>} [schema]
 * @returns {Promise<any>} the response parsed by the schema; an empty response is undefined
 */
export declare function exchangeJSON(url: string | URL, init?: FetchFromPageInit, schema?: Schema<any>): Promise<any>;
