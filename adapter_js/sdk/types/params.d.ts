/**
 * Builds a query string without the `?`: `{q: "a b", tag: ["x", "y"], page: undefined}` becomes
 * `q=a+b&tag=x&tag=y`.
 *
 * @param {Record<string, any>} params
 *   An array repeats its key; `undefined` and `null` are left out; a date is written as ISO 8601.
 * @returns {string}
 */
export declare function buildQueryString(params: Record<string, any>): string;
export type Defined<T extends object> = {
    [K in keyof T as undefined extends T[K] ? never : K]: T[K];
} & {
    [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};
/**
 * @template {object} T
 * @typedef {{[K in keyof T as undefined extends T[K] ? never : K]: T[K]}
 *   & {[K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>}} Defined
 */
/**
 * Returns a copy without the members that are `undefined`. Nested objects are unchanged.
 *
 * @template {object} T
 * @param {T} object
 * @returns {Defined<T>}
 */
export declare function stripUndefined<T extends object>(object: T): Defined<T>;
