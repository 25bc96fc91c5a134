// The worker's documents, with a hand-written server and hand-written relays at the other ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import vm from "node:vm";
import { fakeServer, settled } from "./fakes.js";

const TAB = 7;
const PAGE = "d".repeat(32);
const NEXT = "e".repeat(32);

const server = fakeServer();
const { sent } = server;
/** @type {() => Promise<object[]>} the result of a script in a page */
let runInPage = async () => [];
/** @type {any[]} the functions that were run in pages */
const functions = [];

Object.assign(globalThis, {
  chrome: {
    action: { setTitle() {}, setBadgeText() {} },
    runtime: { getURL: String, getManifest: () => ({ version: "1" }), lastError: undefined },
    permissions: { contains: async () => true },
    scripting: {
      executeScript: (/** @type {{func?: Function}} */ { func }) => {
        if (func !== undefined) functions.push(func);
        return runInPage();
      },
      getRegisteredContentScripts: async () => [],
      registerContentScripts: async () => {},
    },
    storage: {
      local: { get: async () => ({}), set: async () => {} },
      session: { get: async () => ({ loadId: "this" }), set: async () => {} },
    },
    tabs: {
      query: async () => [{ id: TAB, status: "complete" }],
      get: async () => ({ id: TAB, status: "complete" }),
    },
    windows: { getLastFocused: async () => ({ id: 1 }) },
  },
});

const documents = await import("../../extension/background/documents.js");
const link = await import("../../extension/background/link.js");
const plugins = await import("../../extension/background/plugins.js");
const registry = await import("../../extension/background/registry.js");
const router = await import("../../extension/background/router.js");
const tabs = await import("../../extension/background/tabs.js");

/** @param {object | string} message */
function say(message) {
  const text =
    typeof message === "string" ? message : JSON.stringify({ jsonrpc: "2.0", ...message });
  server.say(text);
}

/** Connects the worker to the server. */
async function greet() {
  link.start(router.sayHello, router.receive, router.becomeAnother);
  await server.open();
  say({ id: 1, result: { serverVersion: "1", time: 0, messageLimit: 1e9 } });
  await settled();
}

/**
 * Attaches a document's relay.
 * @param {string} documentId
 * @param {string} loadId the load of the extension that answered the relay
 * @param {string[]} calls that the relay has
 * @param {object} [more] of what it says of itself
 */
async function attach(documentId, loadId = "this", calls = /** @type {string[]} */ ([]), more) {
  /** @type {Function} */
  let listener = () => {};
  let close = () => {};
  /** @type {any[]} what the relay was sent and nobody has looked at yet */
  const heard = [];
  const port = {
    name: "relay",
    sender: { tab: { id: TAB }, frameId: 0, documentId: "1", url: "https://chat.example/" },
    onMessage: { addListener: (/** @type {Function} */ given) => (listener = given) },
    onDisconnect: { addListener: (/** @type {() => void} */ given) => (close = given) },
    postMessage: (/** @type {any} */ message) => heard.push(message),
  };
  documents.attach(/** @type {any} */ (port));
  listener({
    type: "attach",
    documentId,
    calls,
    isProtected: true,
    complete: false,
    loadId,
    plugins: [["chat", { injected: "chat.js {}", readiness: "ready" }]],
    ...more,
  });
  await settled();
  /** @param {string} type */
  const take = (type) => heard.splice(0).filter((message) => message.type === type);
  return { say: listener, close, take };
}

/** @param {string} method */
function take(method) {
  return sent.splice(0).flatMap((each) => (each.method === method ? [each.params] : []));
}

/**
 * Announces a call whose first part is in transit.
 * @param {string} callId
 */
function announce(callId, documentId = PAGE) {
  say({ method: "tool.announce", params: { documentId, callId } });
  say(`~${documentId}00000001+{"jsonrpc":"2.0",`);
}

/** @param {string} callId */
function dispatch(callId) {
  const params = { documentId: PAGE, callId, plugin: "chat", tool: "send", input: {} };
  say({ method: "tool.dispatch", params });
}

/** @param {Record<string, string>} config */
function chat(config) {
  const matches = ["https://chat.example/*"];
  return { name: "chat", version: "1", matches, excludeMatches: [], file: "chat.js", config };
}

