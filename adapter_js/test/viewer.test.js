// The page that shows a trace, with hand-written elements.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeDocument } from "./fake_dom.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const viewer = new URL("../../opentabs_py/tracing/viewer/", import.meta.url);
const { describe } = await import(`${viewer}details.js`);
const { kindOf } = await import(`${viewer}model.js`);

fakeDocument();

const CALL = {
  id: "9",
  name: "chat_send",
  plugin: "chat",
  tool: "send",
  at: 0,
  ms: 500,
  outcome: "failed",
  outcomeText: "failed",
  reached: "answer",
  reachedText: "the answer came",
  error: {
    code: "RATE_LIMITED",
    message: "Slow down.",
    category: "rate_limit",
    retryable: true,
    retryAfterMs: /** @type {number | null} */ (1500),
    stack: null,
  },
  tab: null,
  url: null,
  attempts: 1,
  hops: [],
  adjusted: 0,
  reports: 0,
  progress: [],
  dropped: 0,
  logCount: 0,
  logs: [],
  links: [],
  restarts: 0,
  limits: { idle: 30, ceiling: 300 },
  left: null,
  arguments: null,
  result: null,
};

/** @param {typeof CALL} call */
function detailsOf(call) {
  const actions = { zoom() {}, close() {} };
  return describe(call, 0, actions).map((/** @type {any} */ each) => each.text());
}

test("a retryable error shows the delay", () => {
  const [, box] = detailsOf(CALL);
  assert.equal(box, "RATE_LIMITEDrate_limitretryable after 1.50 sSlow down.");
});

test("a retryable error without a delay shows none", () => {
  const [, box] = detailsOf({ ...CALL, error: { ...CALL.error, retryAfterMs: null } });
  assert.equal(box, "RATE_LIMITEDrate_limitretryableSlow down.");
});

test("a call without hops says that its time was not measured", () => {
  const texts = detailsOf(CALL);
  assert.ok(texts.some((/** @type {string} */ text) => /time wentNot measured/.test(text)));
});

test("a hop is drawn as its carrier, or as unfinished where the call ended", () => {
  const hop = { hop: "relay", carrier: "extension", start: 0, ms: 1, unfinished: false };
  assert.deepEqual(
    [kindOf(hop), kindOf({ ...hop, unfinished: true })],
    ["extension", "unfinished"],
  );
});
