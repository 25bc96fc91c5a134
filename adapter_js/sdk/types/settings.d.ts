/**
 * Returns the user's value for a key of the plugin's `configSchema`.
 *
 * @template {string | number | boolean} [T=string | number | boolean]
 * @param {string} key
 * @returns {T | undefined} undefined if it is not set
 */
export declare function getConfig<T extends string | number | boolean = string | number | boolean>(key: string): T | undefined;
