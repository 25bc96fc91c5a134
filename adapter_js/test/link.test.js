// The worker's connection while the server is away.

import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "./fakes.js";

/** @type {Set<{run: () => unknown}>} timers that have neither run nor been cleared */
const pending = new Set();
let opened = 0;

class RefusedSocket {
  static OPEN = 1;
  constructor() {
    opened++;
    setImmediate(() => this.onclose({ reason: "" }));
  }
  /** @param {{reason: string}} event */
  onclose({ reason }) {
    assert.fail(reason);
  }
}

Object.assign(globalThis, {
  WebSocket: RefusedSocket,
  setTimeout(/** @type {() => unknown} */ run) {
    const timer = { run };
    pending.add(timer);
    return timer;
  },
  clearTimeout: (/** @type {{run: () => unknown}} */ timer) => pending.delete(timer),
  fetch: async () => ({ json: async () => ({ server: "127.0.0.1:1", secret: "s" }) }),
  chrome: {
    action: { setTitle() {}, setBadgeText() {} },
    runtime: { getURL: String },
    storage: { session: { get: async () => ({}), set: async () => {} } },
  },
});

const documents = await import("../../extension/background/documents.js");
const link = await import("../../extension/background/link.js");

async function attach() {
  documents.attach(
    /** @type {any} */ ({
      name: "relay",
      sender: { tab: { id: 7 }, frameId: 0 },
      onMessage: { addListener() {} },
      onDisconnect: { addListener() {} },
    }),
  );
  await settled();
}

test("ten relays that attach while the server is away set one timer", async () => {
  link.start(
    () => assert.fail("it opened"),
    () => assert.fail("it received something"),
    () => assert.fail("it was replaced"),
  );
  await settled();
  for (let relay = 0; relay < 10; relay++) await attach();
  assert.equal(opened, 11);
  assert.equal(pending.size, 1);
});

test("a timer that fires sets the next one", async () => {
  const [timer] = pending;
  opened = 0;
  pending.clear();
  timer?.run();
  await settled();
  assert.deepEqual([opened, pending.size], [1, 1]);
});
