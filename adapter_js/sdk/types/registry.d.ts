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
export type Registry = {
    /**
     * by plugin
     */
    adapters?: Record<string, any>;
    /**
     * settings, by key
     */
    pluginConfig?: Record<string, unknown>;
    /**
     * values, by plugin and key
     */
    preScript?: Record<string, Record<string, unknown>>;
    /**
     * by namespace
     */
    tokenCache?: Record<string, unknown>;
    /**
     * signs logs
     */
    _logNonce?: string;
    /**
     * signs readiness changes
     */
    _readinessNonce?: string;
};
/** @returns {Registry} `{}` if the page has none */
export declare function registry(): Registry;
/**
 * Sets `__openTabs[member][key]`, even if the objects are frozen.
 *
 * @param {"preScript" | "tokenCache"} member
 * @param {string} key
 * @param {unknown} value
 */
export declare function setEntry(member: "preScript" | "tokenCache", key: string, value: unknown): void;
/** @param {Registry} next */
export declare function replaceRegistry(next: Registry): void;
