import type { Schema } from "./schema.js";
export type FetchFromPageInit = Omit<RequestInit, "signal"> & FetchLimits;
export type FetchLimits = {
    /**
     * ms; default 30,000; `Infinity` for none
     */
    timeout?: number | undefined;
    /**
     * when it fires, its reason is thrown
     */
    signal?: AbortSignal | null | undefined;
};
/**
 * What `fetch()` takes, and a limit of time.
 *
 * @typedef {Omit<RequestInit, "signal"> & FetchLimits} FetchFromPageInit
 */
/**
 * @typedef {object} FetchLimits
 * @property {number | undefined} [timeout] ms; default 30,000; `Infinity` for none
 * @property {AbortSignal | null | undefined} [signal] when it fires, its reason is thrown
 */
/**
 * One request, and what `read` makes of a 2xx answer while the clock still runs.
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
 * @returns {Promise<any>} what the schema makes of the answer; to it, an empty one is undefined
 */
export declare function exchangeJSON(url: string | URL, init?: FetchFromPageInit, schema?: Schema<any>): Promise<any>;
