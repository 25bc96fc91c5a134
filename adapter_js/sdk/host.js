import { PLUGIN } from "./identity.js";
import { registry } from "./registry.js";

/**
 * Whether a host listens to this document; in unit tests, none does.
 *
 * @param {"_logNonce" | "_readinessNonce"} nonce
 */
export function hasHost(nonce) {
  return registry()[nonce] !== undefined;
}

/**
 * Sends the host a message, signed with the nonce that the host has stored in the registry.
 *
 * @param {"_logNonce" | "_readinessNonce"} nonce
 * @param {Record<string, unknown>} message
 */
export function notifyHost(nonce, message) {
  if (hasHost(nonce)) {
    try {
      window.postMessage({ ...message, plugin: PLUGIN, nonce: registry()[nonce] }, "*");
    } catch {
      // The page has patched postMessage, and there is no other channel.
    }
  }
}

/**
 * Resolves when all earlier messages have arrived: they arrive in order, in separate tasks.
 *
 * @returns {Promise<void>}
 */
export function arrival() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
