// The runtime: the channel to the relay, in pages that are hostile.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CALL, channelEnd, makeNode, makePage, settled } from "./fakes.js";
import { makeOffer, RUNTIME, startPlugin } from "./runtimes.js";

test("a message that is not on the channel's node is ignored", async () => {
  const { page, call, answers } = await startPlugin(
    "{ next: () => { globalThis.runs = (globalThis.runs ?? 0) + 1; } }",
  );
  await call("next");
  const params = { callId: CALL, plugin: "demo", tool: "next", input: {}, trace: false };
  const detail = `tool.dispatch ${JSON.stringify({ params })}`;
  for (const name of ["down", "up", "opentabs:offer", "opentabs:ready"]) {
    page.document.dispatchEvent(new CustomEvent(name, { detail, cancelable: true }));
  }
  await settled();
  assert.equal(page.context.runs, 1);
  assert.deepEqual(answers(CALL), []);
});

for (const hasRealm of [true, false]) {
  test(`a second offer is ignored ${hasRealm ? "with" : "without"} a realm`, async () => {
    const { page, call } = await startPlugin("{ next: () => 1 }", { hasRealm });
    const other = makeNode();
    page.document.dispatchEvent(makeOffer(other));
    assert.throws(
      () => channelEnd(other, { hears: "up", says: "down" }).say("nonce", ""),
      /nobody/,
    );
    assert.equal((await call("next")).body, 1);
  });
}

test("a frame of another origin or of the page is not used as the relay's", () => {
  for (const frame of ["{ get document() { throw 1; } }", "{ document: {} }", "window"]) {
    const node = makeNode();
    const page = makePage();
    page.run(`window = globalThis; window[0] = ${frame};`);
    page.run(RUNTIME);
    page.document.dispatchEvent(makeOffer(node));
    channelEnd(node, { hears: "up", says: "down" }).say("nonce", "");
  }
});

test("the input of a tool consists of objects of the page's own realm", async () => {
  const { call } = await startPlugin(`{
    look: (input) => [
      Object.getPrototypeOf(input) === Object.prototype,
      input.list instanceof Array,
      input.list[1] instanceof Object,
      Object.keys(input),
      Object.hasOwn(input, "__proto__") && input["__proto__"].own,
      input.list,
    ],
  }`);
  const input = JSON.parse(
    '{"list": [1, {"a": null}, [[2]]], "__proto__": {"own": "yes"}, "z": 1}',
  );
  assert.deepEqual((await call("look", input)).body, [
    true,
    true,
    true,
    ["list", "__proto__", "z"],
    "yes",
    [1, { a: null }, [[2]]],
  ]);
});

// What a hostile page does to its builtins before the plugin's tools run. Each records what it sees.
const PATCHES = {
  CustomEvent: `
    CustomEvent = new Proxy(CustomEvent, { construct(...args) { note(args[1]); throw 1; } });`,
  "dispatchEvent and listeners": `
    for (const name of ["dispatchEvent", "addEventListener", "removeEventListener"]) {
      EventTarget.prototype[name] = document[name] = (...args) => { note(args); throw 1; };
    }`,
  "the event's own members": `
    for (const name of ["preventDefault", "stopImmediatePropagation"]) {
      Event.prototype[name] = function () { note([this.type, this.detail]); throw 1; };
    }
    Object.defineProperty(CustomEvent.prototype, "detail", {
      get() { note([this.type]); return "FORGED"; }, configurable: true });`,
  JSON: `
    JSON.parse = JSON.stringify = (...args) => { note(args); throw 1; };
    JSON = null;`,
  Promise: `
    for (const name of ["then", "catch", "finally"]) {
      const clean = Promise.prototype[name];
      Promise.prototype[name] = function (...args) { note([this]); return clean.apply(this, args); };
    }
    Promise = null;`,
  "Array.prototype": `
    for (const name of ["push", "splice", "slice", "map", "join", "pop", "shift"]) {
      Array.prototype[name] = function (...args) { note([...(this ?? []), args]); throw 1; };
    }
    const values = Array.prototype[Symbol.iterator];
    Array.prototype[Symbol.iterator] = function () {
      for (let i = 0; i < this.length; i++) note(this[i]);
      throw 1;
    };`,
  "String.prototype": `
    for (const name of ["slice", "split", "substring", "charCodeAt", "padStart", "replace"]) {
      String.prototype[name] = function () { note(String(this)); throw 1; };
    }
    String.prototype[Symbol.iterator] = function () { note(String(this)); throw 1; };`,
  "Map.prototype": `
    for (const name of ["get", "set", "has", "delete"]) {
      Map.prototype[name] = function (...args) { note(args); throw 1; };
    }`,
  "Reflect, Function.prototype and randomness": `
    Function.prototype.call = Function.prototype.apply = Function.prototype.bind = null;
    Reflect.apply = (...args) => { note(args); throw 1; };
    Reflect = null;
    Math.random = () => 0;
    crypto = { getRandomValues: (bytes) => bytes };
    Uint8Array = null;`,
  "accessors on Object.prototype": `
    for (const name of ["detail", "cancelable", "bubbles", "composed", "get", "set", "code",
      "category", "retryable", "retryAfterMs", "trace", "probing", "signal", "0", "1", "2"]) {
      Object.defineProperty(Object.prototype, name, {
        get() { note([name, typeof this === "object" ? this?.type : String(this)]); },
        set(value) { note([name, value]); }, configurable: true });
    }`,
  "members of a tool on Object.prototype": `
    Object.prototype.toJson = (value) => { note([value]); return '"FORGED"'; };
    Object.prototype.name = "FORGED";`,
  "toJSON on Object.prototype": `
    Object.defineProperty(Object.prototype, "toJSON", {
      get() { return function () { note([this]); return "FORGED"; }; }, configurable: true });`,
};

