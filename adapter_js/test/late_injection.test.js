// Plugins that come into documents which were open before them.

import assert from "node:assert/strict";
import { test } from "node:test";

const TAB = 7;
/** @type {string} what Chrome says when a script is injected */
let refusal = "";

Object.assign(globalThis, {
  chrome: {
    runtime: { getURL: String, getManifest: () => ({ version: "1" }) },
    permissions: { contains: async () => true },
    scripting: {
      executeScript: async () => Promise.reject(new Error(refusal)),
      getRegisteredContentScripts: async () => [],
      registerContentScripts: async () => {},
    },
    storage: {
      local: { get: async () => ({}), set: async () => {} },
      session: { get: async () => ({ loadId: "this" }), set: async () => {} },
    },
    tabs: { query: async () => [{ id: TAB, url: "https://chat.example/" }] },
  },
});

const plugins = await import("../../extension/background/plugins.js");

/** @type {any} */
const CHAT = {
  name: "chat",
  matches: ["https://chat.example/*"],
  excludeMatches: [],
  file: "adapters/chat.js",
  config: {},
};

for (const left of [
  "Frame with ID 0 was removed.",
  "No tab with id: 7.",
  "No frame with id 0 in tab with id 7.",
]) {
  test(`a document that is left meanwhile is no problem of its plugins: ${left}`, async () => {
    refusal = left;
    assert.deepEqual((await plugins.sync([CHAT])).problems, []);
  });
}

test("a page that Chrome keeps plugins out of is a problem", async () => {
  refusal = "Cannot access contents of the page.";
  const { problems } = await plugins.sync([CHAT]);
  assert.deepEqual(problems, [{ plugin: "chat", tabId: TAB, message: `Error: ${refusal}` }]);
});
