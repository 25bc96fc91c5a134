import { registry } from "./registry.js";

/**
 * Returns the user's value for a key of the plugin's `configSchema`.
 *
 * @template {string | number | boolean | Record<string, string>} [T=string | number | boolean]
 * @param {string} key
 * @returns {T | undefined} undefined if it is not set; for a `url` setting with several instances,
 *   their URLs by name
 */
export function getConfig(key) {
  const settings = registry().pluginConfig ?? {};
  return Object.hasOwn(settings, key) ? /** @type {T} */ (settings[key]) : undefined;
}
