import assert from "node:assert/strict";
import { test } from "node:test";
import { httpStatusToToolError } from "../../sdk/status.js";

for (const [status, code, category, retryable] of /** @type {const} */ ([
  [400, "VALIDATION_ERROR", "validation", false],
  [401, "AUTH_ERROR", "auth", false],
  [403, "AUTH_ERROR", "auth", false],
  [404, "NOT_FOUND", "not_found", false],
  [408, "TIMEOUT", "timeout", true],
  [418, "INTERNAL_ERROR", "internal", false],
  [422, "VALIDATION_ERROR", "validation", false],
  [429, "RATE_LIMITED", "rate_limit", true],
  [500, "INTERNAL_ERROR", "internal", true],
  [503, "INTERNAL_ERROR", "internal", true],
])) {
  test(`status ${status} is ${code} in category ${category}, ${retryable ? "" : "not "}retryable`, () => {
    for (const given of [new Response(null, { status }), { status }, status]) {
      const error = httpStatusToToolError(given, "what happened");
      assert.deepEqual(
        [error.message, error.code, error.category, error.retryable, error.retryAfterMs],
        ["what happened", code, category, retryable, undefined],
      );
    }
  });
}

test("Retry-After is kept for each retryable status", () => {
  const headers = { "retry-after": "2" };
  for (const [status, expected] of /** @type {const} */ ([
    [408, 2000],
    [429, 2000],
    [503, 2000],
    [404, undefined],
  ])) {
    const error = httpStatusToToolError(new Response(null, { status, headers }), "");
    assert.equal(error.retryAfterMs, expected, String(status));
  }
});
