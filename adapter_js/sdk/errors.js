/**
 * The kind of error; agents and clients decide by it what to do.
 * @typedef {"auth" | "not_found" | "rate_limit" | "validation" | "timeout" | "internal"} ErrorCategory
 */

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
export class ToolError extends Error {
  /**
   * An identifier of the error, for programs.
   * @readonly
   * @type {string}
   */
  code;

  /**
   * The kind of error.
   * @readonly
   * @type {ErrorCategory | undefined}
   */
  category;

  /**
   * Whether the same call may succeed later.
   * @readonly
   * @type {boolean}
   */
  retryable;

  /**
   * How long to wait before that, in ms.
   * @readonly
   * @type {number | undefined}
   */
  retryAfterMs;

  /**
   * @param {string} message
   * @param {string} code for example `CHANNEL_ARCHIVED`
   * @param {ToolErrorOptions} [options]
   */
  constructor(message, code, options = {}) {
    const { category, retryable = false, retryAfterMs, ...cause } = options;
    super(message, cause);
    this.name = "ToolError";
    this.code = code;
    this.category = category;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
  }

  /**
   * Not signed in, or not allowed. Not retryable.
   *
   * @param {string} message
   * @param {string} [code]
   * @returns {ToolError}
   */
  static auth(message, code = "AUTH_ERROR") {
    return new ToolError(message, code, { category: "auth" });
  }

  /**
   * The requested item does not exist. Not retryable.
   *
   * @param {string} message
   * @param {string} [code]
   * @returns {ToolError}
   */
  static notFound(message, code = "NOT_FOUND") {
    return new ToolError(message, code, { category: "not_found" });
  }

  /**
   * Too many requests. Retryable.
   *
   * @param {string} message
   * @param {number} [retryAfterMs] how long to wait, in ms
   * @param {string} [code]
   * @returns {ToolError}
   */
  static rateLimited(message, retryAfterMs, code = "RATE_LIMITED") {
    return new ToolError(message, code, { category: "rate_limit", retryable: true, retryAfterMs });
  }

  /**
   * The arguments are not valid. Not retryable.
   *
   * @param {string} message
   * @param {string} [code]
   * @returns {ToolError}
   */
  static validation(message, code = "VALIDATION_ERROR") {
    return new ToolError(message, code, { category: "validation" });
  }

  /**
   * The operation took too long. Retryable.
   *
   * @param {string} message
   * @param {string} [code]
   * @returns {ToolError}
   */
  static timeout(message, code = "TIMEOUT") {
    return new ToolError(message, code, { category: "timeout", retryable: true });
  }

  /**
   * Anything else. Not retryable.
   *
   * @param {string} message
   * @param {string} [code]
   * @returns {ToolError}
   */
  static internal(message, code = "INTERNAL_ERROR") {
    return new ToolError(message, code, { category: "internal" });
  }
}
