/**
 * The kind of error; agents and clients decide by it what to do.
 * @typedef {"auth" | "not_found" | "rate_limit" | "validation" | "timeout" | "internal"} ErrorCategory
 */
export type ErrorCategory = "auth" | "not_found" | "rate_limit" | "validation" | "timeout" | "internal";
export type ToolErrorOptions = {
    category?: ErrorCategory | undefined;
    /**
     * whether the same call may succeed later; default false
     */
    retryable?: boolean | undefined;
    /**
     * how long to wait before that, in ms
     */
    retryAfterMs?: number | undefined;
    /**
     * the error behind this one
     */
    cause?: unknown;
};
/**
 * @typedef {object} ToolErrorOptions
 * @property {ErrorCategory | undefined} [category]
 * @property {boolean | undefined} [retryable] whether the same call may succeed later; default false
 * @property {number | undefined} [retryAfterMs] how long to wait before that, in ms
 * @property {unknown} [cause] the error behind this one
 */
/**
 * An error whose fields all reach the caller of a tool. The message is for an agent: say what
 * happened, then what to do.
 *
 * @example
 * throw new ToolError("The channel is archived. Choose another.", "CHANNEL_ARCHIVED", {
 *   category: "validation",
 * });
 */
export declare class ToolError extends Error {
    /**
     * An identifier of the error, for programs.
     * @readonly
     * @type {string}
     */
    readonly code: string;
    /**
     * The kind of error.
     * @readonly
     * @type {ErrorCategory | undefined}
     */
    readonly category: ErrorCategory | undefined;
    /**
     * Whether the same call may succeed later.
     * @readonly
     * @type {boolean}
     */
    readonly retryable: boolean;
    /**
     * How long to wait before that, in ms.
     * @readonly
     * @type {number | undefined}
     */
    readonly retryAfterMs: number | undefined;
    /**
     * @param {string} message
     * @param {string} code for example `CHANNEL_ARCHIVED`
     * @param {ToolErrorOptions} [options]
     */
    constructor(message: string, code: string, options?: ToolErrorOptions);
    /**
     * Not signed in, or not allowed. Not retryable.
     *
     * @param {string} message
     * @param {string} [code]
     * @returns {ToolError}
     */
    static auth(message: string, code?: string): ToolError;
    /**
     * The requested item does not exist. Not retryable.
     *
     * @param {string} message
     * @param {string} [code]
     * @returns {ToolError}
     */
    static notFound(message: string, code?: string): ToolError;
    /**
     * Too many requests. Retryable.
     *
     * @param {string} message
     * @param {number} [retryAfterMs] how long to wait, in ms
     * @param {string} [code]
     * @returns {ToolError}
     */
    static rateLimited(message: string, retryAfterMs?: number, code?: string): ToolError;
    /**
     * The arguments are not valid. Not retryable.
     *
     * @param {string} message
     * @param {string} [code]
     * @returns {ToolError}
     */
    static validation(message: string, code?: string): ToolError;
    /**
     * The operation took too long. Retryable.
     *
     * @param {string} message
     * @param {string} [code]
     * @returns {ToolError}
     */
    static timeout(message: string, code?: string): ToolError;
    /**
     * Anything else. Not retryable.
     *
     * @param {string} message
     * @param {string} [code]
     * @returns {ToolError}
     */
    static internal(message: string, code?: string): ToolError;
}
