// The runtime: adapters, and whether they are ready.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CALL, NAME, settled, until } from "./fakes.js";
import { NONCE, startPlugin, startRuntime } from "./runtimes.js";

test("plugins can read the nonces that sign their logs and readiness changes", async () => {
  const { page } = await startRuntime();
  const { _logNonce, _readinessNonce } = page.context.__openTabs;
  assert.deepEqual([_logNonce, _readinessNonce], [NONCE, NONCE]);
});

test("an adapter that did not register itself is reported as missing, with the reason", async () => {
  const { relay } = await startRuntime();
  relay.say("adopt", "ghost");
  await until(() => relay.ofKind("readiness").length > 0, "readiness");
  const state = JSON.parse(/** @type {string} */ (relay.ofKind("readiness")[0]));
  assert.deepEqual([state.plugin, state.readiness], ["ghost", "missing"]);
  assert.match(state.reason, /did not register/);
});

test("a removed plugin cannot be called, and its running calls return their results", async () => {
  const { page, relay, start, answers, call } = await startPlugin(`{
    wait: () => new Promise((resolve) => { globalThis.release = resolve; }),
  }`);
  const waiting = start("wait");
  await settled();
  relay.say("drop", "demo");
  const refused = await call("wait");
  assert.equal(refused.body.code, "PLUGIN_NOT_LOADED");
  page.run("release(1)");
  await until(() => answers(waiting).length > 0, "the answer");
  assert.deepEqual(answers(waiting), [{ kind: "tool.result", body: 1 }]);
});

test("a call does not run in the old adapter if the new one did not register itself", async () => {
  const { page, relay, call } = await startPlugin("{ echo: () => 1 }");
  page.run("globalThis.__openTabs = { adapters: {} };");
  relay.say("adopt", "demo");
  await until(() => relay.ofKind("readiness").length === 2, "readiness");
  const { readiness } = JSON.parse(/** @type {string} */ (relay.ofKind("readiness")[1]));
  assert.equal(readiness, "missing");
  assert.equal((await call("echo")).body.code, "PLUGIN_NOT_LOADED");
});

test("an adapter in a frozen registry that replaced the first one is found", async () => {
  const { page, relay } = await startPlugin("{ next: () => 1 }");
  // As the ecosystem's builds do if an earlier plugin has made `adapters` non-writable.
  page.run(`
    Object.defineProperty(globalThis.__openTabs, "adapters", { writable: false });
    Object.freeze(globalThis.__openTabs.adapters);
    globalThis.__openTabs = Object.freeze({ ...globalThis.__openTabs, adapters: Object.freeze({
      ...globalThis.__openTabs.adapters,
      second: Object.freeze({ isReady: async () => true, tools: Object.freeze([]) }),
    }) });`);
  relay.say("adopt", "second");
  await until(() => relay.ofKind("readiness").length === 2, "the second plugin's readiness");
  const state = JSON.parse(/** @type {string} */ (relay.ofKind("readiness")[1]));
  assert.deepEqual([state.plugin, state.readiness], ["second", "ready"]);
});

/**
 * @param {string} isReady
 * @param {Parameters<typeof startRuntime>[0]} [options]
 */
async function startWithReadiness(isReady, options) {
  const { page, relay } = await startRuntime(options);
  page.context.pass = (/** @type {number} */ ms) => {
    page.clock.now += ms;
  };
  page.run(`globalThis.asked = 0; __openTabs.adapters.demo = { tools: [], isReady: ${isReady} };`);
  relay.say("adopt", "demo");
  await settled();
  return { page, relay, states: () => relay.ofKind("readiness").map((text) => JSON.parse(text)) };
}

test("an isReady() that never settles is called once, and the plugin stays pending", async () => {
  const { page, relay, states } = await startWithReadiness(
    "() => { asked++; return new Promise(() => {}); }",
  );
  relay.say("check", "demo");
  relay.say("check", "demo");
  await settled();
  assert.deepEqual(states(), []);
  assert.equal(page.context.asked, 1);
});

/**
 * A plugin with a tool that counts its runs, and calls of it.
 * @param {string} isReady
 * @param {Parameters<typeof startRuntime>[0]} [options]
 */
async function startAsked(isReady, options) {
  const { page, relay, states } = await startWithReadiness(isReady, options);
  page.run("__openTabs.adapters.demo.tools.push({ name: 'late', handle: () => 1 })");
  relay.say("adopt", "demo");
  await settled();
  const params = { callId: CALL, plugin: "demo", tool: "late", input: {}, trace: false };
  const call = () => relay.say("tool.dispatch", JSON.stringify({ params }));
  return { page, relay, states, call };
}

test("a call waits 6 s for isReady(), then uses the last answer", async () => {
  const { page, relay, call } = await startAsked(
    "() => asked++ < 2 ? Promise.resolve(true) : new Promise(() => {})",
  );
  call();
  await settled();
  assert.deepEqual(relay.ofKind("tool.result"), []);
  const bound = page.timers.findIndex(({ ms }) => ms === 6000);
  page.timers.splice(bound, 1)[0]?.run();
  await until(() => relay.ofKind("tool.result").length === 1, "the result");
  assert.equal(page.context.asked, 3);
});

test("a call continues after isReady() in a page with broken timers", async () => {
  const { page, relay, call } = await startAsked(
    "() => new Promise((resolve) => { globalThis.answer = resolve; })",
    { before: "setTimeout = () => { throw new Error('no'); };" },
  );
  call();
  await settled();
  page.run("answer(true)");
  await until(() => relay.ofKind("tool.result").length === 1, "the result");
});

