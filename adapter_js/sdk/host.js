import { PLUGIN } from "./identity.js";
import { registry } from "./registry.js";

/**
 * Whether a host listens to this document: none does in unit tests.
 *
 * @param {"_logNonce" | "_readinessNonce"} nonce
 */
export function hasHost(nonce) {
  return registry()[nonce] !== undefined;
}

/**
 * Tells the host something, signed with a nonce that it has left in the registry.
 *
 * @param {"_logNonce" | "_readinessNonce"} nonce
 * @param {Record<string, unknown>} message
 */
export function tellHost(nonce, message) {
  if (hasHost(nonce)) {
    try {
      window.postMessage({ ...message, plugin: PLUGIN, nonce: registry()[nonce] }, "*");
    } catch {
      // The page has patched postMessage, and there is no other way.
    }
  }
}

/**
 * Resolves when what was told before has arrived: messages come in tasks of their own, in order.
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
