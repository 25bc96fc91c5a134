/**
 * Builds a query string without the `?`: `{q: "a b", tag: ["x", "y"], page: undefined}` becomes
 * `q=a+b&tag=x&tag=y`.
 *
 * @param {Record<string, any>} params
 *   An array repeats its key; `undefined` and `null` are left out; a date is written as ISO 8601.
 * @returns {string}
 */
export function buildQueryString(params) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null) {
        query.append(key, item instanceof Date ? item.toISOString() : String(item));
      }
    }
  }
  return query.toString();
}

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
export function stripUndefined(object) {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return /** @type {Defined<T>} */ (Object.fromEntries(entries));
}
