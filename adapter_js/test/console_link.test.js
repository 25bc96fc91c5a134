// The console's connection to the server, and the state it fills, while a view of the page throws.

import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "./fakes.js";
import { withGlobals } from "./sdk/fakes.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const page = new URL("../../opentabs_py/console/page/", import.meta.url);
const { Link } = await import(`${page}link.js`);
const { Store } = await import(`${page}store.js`);
const { TestStore } = await import(`${page}../../runner/page/test_store.js`);

/** @import { TestContext } from "node:test" */

const BROKEN = new Error("a view is broken");

/** @param {number} version */
function update(version) {
  return { boot: "a", now: 0, version };
}

/** @param {boolean} isOurs */
function turnOf(isOurs) {
  return Object.assign(new EventTarget(), { isOurs });
}

/**
 * A server whose stream sends these updates and stays open.
 * @param {TestContext} t
 * @param {object[]} updates
 */
function serve(t, updates) {
  /** @type {string[]} */
  const requested = [];
  /** @type {unknown[]} */
  const reported = [];
  withGlobals(t, {
    reportError: (/** @type {unknown} */ error) => reported.push(error),
    setTimeout: () => 0, // never reconnects
    fetch: async (/** @type {string} */ url, /** @type {RequestInit} */ { signal }) => {
      requested.push(url);
      const body = new ReadableStream({
        start(stream) {
          signal?.addEventListener("abort", () => stream.error(signal.reason));
          for (const each of updates) {
            stream.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(each)}\n\n`));
          }
        },
      });
      return new Response(body);
    },
  });
  return { requested, reported };
}

test("an error in the handler of an update is reported, and the connection stays open", async (t) => {
  const { requested, reported } = serve(t, [update(1), update(2)]);
  /** @type {number[]} */
  const handled = [];
  /** @type {string[]} */
  const shown = [];
  new Link().follow(
    (/** @type {{version: number}} */ { version }) => {
      handled.push(version);
      if (version === 1) throw BROKEN;
    },
    (/** @type {string} */ state) => shown.push(state),
    turnOf(true),
  );
  for (let turn = 0; turn < 100 && handled.length < 2; turn++) await settled();
  await settled();
  assert.deepEqual(handled, [1, 2]);
  assert.deepEqual(shown, ["live", "live"]);
  assert.deepEqual(reported, [BROKEN]);
  assert.equal(requested.length, 1);
});

test("a page whose turn ends closes its connection, and opens one when its turn comes", async (t) => {
  const { requested } = serve(t, [update(1)]);
  const turn = turnOf(false);
  /** @type {string[]} */
  const shown = [];
  new Link().follow(
    () => {},
    (/** @type {string} */ state) => shown.push(state),
    turn,
  );
  for (const isOurs of [false, true, false, false, true]) {
    turn.isOurs = isOurs;
    turn.dispatchEvent(new Event("change"));
    for (let i = 0; i < 10; i++) await settled();
  }
  assert.deepEqual(requested, [
    "/console/api/stream?boot=&since=0",
    "/console/api/stream?boot=a&since=1",
  ]);
  assert.deepEqual(shown, ["connecting", "connecting", "live", "connecting", "connecting", "live"]);
});

for (const AnyStore of [Store, TestStore]) {
  test(`a listener of a ${AnyStore.name} that throws does not stop the others`, (t) => {
    const { reported } = serve(t, []);
    const store = new AnyStore();
    /** @type {string[]} */
    const called = [];
    store.subscribe(() => {
      called.push("broken");
      throw BROKEN;
    });
    store.subscribe(() => called.push("next"));
    store.apply(update(1));
    assert.deepEqual(called, ["broken", "next"]);
    assert.deepEqual(reported, [BROKEN]);
  });
}

test("questions are shown only while the server that asks them is connected", () => {
  const store = new Store();
  /** @type {number[]} */
  const shown = [];
  store.subscribe((/** @type {ReadonlySet<string>} */ changed) => {
    if (changed.has("questions")) shown.push(store.rows("questions").size);
  });
  const changes = { reset: true, changed: [{ id: "q" }], gone: [] };
  store.apply({ ...update(1), questions: changes, logs: changes });
  store.disconnect();
  store.disconnect();
  assert.equal(store.rows("logs").size, 1);
  store.apply(update(1)); // the same server, with nothing new
  store.apply(update(2));
  assert.deepEqual(shown, [1, 0, 1]);
});

test("all sections are shown again when the server comes back, because requests may have failed", () => {
  const store = new Store();
  /** @type {number[]} */
  const shown = [];
  store.subscribe((/** @type {ReadonlySet<string>} */ changed) => shown.push(changed.size));
  store.apply(update(1));
  store.apply(update(2));
  store.disconnect();
  store.apply(update(2));
  assert.deepEqual(shown, [7, 0, 2, 7]);
});

test("a call that runs is shown as lost while its server is gone", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 60_000 });
  const store = new Store();
  /** @type {any[][]} */
  const shown = [];
  store.subscribe((/** @type {ReadonlySet<string>} */ changed) => {
    if (changed.has("calls")) shown.push([...store.rows("calls").values()]);
  });
  const running = { id: "r", state: "running", started: 50, seconds: 0, error: null };
  const ended = { id: "e", state: "succeeded", started: 50, seconds: 1, error: null };
  const calls = { reset: true, changed: [running, ended], gone: [] };
  store.apply({ ...update(1), now: 60, calls });
  store.disconnect();
  t.mock.timers.tick(5000);
  store.apply({ ...update(2), now: 65 }); // the same server, with nothing new
  const error = { code: "SERVER_STOPPED", message: "The server stopped during this call." };
  const lost = { ...running, state: "lost", seconds: 10, error };
  assert.deepEqual(shown, [
    [running, ended],
    [lost, ended],
    [running, ended],
  ]);
});

test("a run of tests is shown as stopped while its server is gone", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 60_000 });
  const store = new TestStore();
  /** @type {any[]} */
  const shown = [];
  const note = () => {
    const { state, seconds } = store.status;
    const tests = store.tests.map((/** @type {any} */ { state, pause }) => [state, pause]);
    shown.push([state, seconds, ...tests]);
  };
  store.subscribe(note);
  const changed = ["passed", "running", "waiting", "paused"].map((state, at) => ({
    id: state,
    at,
    state,
    pause: state === "paused" ? 1 : null,
  }));
  const status = { state: "running", started: 50, seconds: 0 };
  const tests = { reset: true, changed, gone: [] };
  store.disconnect(); // nothing has been received
  store.apply({ ...update(1), now: 60, tests, status: { ...tests, changed: [status] } });
  store.disconnect();
  store.disconnect();
  assert.deepEqual(store.test("paused").state, "failed");
  t.mock.timers.tick(5000);
  store.apply({ ...update(2), now: 65 }); // the same server, with nothing new
  const running = ["running", 0, ["passed", null], ["running", null], ["waiting", null]];
  assert.deepEqual(shown, [
    [...running, ["paused", 1]],
    ["idle", 10, ["passed", null], ["idle", null], ["idle", null], ["failed", null]],
    [...running, ["paused", 1]],
  ]);
});
