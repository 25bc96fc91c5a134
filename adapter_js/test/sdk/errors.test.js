import assert from "node:assert/strict";
import { test } from "node:test";
import { ToolError } from "../../sdk/errors.js";

/** @param {ToolError} error */
const fields = ({ message, code, category, retryable, retryAfterMs }) => ({
  message,
  code,
  category,
  retryable,
  retryAfterMs,
});

test("a ToolError is an Error and has the given fields", () => {
  const cause = new Error("why");
  const error = new ToolError("what", "CODE", {
    category: "auth",
    retryable: true,
    retryAfterMs: 5,
    cause,
  });
  assert.ok(error instanceof Error);
  assert.deepEqual([error.name, error.cause, `${error}`], ["ToolError", cause, "ToolError: what"]);
  assert.deepEqual(fields(error), {
    message: "what",
    code: "CODE",
    category: "auth",
    retryable: true,
    retryAfterMs: 5,
  });
});

test("a ToolError without options is not retryable and has no category or cause", () => {
  const error = new ToolError("what", "CODE");
  assert.deepEqual(fields(error), {
    message: "what",
    code: "CODE",
    category: undefined,
    retryable: false,
    retryAfterMs: undefined,
  });
  assert.equal("cause" in error, false);
});

for (const [name, code, category, retryable] of /** @type {const} */ ([
  ["auth", "AUTH_ERROR", "auth", false],
  ["notFound", "NOT_FOUND", "not_found", false],
  ["validation", "VALIDATION_ERROR", "validation", false],
  ["timeout", "TIMEOUT", "timeout", true],
  ["internal", "INTERNAL_ERROR", "internal", false],
])) {
  test(`${name}() returns ${code} or the given code, ${retryable ? "" : "not "}retryable`, () => {
    const expected = { message: "m", code, category, retryable, retryAfterMs: undefined };
    assert.deepEqual(fields(ToolError[name]("m")), expected);
    assert.deepEqual(fields(ToolError[name]("m", "OWN")), { ...expected, code: "OWN" });
  });
}

test("rateLimited() is retryable, and accepts a time and then a code", () => {
  const expected = {
    message: "m",
    code: "RATE_LIMITED",
    category: "rate_limit",
    retryable: true,
    retryAfterMs: undefined,
  };
  assert.deepEqual(fields(ToolError.rateLimited("m")), expected);
  assert.deepEqual(fields(ToolError.rateLimited("m", 5, "OWN")), {
    ...expected,
    retryAfterMs: 5,
    code: "OWN",
  });
});
