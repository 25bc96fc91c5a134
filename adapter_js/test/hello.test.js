// The worker's first message on a connection, while Chrome does not answer what it should contain.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { fakeServer } from "./fakes.js";

const server = fakeServer();
/** @type {(() => void)[]} what waits for a time */
const timers = [];
/** @type {Set<string>} what fails in Chrome */
const failing = new Set();

/**
 * @template T
 * @param {string} name
 * @param {T} value
 */
function chromeCall(name, value) {
  return async () => (failing.has(name) ? Promise.reject(new Error(`${name} failed`)) : value);
}

Object.assign(globalThis, {
  setTimeout: (/** @type {() => void} */ run) => timers.push(run),
  clearTimeout() {},
  console: { ...console, warn() {} },
  chrome: {
    action: { setTitle() {}, setBadgeText() {} },
    runtime: { getURL: String, getManifest: () => ({ version: "1" }) },
    storage: {
      local: { get: chromeCall("local", { browserId: "b".repeat(32) }) },
      session: { get: chromeCall("session", { loadId: "this" }), set: async () => {} },
    },
    tabs: { query: chromeCall("tabs", []) },
    windows: { getLastFocused: chromeCall("windows", { id: 1 }) },
  },
});

const link = await import("../../extension/background/link.js");
const registry = await import("../../extension/background/registry.js");
const router = await import("../../extension/background/router.js");

beforeEach(() => {
  server.sent.length = 0;
  failing.clear();
});

for (const name of ["local", "session", "tabs"]) {
  test(`the next connection sends hello if ${name} fails only once`, async () => {
    failing.add(name);
    registry.restore();
    link.start(
      router.sayHello,
      () => assert.fail("it received something"),
      () => assert.fail("it was replaced"),
    );
    await server.open();
    assert.equal(server.sent.length, 0);
    failing.clear();
    for (const run of timers.splice(0)) run();
    await server.open();
    assert.deepEqual(
      server.sent.map(({ method, params }) => [method, params.browserId]),
      [["hello", "b".repeat(32)]],
    );
    server.close();
  });
}
