import { registry } from "./registry.js";

/**
 * What the user has set for a key of the plugin's `configSchema`.
 *
 * @template {string | number | boolean} [T=string | number | boolean]
 * @param {string} key
 * @returns {T | undefined} undefined when it is not set
 */
export function getConfig(key) {
  const settings = registry().pluginConfig ?? {};
  return Object.hasOwn(settings, key) ? /** @type {T} */ (settings[key]) : undefined;
}
