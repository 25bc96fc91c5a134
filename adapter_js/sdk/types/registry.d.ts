/**
 * `globalThis.__openTabs`: what host, plugins and pre-scripts share in a page. A plugin may lock
 * it behind itself, and the next one puts a copy in its place: so look it up at each use.
 *
 * @typedef {object} Registry
 * @property {Record<string, any>} [adapters] by plugin
 * @property {Record<string, unknown>} [pluginConfig] settings, by key
 * @property {Record<string, Record<string, unknown>>} [preScript] values, by plugin and key
 * @property {Record<string, unknown>} [tokenCache] by namespace
 * @property {string} [_logNonce] with which logs are signed
 * @property {string} [_readinessNonce] with which readiness changes are
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
     * with which logs are signed
     */
    _logNonce?: string;
    /**
     * with which readiness changes are
     */
    _readinessNonce?: string;
};
/** @returns {Registry} `{}` where the page has none */
export declare function registry(): Registry;
/**
 * Sets `__openTabs[member][key]`, around whatever is frozen.
 *
 * @param {"preScript" | "tokenCache"} member
 * @param {string} key
 * @param {unknown} value
 */
export declare function setEntry(member: "preScript" | "tokenCache", key: string, value: unknown): void;
/** @param {Registry} next */
export declare function replaceRegistry(next: Registry): void;