test("a call is refused if isReady() returns false, and its tool is not started", async () => {
  const { page, relay, states, call } = await startAsked("async () => asked++ < 2");
  call();
  await until(() => relay.ofKind("tool.error").length === 1, "the refusal");
  const error = JSON.parse(/** @type {string} */ (relay.ofKind("tool.error")[0]).slice(NAME));
  assert.deepEqual([error.code, error.started, error.retryable], ["TAB_NOT_READY", false, false]);
  assert.match(error.message, /demo is not ready in this page: isReady\(\) is not true/);
  assert.deepEqual(
    states().map(({ readiness }) => readiness),
    ["ready", "ready", "unavailable"],
  );
  assert.equal(page.timers.filter(({ ms }) => ms === 6000).length, 0);
});

test("a call that is cancelled during isReady() does not start", async () => {
  const { page, relay, call } = await startAsked(
    "() => asked++ < 2 ? Promise.resolve(true) : new Promise((resolve) => { answer = resolve; })",
  );
  call();
  await settled();
  relay.say("tool.cancel", `${CALL}the client cancelled it`);
  await settled();
  assert.deepEqual(relay.ofKind("tool.stopped"), [`${CALL}{"started":false}`]);
  page.run("answer(true)");
  await settled();
  assert.deepEqual([...relay.ofKind("tool.result"), ...relay.ofKind("tool.error")], []);
});

for (const replaced of [true, false]) {
  test(`a plugin that is ${replaced ? "replaced" : "removed"} while a call waits for isReady() does not run it`, async () => {
    const { page, relay, call } = await startAsked(
      "() => { if (++asked < 3) return Promise.resolve(true); return new Promise((resolve) => { globalThis.answer = resolve; }); }",
    );
    call();
    await settled();
    if (replaced) {
      page.run(
        "__openTabs.adapters.demo = { isReady: async () => true, tools: [{ name: 'late', handle: () => 2 }] };",
      );
      relay.say("adopt", "demo");
    } else {
      relay.say("drop", "demo");
    }
    await settled();
    page.run("answer(true)");
    await until(
      () => [...relay.ofKind("tool.result"), ...relay.ofKind("tool.error")].length === 1,
      "the outcome",
    );
    const [result] = relay.ofKind("tool.result");
    const [error] = relay.ofKind("tool.error");
    assert.deepEqual(
      [result?.slice(32), error && JSON.parse(error.slice(32)).code],
      replaced ? ["2", undefined] : [undefined, "PLUGIN_NOT_LOADED"],
    );
  });
}

test("a slow isReady() is not called for each call", async () => {
  const { page, relay, call } = await startAsked("async () => { asked++; pass(60); return true; }");
  const { asked } = page.context;
  call();
  await until(() => relay.ofKind("tool.result").length === 1, "the result");
  assert.equal(page.context.asked, asked);
});

for (const ready of [true, false]) {
  test(`a plugin that was ${ready ? "" : "not "}ready counts as such while it is asked again`, async () => {
    const { page, relay, call } = await startAsked(
      `() => {
        if (++asked > 2) return new Promise(() => {});
        pass(60);
        return Promise.resolve(${ready});
      }`,
    );
    relay.say("ask", "demo");
    await settled();
    assert.equal(page.context.asked, 3);
    call();
    await until(
      () => [...relay.ofKind("tool.result"), ...relay.ofKind("tool.error")].length === 1,
      "the outcome",
    );
    assert.equal(relay.ofKind("tool.result").length, ready ? 1 : 0);
  });
}

test("a query of readiness is answered even if nothing has changed or the plugin is missing", async () => {
  const { relay, states } = await startWithReadiness("async () => true");
  relay.say("ask", "demo");
  relay.say("ask", "ghost");
  await settled();
  assert.deepEqual(
    states().map(({ plugin, readiness }) => [plugin, readiness]),
    [
      ["demo", "ready"],
      ["ghost", "missing"],
      ["demo", "ready"],
    ],
  );
});

for (const [isReady, reason] of [
  ["async () => false", /not true/],
  ["async () => 'yes'", /not true/],
  ["() => { throw new Error('signed out'); }", /threw: Error: signed out/],
  ["async () => { throw { toString() { throw 1; } }; }", /cannot be shown/],
  ["undefined", /threw/],
]) {
  test(`an isReady of ${isReady} means unavailable, with a reason`, async () => {
    const { states } = await startWithReadiness(String(isReady));
    const [state] = states();
    assert.equal(state.readiness, "unavailable");
    assert.match(state.reason, /** @type {RegExp} */ (reason));
  });
}

test("a plugin that is not ready is checked at growing intervals, and reported once", async () => {
  const { page, states } = await startWithReadiness("async () => { asked++; return false; }");
  const waits = [];
  for (let i = 0; i < 7; i++) {
    const { run, ms } = /** @type {{run: () => void, ms: number}} */ (page.timers.shift());
    waits.push(ms / 1000);
    run();
    await settled();
  }
  assert.deepEqual(waits, [2, 4, 8, 16, 30, 30, 30]);
  assert.equal(page.context.asked, 8);
  assert.equal(states().length, 1);
});

test("a plugin whose readiness has changed is checked at once", async () => {
  const { page, relay, states } = await startWithReadiness("async () => asked++ > 0");
  relay.say("check", "demo");
  await settled();
  assert.deepEqual(
    states().map((state) => state.readiness),
    ["unavailable", "ready"],
  );
  assert.equal(page.timers.length, 1);
});
