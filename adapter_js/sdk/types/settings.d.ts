/**
 * Returns the user's value for a key of the plugin's `configSchema`.
 *
 * @template {string | number | boolean | Record<string, string>} [T=string | number | boolean]
 * @param {string} key
 * @returns {T | undefined} undefined if it is not set; for a `url` setting with several instances,
 *   their URLs by name
 */
export declare function getConfig<T extends string | number | boolean | Record<string, string> = string | number | boolean>(key: string): T | undefined;