const FIRST = "1".repeat(32);
const SECOND = "2".repeat(32);
const THIRD = "3".repeat(32);

await greet();
registry.setPlugins([chat({})]);

test("a call whose page is left before its last part arrives is reported as not delivered", async () => {
  await attach(PAGE);
  announce(FIRST);
  take("tool.lost");
  await attach(NEXT);
  assert.deepEqual(take("tool.lost"), [{ callId: FIRST, reason: "not_delivered" }]);
});

test("a call in parts for a document that is gone is reported as not delivered", () => {
  announce(SECOND, "f".repeat(32));
  assert.deepEqual(take("tool.lost"), [{ callId: SECOND, reason: "not_delivered" }]);
});

test("a call is listed as the page's only after all its parts have arrived", async () => {
  const relay = await attach(PAGE);
  announce(THIRD);
  say({ method: "tabs.query", id: 5, params: {} });
  await settled();
  const [before] = sent.splice(0).flatMap(({ id, result }) => (id === 5 ? [result] : []));
  relay.say({ type: "received", callId: THIRD });
  say({ method: "tabs.query", id: 6, params: {} });
  await settled();
  const [after] = sent.splice(0).flatMap(({ id, result }) => (id === 6 ? [result] : []));
  assert.deepEqual(before.documents[0].calls, []);
  assert.deepEqual(after.documents[0].calls, [THIRD]);
});

test("a call that is sent again to a page that has started it counts as possibly run", async () => {
  const relay = await attach(PAGE);
  dispatch(FIRST);
  relay.say({ type: "received", callId: FIRST });
  dispatch(FIRST);
  announce(FIRST);
  take("tool.lost");
  await attach(NEXT);
  assert.deepEqual(take("tool.lost"), [{ callId: FIRST, reason: "navigated" }]);
});

test("a page may start a call as long as its tab shows it and somebody waits for the call", async () => {
  const relay = await attach(PAGE);
  for (const callId of [FIRST, SECOND]) dispatch(callId);
  relay.say({ type: "received", callId: FIRST });
  assert.deepEqual(relay.take("start"), [{ type: "start", callId: FIRST }]);
  const params = { documentId: PAGE, callId: FIRST, reason: "no longer needed" };
  say({ method: "tool.cancel", params });
  relay.say({ type: "received", callId: FIRST });
  await attach(NEXT);
  relay.say({ type: "received", callId: SECOND }); // it was busy
  assert.deepEqual(relay.take("start"), []);
});

test("a call that has not started when the link breaks is not started on the next", async () => {
  const relay = await attach(PAGE);
  dispatch(THIRD);
  say({ id: 1, result: { serverVersion: "1", time: 0, messageLimit: 1e9 } }); // of the next link
  relay.say({ type: "received", callId: THIRD }); // it was busy
  assert.deepEqual(relay.take("start"), []);
});

test("a call that is cancelled before its page has it is not listed", async () => {
  const relay = await attach(PAGE);
  dispatch(SECOND);
  const params = { documentId: PAGE, callId: SECOND, reason: "no longer needed" };
  say({ method: "tool.cancel", params });
  relay.say({ type: "received", callId: SECOND });
  sent.splice(0);
  say({ method: "tabs.query", id: 8, params: {} });
  await settled();
  const [state] = sent.splice(0).flatMap(({ id, result }) => (id === 8 ? [result] : []));
  assert.deepEqual(state.documents[0].calls, []);
});

/** Returns the ids of the documents that the server receives. */
async function listed() {
  sent.splice(0);
  say({ method: "tabs.query", id: 7, params: {} });
  await settled();
  const [state] = sent.splice(0).flatMap(({ id, result }) => (id === 7 ? [result] : []));
  return state?.documents.map((/** @type {any} */ each) => each.documentId);
}

/**
 * From now on, the page that replaces another blocks its thread.
 * @param {import("node:test").TestContext} t
 */
function block(t) {
  /** @type {PromiseWithResolvers<object[]>} */
  const { promise, resolve } = Promise.withResolvers();
  const before = runInPage;
  runInPage = () => promise;
  t.after(() => {
    runInPage = before;
    resolve([]);
  });
  return resolve;
}

test("a new page that blocks its thread does not delay responses", async (t) => {
  const relay = await attach(PAGE);
  block(t);
  relay.close();
  await attach(NEXT);
  assert.deepEqual(await listed(), [NEXT]);
});

