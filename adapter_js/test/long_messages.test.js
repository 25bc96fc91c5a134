// Messages for the worker itself that are too long for one frame.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { fakeServer } from "./fakes.js";

const server = fakeServer();
/** @type {(() => void)[]} what waits for a time */
const timers = [];

Object.assign(globalThis, {
  setTimeout: (/** @type {() => void} */ run) => timers.push(run),
  clearTimeout() {},
  chrome: {
    action: { setTitle() {}, setBadgeText() {} },
    runtime: { getURL: String, getManifest: () => ({ version: "1" }) },
    storage: {
      local: { get: async () => ({ browserId: "b".repeat(32) }) },
      session: { get: async () => ({ loadId: "this" }), set: async () => {} },
    },
    tabs: { query: async () => [] },
    windows: { getLastFocused: async () => ({ id: 1 }) },
  },
});

const link = await import("../../extension/background/link.js");
const registry = await import("../../extension/background/registry.js");
const router = await import("../../extension/background/router.js");

registry.restore();
link.start(router.sayHello, router.receive, router.becomeAnother);

/** @param {number} time */
function ping(time) {
  return JSON.stringify({ jsonrpc: "2.0", method: "ping", params: { time } });
}

/**
 * @param {string} text
 * @param {number} stream
 * @returns {[string, string, string]}
 */
function chunks(text, stream) {
  const head = `~${"0".repeat(32)}${String(stream).padStart(8, "0")}`;
  return [
    `${head}+${text.slice(0, 9)}`,
    `${head}+${text.slice(9, 20)}`,
    `${head}.${text.slice(20)}`,
  ];
}

const answered = () => server.sent.map(({ method, params }) => [method, params.pingTime]);

beforeEach(async () => {
  await server.open();
  server.sent.length = 0;
});

test("a message in chunks is handled once it is whole", () => {
  for (const data of [...chunks(ping(1), 1), ...chunks(ping(2), 2)]) server.say(data);
  assert.deepEqual(answered(), [
    ["pong", 1],
    ["pong", 2],
  ]);
});

test("a message in one frame between two chunks is handled at once", () => {
  const [first, second, last] = chunks(ping(1), 1);
  for (const data of [first, ping(2), second, last]) server.say(data);
  assert.deepEqual(answered(), [
    ["pong", 2],
    ["pong", 1],
  ]);
});

test("the rest of a message is not waited for on the next connection", async () => {
  server.say(chunks(ping(1), 1)[0]);
  server.close();
  for (const run of timers.splice(0)) run();
  await server.open();
  server.sent.length = 0;
  for (const data of chunks(ping(2), 1)) server.say(data);
  assert.deepEqual(answered(), [["pong", 2]]);
});
