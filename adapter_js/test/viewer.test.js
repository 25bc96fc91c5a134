// The page that shows a trace, with hand-written elements.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeDocument } from "./fake_dom.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const viewer = new URL("../../opentabs_py/tracing/viewer/", import.meta.url);
const { describe } = await import(`${viewer}details.js`);
const { kindOf, visible } = await import(`${viewer}model.js`);

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
    stack: /** @type {string | null} */ (null),
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

/** @param {Omit<typeof CALL, "progress" | "logs" | "arguments" | "result"> & Record<string, unknown>} call */
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

test("what a page wrote is shown in its order, with what is not seen as escapes", () => {
  assert.equal(
    visible("a\u202eb\u2066\u200b\u0007\u{e0041}"),
    "a\\u202eb\\u2066\\u200b\\u0007\\udb40\\udc41",
  );
  const seen = "é\t日本\n👩‍💻 لا";
  assert.equal(visible(seen), seen);
  const text = "gnp.\u202eexe";
  const error = { ...CALL.error, message: text, stack: text };
  const marks = { logCount: 1, logs: [{ at: 0, level: "info", message: text }] };
  const report = { at: 0, progress: null, total: null, message: text };
  const more = { reports: 1, progress: [report], arguments: `{"a":"${text}"}`, result: `"${text}` };
  const shown = detailsOf({ ...CALL, ...marks, ...more, error }).join();
  assert.equal(shown.split("gnp.\\u202eexe").length, 7);
  assert.ok(!shown.includes("\u202e"));
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
