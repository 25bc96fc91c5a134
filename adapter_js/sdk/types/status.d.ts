import { ToolError } from "./errors.js";
/**
 * The error that an HTTP status stands for:
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
 * `retryAfterMs` of a retryable one is what `Retry-After` says.
 *
 * @param {Response | {status: number, headers?: Headers} | number} response or just its status
 * @param {string} message
 * @returns {ToolError}
 */
export declare function httpStatusToToolError(response: Response | {
    status: number;
    headers?: Headers;
} | number, message: string): ToolError;
