import { ToolError } from "./errors.js";
import { parseRetryAfterMs } from "./rate_limit.js";

/**
 * Returns the error for an HTTP status:
 *
 * | status | category | retryable |
 * |---|---|---|
 * | 401, 403 | auth | no |
 * | 404 | not_found | no |
 * | 400, 422 | validation | no |
 * | 408 | timeout | yes |
 * | 429 | rate_limit | yes |
 * | 5xx | internal | yes |
 * | any other | internal | no |
 *
 * For retryable errors, `retryAfterMs` comes from `Retry-After`.
 *
 * @param {Response | {status: number, headers?: Headers} | number} response a response, or just its status
 * @param {string} message
 * @returns {ToolError}
 */
export function httpStatusToToolError(response, message) {
  const { status, headers } =
    typeof response === "number" ? { status: response, headers: undefined } : response;
  const retryAfterMs = parseRetryAfterMs(headers?.get("retry-after"));
  switch (status) {
    case 400:
    case 422:
      return ToolError.validation(message);
    case 401:
    case 403:
      return ToolError.auth(message);
    case 404:
      return ToolError.notFound(message);
    case 408:
      return new ToolError(message, "TIMEOUT", {
        category: "timeout",
        retryable: true,
        retryAfterMs,
      });
    case 429:
      return ToolError.rateLimited(message, retryAfterMs);
  }
  if (status >= 500) {
    return new ToolError(message, "INTERNAL_ERROR", {
      category: "internal",
      retryable: true,
      retryAfterMs,
    });
  }
  return ToolError.internal(message);
}
