/**
 * What kind of trouble it was; agents and clients act by it.
 * @typedef {"auth" | "not_found" | "rate_limit" | "validation" | "timeout" | "internal"} ErrorCategory
 */

/**
 * @typedef {object} ToolErrorOptions
 * @property {ErrorCategory | undefined} [category]
 * @property {boolean | undefined} [retryable] whether the same call may succeed later; default false
 * @property {number | undefined} [retryAfterMs] how long to wait until then, in ms
 * @property {unknown} [cause] the error behind this one
 */

/**
 * An error whose fields reach the caller of a tool whole. Say in the message what happened, then
 * what to do: it is read by an agent.
 *
 * @example
 * throw new ToolError("The channel is archived. Choose another.", "CHANNEL_ARCHIVED", {
 *   category: "validation",
 * });
 */
export class ToolError extends Error {
  /**
   * Names the fault for programs.
   * @readonly
   * @type {string}
   */
  code;

  /**
   * What kind of trouble it was.
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
   * How long to wait until then, in ms.
   * @readonly
   * @type {number | undefined}
   */
  retryAfterMs;

  /**
   * @param {string} message
   * @param {string} code as in `CHANNEL_ARCHIVED`
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
   * What was asked for does not exist. Not retryable.
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
   * The arguments cannot be used. Not retryable.
   *
   * @param {string} message
   * @param {string} [code]
   * @returns {ToolError}
   */
  static validation(message, code = "VALIDATION_ERROR") {
    return new ToolError(message, code, { category: "validation" });
  }

  /**
   * It took too long. Retryable.
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