test("a page that blocks its thread and has no relay delays responses by at most 300 ms", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const relay = await attach(PAGE, "this", [FIRST]);
  const answer = block(t);
  relay.close();
  assert.equal(await listed(), undefined);
  t.mock.timers.tick(300);
  assert.deepEqual(await listed(), [PAGE]);
  assert.deepEqual(take("tool.lost"), []);
  answer([{ documentId: "another" }]);
  await settled();
  assert.deepEqual(take("tool.lost"), [{ callId: FIRST, reason: "navigated" }]);
  assert.deepEqual(await listed(), []);
});

test("the relay of an earlier load of the extension is not listed", async () => {
  await attach(PAGE, "this", [FIRST]);
  await attach(NEXT, "earlier", [SECOND]); // before the worker has read its own load id
  assert.deepEqual(await listed(), [NEXT]);
  registry.restore();
  await registry.ready();
  assert.deepEqual(await listed(), []);
  await attach(PAGE, "this", [FIRST]);
  await attach(NEXT, "earlier", [SECOND]);
  assert.deepEqual(await listed(), [PAGE]);
});

/** @param {any[]} adopted the relay's messages of plugins that it has adopted since */
function having(adopted) {
  const state = (/** @type {any} */ { type, plugin, ...more }) => [plugin, more];
  return { complete: true, plugins: adopted.map(state) };
}

test("a plugin whose settings have changed is injected again, even into a document that missed the change", async () => {
  await plugins.sync([chat({ key: "old" })]);
  const page = await attach(PAGE, "this", [], having([]));
  const old = page.take("adopt");
  await plugins.sync([chat({ key: "new" })]);
  assert.deepEqual([old.length, page.take("adopt").length], [1, 1]);

  // It was restored from the cache, or the worker ended before injecting the stored settings.
  const back = await attach(NEXT, "this", [], having(old));
  const now = back.take("adopt");
  assert.equal(now.length, 1);
  const again = await attach(PAGE, "this", [], having(now));
  assert.deepEqual(again.take("adopt"), []);
});

const PUBLIC = "https://chat.example/public";

test("a plugin is dropped at a URL that it does not serve, even if it still reports to be ready", async () => {
  await plugins.sync([{ ...chat({}), excludeMatches: [PUBLIC] }]);
  const page = await attach(PAGE, "this", [], having([]));
  page.say({ type: "readiness", plugin: "chat", state: { readiness: "ready" } });
  assert.deepEqual(await listed(), [PAGE]);

  documents.handleUrlChange(TAB, PUBLIC);
  await settled();
  page.say({ type: "readiness", plugin: "chat", state: { readiness: "ready" } });
  assert.deepEqual(await listed(), []);
  assert.deepEqual(page.take("drop"), [{ type: "drop", plugin: "chat" }]);

  documents.handleUrlChange(TAB, "https://chat.example/");
  await settled();
  assert.deepEqual([await listed(), page.take("adopt").length], [[PAGE], 1]);
});

test("a query is answered while a document is still loading", async () => {
  await plugins.sync([chat({})]);
  const relay = await attach(PAGE, "this", [], { plugins: [] });
  sent.splice(0);
  say({ method: "tabs.query", id: 11, params: { plugin: "chat" } });
  await settled();
  const [state] = sent.splice(0).flatMap(({ id, result }) => (id === 11 ? [result] : []));
  assert.equal(state.documents[0].plugins.chat.readiness, "pending");
  assert.deepEqual(relay.take("ask"), []);
});

test("a query is answered when the plugin it asks is dropped from the page", async () => {
  await plugins.sync([{ ...chat({}), excludeMatches: [PUBLIC] }]);
  await attach(PAGE, "this", [], having([]));
  sent.splice(0);
  say({ method: "tabs.query", id: 8, params: { plugin: "chat" } });
  documents.handleUrlChange(TAB, PUBLIC);
  await settled();
  assert.deepEqual(
    sent.splice(0).flatMap(({ id, result }) => (id === 8 ? [result.documents] : [])),
    [[]],
  );
});

