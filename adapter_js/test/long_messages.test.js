// Messages for the worker itself that are too long for one frame.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { settled } from "./fakes.js";

/** @type {any[]} what the server was sent, but for hellos */
const sent = [];
/** @type {(() => void)[]} what waits for a time */
const timers = [];

class FakeSocket {
  static OPEN = 1;
  readyState = FakeSocket.OPEN;
  constructor() {
    server = this;
  }
  onopen() {}
  /** @param {{reason: string}} _event */
  onclose(_event) {}
  /** @param {{data: string}} event */
  onmessage({ data }) {
    assert.fail(data);
  }
  /** @param {string} text */
  send(text) {
    const message = JSON.parse(text);
    if (message.method !== "hello") sent.push(message);
  }
}
/** @type {FakeSocket} the server's end */
let server;

Object.assign(globalThis, {
  WebSocket: FakeSocket,
  setTimeout: (/** @type {() => void} */ run) => timers.push(run),
  clearTimeout() {},
  fetch: async () => ({ json: async () => ({ server: "127.0.0.1:1", secret: "s" }) }),
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

async function open() {
  await settled();
  server.onopen();
  await settled();
}

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

const answered = () => sent.map(({ method, params }) => [method, params.pingTime]);

beforeEach(async () => {
  await open();
  sent.length = 0;
});

test("a message in chunks is handled once it is whole", () => {
  for (const data of [...chunks(ping(1), 1), ...chunks(ping(2), 2)]) server.onmessage({ data });
  assert.deepEqual(answered(), [
    ["pong", 1],
    ["pong", 2],
  ]);
});

test("a message in one frame between two chunks is handled at once", () => {
  const [first, second, last] = chunks(ping(1), 1);
  for (const data of [first, ping(2), second, last]) server.onmessage({ data });
  assert.deepEqual(answered(), [
    ["pong", 2],
    ["pong", 1],
  ]);
});

test("the rest of a message is not waited for on the next connection", async () => {
  server.onmessage({ data: chunks(ping(1), 1)[0] });
  server.onclose({ reason: "" });
  for (const run of timers.splice(0)) run();
  await open();
  for (const data of chunks(ping(2), 1)) server.onmessage({ data });
  assert.deepEqual(answered(), [["pong", 2]]);
});
