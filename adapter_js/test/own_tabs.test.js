// The tabs that clients open for themselves.

import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "../../extension/background/own_tabs.js";

/** @type {Set<object>} timers that have neither run nor been cleared */
const pending = new Set();

Object.assign(globalThis, {
  setTimeout() {
    const timer = {};
    pending.add(timer);
    return timer;
  },
  clearTimeout: (/** @type {object} */ timer) => pending.delete(timer),
  chrome: {
    tabs: {
      create: async () => ({ id: 7, windowId: 1 }),
      get: async () => {
        throw new Error("No tab with id: 7.");
      },
    },
    windows: { getLastFocused: async () => ({ id: 1 }) },
  },
});

test("a tab that is closed before it has loaded leaves no timer", async () => {
  await assert.rejects(open(), /No tab with id/);
  assert.equal(pending.size, 0);
});
