// The tabs that clients open for themselves.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { settled } from "./fakes.js";

const OWN_TABS = "../../extension/background/own_tabs.js";

/** @type {Map<object, () => void>} timers that have neither run nor been cleared */
const pending = new Map();
/** @type {Map<number, string>} the tabs that are open, with their status */
const open = new Map();
/** @type {[number, string][]} the pages that were shown, with their tabs */
let shown = [];
/** @type {Record<string, unknown>} */
let stored = {};
let isClosedAtOnce = false;
let workers = 0;

Object.assign(globalThis, {
  setTimeout(/** @type {() => void} */ run) {
    const timer = {};
    pending.set(timer, run);
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
      async update(/** @type {number} */ id, /** @type {{url: string}} */ { url }) {
        shown.push([id, url]);
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

/** Runs the timers that are pending, and what follows from them. */
async function runTimers() {
  for (const [timer, run] of [...pending]) {
    pending.delete(timer);
    run();
  }
  await settled();
}

beforeEach(() => {
  pending.clear();
  open.clear();
  shown = [];
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

test("a page that Chrome loses is shown again, until its tab shows something", async () => {
  const ownTabs = await startWorker();
  const tabId = await ownTabs.open();
  const showing = ownTabs.show(tabId, "https://a.example/");
  await settled();
  open.set(tabId, "unloaded");
  await runTimers();
  await runTimers();
  assert.deepEqual(shown, Array(3).fill([tabId, "https://a.example/"]));
  open.set(tabId, "complete");
  await runTimers();
  await showing;
  assert.equal(shown.length, 3);
  assert.equal(pending.size, 0);
});

test("a page whose server is slow is asked for once, and not watched forever", async () => {
  const ownTabs = await startWorker();
  const tabId = await ownTabs.open();
  const showing = ownTabs.show(tabId, "https://a.example/");
  await settled();
  open.set(tabId, "loading");
  let looks = 0;
  while (pending.size > 0) {
    await runTimers();
    looks++;
  }
  await showing;
  assert.equal(looks, 7);
  assert.equal(shown.length, 1);
});
