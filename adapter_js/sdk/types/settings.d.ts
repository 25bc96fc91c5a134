/**
 * What the user has set for a key of the plugin's `configSchema`.
 *
 * @template {string | number | boolean} [T=string | number | boolean]
 * @param {string} key
 * @returns {T | undefined} undefined when it is not set
 */
export declare function getConfig<T extends string | number | boolean = string | number | boolean>(key: string): T | undefined;
