import { ToolError } from "./errors.js";
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
export declare function httpStatusToToolError(response: Response | {
    status: number;
    headers?: Headers;
} | number, message: string): ToolError;
