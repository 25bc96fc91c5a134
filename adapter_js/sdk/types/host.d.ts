/**
 * Whether a host listens to this document; in unit tests, none does.
 *
 * @param {"_logNonce" | "_readinessNonce"} nonce
 */
export declare function hasHost(nonce: "_logNonce" | "_readinessNonce"): boolean;
/**
 * Sends the host a message, signed with the nonce that the host has stored in the registry.
 *
 * @param {"_logNonce" | "_readinessNonce"} nonce
 * @param {Record<string, unknown>} message
 */
export declare function notifyHost(nonce: "_logNonce" | "_readinessNonce", message: Record<string, unknown>): void;
/**
 * Resolves when all earlier messages have arrived: they arrive in order, in separate tasks.
 *
 * @returns {Promise<void>}
 */
export declare function arrival(): Promise<void>;
