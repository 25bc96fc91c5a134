import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRateLimitHeader, parseRetryAfterMs } from "../../sdk/rate_limit.js";

const NOW = Date.parse("2026-11-21T12:00:00Z");

for (const [value, expected] of /** @type {[string | null | undefined, number | undefined][]} */ ([
  ["120", 120_000],
  ["0", 0],
  [" 1.5 ", 1500],
  ["Sat, 21 Nov 2026 12:00:30 GMT", 30_000],
  ["Sat, 21 Nov 2026 11:00:00 GMT", 0],
  ["-5", undefined],
  ["2026", 2026_000],
  ["9".repeat(400), undefined],
  ["soon", undefined],
  ["", undefined],
  [null, undefined],
  [undefined, undefined],
])) {
  const shown = JSON.stringify(value)?.slice(0, 40);
  test(`parseRetryAfterMs parses ${shown} as ${expected} ms`, (t) => {
    t.mock.timers.enable({ apis: ["Date"], now: NOW });
    assert.equal(parseRetryAfterMs(value), expected);
  });
}

for (const [what, headers, expected] of /** @type {[string, Record<string, string>, object][]} */ ([
  ["nothing from a response without rate limits", { "content-type": "a" }, {}],
  [
    "seconds from now",
    { "ratelimit-limit": "100", "ratelimit-remaining": "0", "ratelimit-reset": "30" },
    { limit: 100, remaining: 0, resetMs: 30_000 },
  ],
  [
    "seconds since 1970",
    { "x-ratelimit-remaining": "7", "x-ratelimit-reset": String(NOW / 1000 + 60) },
    { remaining: 7, resetMs: 60_000 },
  ],
  ["milliseconds since 1970", { "x-ratelimit-reset": String(NOW + 250) }, { resetMs: 250 }],
  ["a date", { "x-ratelimit-reset": "2026-11-21T12:00:05Z" }, { resetMs: 5000 }],
  ["a time that has passed as now", { "x-ratelimit-reset": "1700000000" }, { resetMs: 0 }],
  ["the other spelling", { "x-rate-limit-limit": "15" }, { limit: 15 }],
  ["a limit with policies", { "ratelimit-limit": "100, 100;w=60" }, { limit: 100 }],
  [
    "the one header of later drafts",
    { ratelimit: '"default";r=50;t=30', "ratelimit-policy": '"default";q=100;w=60' },
    { limit: 100, remaining: 50, resetMs: 30_000 },
  ],
  [
    "the one header of earlier drafts",
    { ratelimit: "limit=10, remaining=9, reset=8" },
    { limit: 10, remaining: 9, resetMs: 8000 },
  ],
  [
    "nothing from values that are not numbers",
    { "x-ratelimit-limit": "many", ratelimit: "r=x" },
    {},
  ],
])) {
  test(`parseRateLimitHeader reads ${what}`, (t) => {
    t.mock.timers.enable({ apis: ["Date"], now: NOW });
    assert.deepEqual(parseRateLimitHeader(new Headers(headers)), expected);
    assert.deepEqual(parseRateLimitHeader(new Response(null, { headers })), expected);
  });
}
