/**
 * `globalThis.__openTabs`: the state that host, plugins and pre-scripts share in a page. A plugin
 * may lock it, and the next one replaces it with a copy, so look it up at each use.
 *
 * @typedef {object} Registry
 * @property {Record<string, any>} [adapters] by plugin
 * @property {Record<string, unknown>} [pluginConfig] settings, by key
 * @property {Record<string, Record<string, unknown>>} [preScript] values, by plugin and key
 * @property {Record<string, unknown>} [tokenCache] by namespace
 * @property {string} [_logNonce] signs logs
 * @property {string} [_readinessNonce] signs readiness changes
 */

/** @returns {Registry} `{}` if the page has none */
export function registry() {
  return /** @type {any} */ (globalThis).__openTabs ?? {};
}

/**
 * Sets `__openTabs[member][key]`, even if the objects are frozen.
 *
 * @param {"preScript" | "tokenCache"} member
 * @param {string} key
 * @param {unknown} value
 */
export function setEntry(member, key, value) {
  const entries = registry()[member];
  const entry = { value, writable: true, enumerable: true, configurable: true };
  if (entries === undefined || !Reflect.defineProperty(entries, key, entry)) {
    const copy = Object.defineProperty({ ...entries }, key, entry);
    replaceRegistry({ ...registry(), [member]: copy });
  }
}

/** @param {Registry} next */
export function replaceRegistry(next) {
  /** @type {any} */ (globalThis).__openTabs = next;
}