const TOOLS = `{
  work: async ({ n }, { reportProgress }) => {
    reportProgress({ progress: 1, total: 2, message: "half" });
    await null;
    reportProgress({ progress: 2, total: 2, message: "whole" });
    return { list: [n === "SECRET", "two"], deep: { yes: true } };
  },
  fail: () => { throw { code: "NOPE", message: "No.", retryable: true }; },
}`;

for (const [what, code] of Object.entries(PATCHES)) {
  for (const when of ["before the runtime", "after the runtime"]) {
    test(`a page that patched ${what} ${when} cannot see or break a call`, async () => {
      // Node cannot add globals to a context with accessors on Object.prototype.
      const before =
        when === "after the runtime" ? "" : `var __openTabs = { adapters: {} };${code}`;
      const { page, call, reports, seen } = await startPlugin(TOOLS, { before });
      if (when === "after the runtime") page.run(code);

      const { kind, body, callId } = await call("work", { n: "SECRET" });
      const failed = await call("fail");

      assert.deepEqual([kind, body], ["tool.result", { list: [true, "two"], deep: { yes: true } }]);
      assert.deepEqual(
        reports(callId).map((report) => [report.progress, report.total, report.message]),
        [
          [1, 2, "half"],
          [2, 2, "whole"],
        ],
      );
      assert.equal(failed.body.code, "NOPE");
      for (const secret of [callId, failed.callId, "SECRET", "tool.dispatch"]) {
        assert.ok(!seen.some((text) => text.includes(secret)), `the page saw ${secret}`);
      }
    });
  }
}

test("a page that patched the iterators of Map and Set cannot change a result", async () => {
  const { page, call } = await startPlugin(
    "{ give: () => ({ map: new Map([['a', 1]]), set: new Set([2]) }) }",
  );
  page.run(`
    Map.prototype[Symbol.iterator] = Map.prototype.entries = function* () { yield ["FORGED", 1]; };
    Set.prototype[Symbol.iterator] = Set.prototype.values = function* () { yield "FORGED"; };`);
  assert.deepEqual((await call("give")).body, { map: { a: 1 }, set: [2] });
});

test("a page obtains no function of the runtime from the stacks of its own errors", async () => {
  const taken = "new Error().stack";
  const before = `
    // V8 gives out each function on the stack, but none that is in strict mode.
    Error.prepareStackTrace = (_error, sites) =>
      sites.flatMap((site) => site.getFunction()?.name ?? []);`;
  const { call } = await startPlugin(
    `{
      stack: () => ${taken},
      report: (_, { reportProgress }) => {
        let found;
        reportProgress({ get message() { found = ${taken}; } });
        return found;
      },
      convert: () => ({ toJSON: () => ${taken} }),
    }`,
    { before },
  );
  assert.deepEqual((await call("stack")).body, ["stack"]);
  assert.deepEqual((await call("report")).body, ["get message"]);
  assert.deepEqual((await call("convert")).body, ["toJSON"]);
});
