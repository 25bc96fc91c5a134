/**
 * Whether a host listens to this document: none does in unit tests.
 *
 * @param {"_logNonce" | "_readinessNonce"} nonce
 */
export declare function hasHost(nonce: "_logNonce" | "_readinessNonce"): boolean;
/**
 * Tells the host something, signed with a nonce that it has left in the registry.
 *
 * @param {"_logNonce" | "_readinessNonce"} nonce
 * @param {Record<string, unknown>} message
 */
export declare function tellHost(nonce: "_logNonce" | "_readinessNonce", message: Record<string, unknown>): void;
/**
 * Resolves when what was told before has arrived: messages come in tasks of their own, in order.
 *
 * @returns {Promise<void>}
 */
export declare function arrival(): Promise<void>;