for (const when of ["before", "during"]) {
  test(`a query is answered at once if a plugin's injection fails ${when} it`, async () => {
    await plugins.sync([chat({})]);
    const before = runInPage;
    const injecting = Promise.withResolvers();
    runInPage = () => injecting.promise;
    const fail = () => injecting.reject(new Error("Could not load file"));
    try {
      if (when === "before") fail();
      const relay = await attach(PAGE, "this", [], { plugins: [], complete: true });
      sent.splice(0);
      say({ method: "tabs.query", id: 12, params: { plugin: "chat" } });
      if (when === "during") fail();
      await settled();
      const [state] = sent.splice(0).flatMap(({ id, result }) => (id === 12 ? [result] : []));
      assert.equal(state?.documents[0].plugins.chat.readiness, "missing");
      assert.match(state.documents[0].plugins.chat.reason, /could not be injected/);
      assert.equal(relay.take("ask").length, when === "before" ? 0 : 1);
    } finally {
      runInPage = before;
    }
  });
}

test("a query is answered when the relay it asked reconnects", async () => {
  await plugins.sync([chat({})]);
  const relay = await attach(PAGE);
  sent.splice(0);
  say({ method: "tabs.query", id: 9, params: { plugin: "chat" } });
  await settled();
  assert.equal(relay.take("ask").length, 1);
  await attach(PAGE);
  assert.equal(sent.filter(({ id }) => id === 9).length, 1);
});

/**
 * Chrome rejects the next query of its tabs.
 * @param {import("node:test").TestContext} t
 */
function refuseOnce(t) {
  const refuse = async () => {
    chrome.tabs.query = before;
    throw new Error("Chrome refuses");
  };
  const before = chrome.tabs.query;
  chrome.tabs.query = /** @type {any} */ (refuse);
  t.after(() => {
    chrome.tabs.query = before;
  });
}

test("a request that Chrome rejects is answered with an error", async (t) => {
  refuseOnce(t);
  sent.splice(0);
  say({ method: "tabs.query", id: 10, params: {} });
  await settled();
  const error = { code: -32603, message: "Error: Chrome refuses" };
  assert.deepEqual(
    sent.filter(({ id }) => id === 10),
    [{ jsonrpc: "2.0", id: 10, error }],
  );
});

test("a change of tabs is sent after Chrome rejected the first query", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  refuseOnce(t);
  const refused = tabs.sendState().catch(() => undefined);
  take("tabs.changed");
  await refused;
  await settled();
  assert.equal(take("tabs.changed").length, 0);
  t.mock.timers.tick(1000);
  await settled();
  assert.equal(take("tabs.changed").length, 1);
});

test("a page that keeps changing its readiness is reported at most every 100 ms", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const relay = await attach(PAGE);
  const flip = async () => {
    for (const readiness of ["unavailable", "ready", "unavailable"]) {
      relay.say({ type: "readiness", plugin: "chat", state: { readiness } });
      await settled();
    }
    return take("tabs.changed").map(({ documents }) => documents[0].plugins.chat.readiness);
  };
  sent.splice(0);
  assert.deepEqual(await flip(), ["unavailable"]);
  assert.deepEqual(await flip(), []);
  t.mock.timers.tick(100);
  await settled();
  assert.equal(take("tabs.changed").length, 1);
  assert.deepEqual(await flip(), ["unavailable"]);
  t.mock.timers.tick(100);
});

test("a relay without a tab, such as in a side panel, is not disconnected", () => {
  const port = {
    name: "relay",
    sender: { frameId: 0 },
    disconnect: () => assert.fail("it would connect again"),
  };
  documents.attach(/** @type {any} */ (port));
});

test("a setting that was removed is removed from the page, unless another plugin has it", async () => {
  registry.setPlugins([chat({ site: "a" })]);
  const relay = await attach("9".repeat(32), "this", [], { plugins: [] });
  relay.say({ type: "complete" });
  await settled();
  const page = vm.createContext({ console });
  const replace = vm.runInContext(`(${functions.at(-1)})`, page);
  const settings = () => ({ ...page.__openTabs.pluginConfig });
  replace("chat", { key: "secret", shared: 1 });
  replace("mail", { shared: 2 });
  replace("mail", {});
  assert.deepEqual(settings(), { key: "secret", shared: 1 }); // the other plugin's applies again
  replace("mail", { shared: 2 });
  replace("chat", {});
  assert.deepEqual(settings(), { shared: 2 });
  replace("mail", null);
  assert.deepEqual(settings(), {});
});
