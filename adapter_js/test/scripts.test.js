// The scripts that Chrome injects into later documents.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

/** @import { PluginSpec } from "../../extension/protocol.js" */

/** @type {Map<string, chrome.scripting.RegisteredContentScript>} what is registered, by id */
const registered = new Map();

/** @param {chrome.scripting.RegisteredContentScript} script */
function refuseBroken({ matches }) {
  if (matches?.includes("broken")) throw new Error("Invalid value for 'matches'");
}

Object.assign(globalThis, {
  chrome: {
    scripting: {
      getRegisteredContentScripts: async () => [...registered.values()],
      /** @param {chrome.scripting.RegisteredContentScript[]} scripts */
      async registerContentScripts(scripts) {
        for (const script of scripts) {
          if (registered.has(script.id)) throw new Error(`Duplicate script ID '${script.id}'`);
          refuseBroken(script);
        }
        for (const script of scripts) registered.set(script.id, script);
      },
      /** @param {chrome.scripting.RegisteredContentScript[]} scripts */
      async updateContentScripts(scripts) {
        scripts.forEach(refuseBroken);
        for (const script of scripts) registered.set(script.id, script);
      },
      /** @param {{ids: string[]}} filter */
      async unregisterContentScripts({ ids }) {
        for (const id of ids) registered.delete(id);
      },
    },
  },
});

const { register } = await import("../../extension/background/scripts.js");

/**
 * @param {string} name
 * @param {string} pattern
 * @returns {PluginSpec}
 */
function spec(name, pattern) {
  return { name, version: "1", matches: [pattern], excludeMatches: [], file: "x.js", config: {} };
}
const CHAT = spec("chat", "https://chat.example/*");
const BROKEN = spec("broken", "broken");

beforeEach(() => registered.clear());

test("a plugin whose patterns Chrome refuses does not affect the others", async () => {
  const refused = await register([CHAT, BROKEN]);
  assert.deepEqual(
    refused.map(({ plugin }) => plugin),
    ["broken"],
  );
  assert.deepEqual([...registered.keys()], ["1 realm", "2 runtime", "3 relay"]);
  assert.deepEqual(registered.get("2 runtime")?.matches, CHAT.matches);
});

test("what a worker that died while it tried patterns has left affects no plugin", async () => {
  await register([CHAT]);
  registered.set("5 probe", { id: "5 probe", matches: CHAT.matches, js: [] });
  const refused = await register([CHAT, BROKEN]);
  assert.deepEqual(
    refused.map(({ plugin }) => plugin),
    ["broken"],
  );
  assert.deepEqual([...registered.keys()], ["1 realm", "2 runtime", "3 relay"]);
});
