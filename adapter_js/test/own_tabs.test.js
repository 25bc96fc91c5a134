// The tabs that clients open for themselves.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { settled } from "./fakes.js";

const OWN_TABS = "../../extension/background/own_tabs.js";

/** @type {Set<object>} timers that have neither run nor been cleared */
const pending = new Set();
/** @type {Map<number, string>} the tabs that are open, with their status */
const open = new Map();
/** @type {Record<string, unknown>} */
let stored = {};
let isClosedAtOnce = false;
let workers = 0;

Object.assign(globalThis, {
  setTimeout() {
    const timer = {};
    pending.add(timer);
    return timer;
  },
  clearTimeout: (/** @type {object} */ timer) => pending.delete(timer),
  chrome: {
    storage: {
      session: {
        get: async (/** @type {string} */ key) => ({ [key]: stored[key] }),
        set: async (/** @type {object} */ values) => Object.assign(stored, structuredClone(values)),
      },
    },
    tabs: {
      async create() {
        const id = 7 + open.size;
        if (!isClosedAtOnce) open.set(id, "complete");
        return { id, windowId: 1 };
      },
      async get(/** @type {number} */ id) {
        if (!open.has(id)) throw new Error(`No tab with id: ${id}.`);
        return { status: open.get(id) };
      },
      remove: async (/** @type {number} */ id) => open.delete(id),
      group: async () => 1,
    },
    tabGroups: { query: async () => [{ id: 1, windowId: 1 }] },
    windows: { getLastFocused: async () => ({ id: 1 }) },
  },
});

/** Starts the worker, again unless it is the first. */
async function startWorker() {
  workers++;
  const ownTabs = await import(`${OWN_TABS}?worker=${workers}`);
  ownTabs.restore();
  return ownTabs;
}

beforeEach(() => {
  open.clear();
  stored = {};
  isClosedAtOnce = false;
});

test("a tab that is closed before it has loaded leaves no timer", async () => {
  isClosedAtOnce = true;
  await assert.rejects((await startWorker()).open(), /No tab with id/);
  assert.equal(pending.size, 0);
});

test("a tab that the server does not know is closed when the worker starts again", async () => {
  const first = await startWorker();
  await first.handleAnswered(await first.open());
  await first.open();
  assert.deepEqual([...open.keys()], [7, 8]);
  const next = await startWorker();
  await settled();
  assert.deepEqual(stored.unansweredTabs, [], "the worker after this one would close it again");
  assert.equal(await next.open(), 8);
  assert.deepEqual([...open.keys()], [7, 8]);
});

test("a tab that the server knows stays open when the worker starts again", async () => {
  const first = await startWorker();
  await first.handleAnswered(await first.open());
  await (await startWorker()).open();
  assert.deepEqual([...open.keys()], [7, 8]);
});

test("tabs are opened even if storage fails", async () => {
  stored = Object.freeze({});
  assert.equal(await (await startWorker()).open(), 7);
});
