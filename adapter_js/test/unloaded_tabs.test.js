// Tabs that the browser has unloaded, of which a call may need one.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

/** @type {object[]} what Chrome says of its tabs */
let open = [];
/** @type {number[]} the tabs that were reloaded */
const reloaded = [];
let isClosed = false;

Object.assign(globalThis, {
  chrome: {
    storage: {
      local: { get: async () => ({}) },
      session: { get: async () => ({ loadId: "this" }), set: async () => {} },
    },
    tabs: {
      query: async () => open,
      reload: async (/** @type {number} */ id) => {
        reloaded.push(id);
        if (isClosed) throw new Error(`No tab with id: ${id}.`);
      },
    },
  },
});

const registry = await import("../../extension/background/registry.js");
const tabs = await import("../../extension/background/tabs.js");

const url = "https://chat.example/";
const early = { id: 1, url, status: "unloaded", discarded: true, lastAccessed: 10 };
const late = { id: 2, url, status: "unloaded", discarded: true, lastAccessed: 20 };
const other = { id: 3, url: "https://mail.example/", status: "unloaded", discarded: true };

beforeEach(() => {
  registry.restore();
  registry.setPlugins([
    /** @type {any} */ ({ name: "chat", matches: ["https://chat.example/*"], excludeMatches: [] }),
  ]);
  registry.documents.clear();
  reloaded.length = 0;
  isClosed = false;
});

test("the tab that was used last is loaded, and no other plugin's", async () => {
  open = [early, late, other];
  await tabs.loadUnloaded("chat");
  assert.deepEqual(reloaded, [2]);
});

test("a tab that is closed just then is not an error", async () => {
  open = [early];
  isClosed = true;
  await tabs.loadUnloaded("chat");
  assert.deepEqual(reloaded, [1]);
});

for (const [what, tab] of Object.entries({
  "is loading": { id: 4, url, status: "loading" },
  "is about to show one": { id: 4, url: "", pendingUrl: url, status: "loading" },
})) {
  test(`none is loaded if a tab of the plugin ${what}`, async () => {
    open = [early, tab];
    await tabs.loadUnloaded("chat");
    assert.deepEqual(reloaded, []);
  });
}

test("none is loaded if the plugin has a page, ready or not", async () => {
  open = [early];
  registry.documents.set("a", /** @type {any} */ ({ plugins: new Map([["chat", {}]]) }));
  await tabs.loadUnloaded("chat");
  assert.deepEqual(reloaded, []);
});

test("a tab whose page has crashed is not loaded again", async () => {
  open = [{ ...early, discarded: false }];
  await tabs.loadUnloaded("chat");
  assert.deepEqual(reloaded, []);
});
