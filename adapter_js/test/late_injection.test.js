// Plugins that are added to documents that are already open.

import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "./fakes.js";

const TAB = 7;
/** @type {string} what Chrome says when a script is injected */
let refusal = "";
let status = "complete"; // of the tab
/** @type {PromiseWithResolvers<void> | null} if the page hangs */
let hang = null;
/** @type {string[][]} the files that were injected */
const injected = [];

Object.assign(globalThis, {
  chrome: {
    runtime: { getURL: String, getManifest: () => ({ version: "1" }) },
    permissions: { contains: async () => true },
    scripting: {
      executeScript: async (/** @type {{files: string[]}} */ { files }) => {
        injected.push(files);
        await hang?.promise;
        if (refusal !== "") throw new Error(refusal);
      },
      getRegisteredContentScripts: async () => [],
      registerContentScripts: async () => {},
    },
    storage: {
      local: { get: async () => ({}), set: async () => {} },
      session: { get: async () => ({ loadId: "this" }), set: async () => {} },
    },
    tabs: { query: async () => [{ id: TAB, url: "https://chat.example/", status }] },
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
  "Frame with ID 0 is showing error page",
]) {
  test(`a document that is left or was never loaded is not a problem of its plugins: ${left}`, async () => {
    refusal = left;
    assert.deepEqual((await plugins.sync([CHAT])).problems, []);
  });
}

test("a page that Chrome does not let plugins into is a problem", async () => {
  refusal = "Cannot access contents of the page.";
  const { problems } = await plugins.sync([CHAT]);
  assert.deepEqual(problems, [{ plugin: "chat", tabId: TAB, message: `Error: ${refusal}` }]);
});

test("nothing is injected into a tab that was discarded", async () => {
  refusal = "Cannot access contents of the page.";
  injected.length = 0;
  status = "unloaded";
  const { problems } = await plugins.sync([CHAT]);
  status = "complete";
  assert.deepEqual([problems, injected], [[], []]);
});

test("a page that hangs receives one runtime, regardless of how many lists of plugins arrive", async () => {
  refusal = "";
  injected.length = 0;
  hang = Promise.withResolvers();
  const synced = [plugins.sync([CHAT]), plugins.sync([CHAT]), plugins.sync([CHAT])];
  await settled();
  hang.resolve();
  await Promise.all(synced);
  const isRuntime = (/** @type {string[]} */ files) => files.includes("content/runtime.js");
  assert.equal(injected.filter(isRuntime).length, 1);
  await plugins.sync([CHAT]);
  assert.equal(injected.filter(isRuntime).length, 2);
});

test("the problems of a list concern only its own plugins", async () => {
  refusal = "Cannot access contents of the page.";
  hang = Promise.withResolvers();
  const first = plugins.sync([CHAT]);
  await settled();
  const second = plugins.sync([]);
  await settled();
  hang.resolve();
  const named = (/** @type {any} */ { problems }) =>
    problems.map((/** @type {any} */ p) => p.plugin);
  assert.deepEqual([named(await first), named(await second)], [["chat"], []]);
});
