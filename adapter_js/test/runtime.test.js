// The runtime in a page's own world, with a hand-written relay at the other end.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CALL,
  channelEnd,
  FocusEvent,
  makeNode,
  makePage,
  NAME,
  settled,
  source,
  until,
} from "./fakes.js";

const RUNTIME = source("adapter_js/runtime.js");

const NONCE = "f".repeat(NAME);

/**
 * A page with the runtime in it.
 * @param {{before?: string, hasRealm?: boolean}} [options] code that the page ran before, and
 *     whether the relay could create a realm
 */
async function startRuntime({ before = "", hasRealm = true } = {}) {
  const node = makeNode();
  const page = makePage(hasRealm ? node : undefined);
  const relay = channelEnd(node, { hears: "up", says: "down" });
  /** @type {string[]} */
  const seen = [];
  page.context.note = (/** @type {unknown} */ thing) => {
    seen.push(inspect(thing));
  };
  page.run(before);
  page.run(RUNTIME);
  const offer = () => page.document.dispatchEvent(makeOffer(node));
  if (!hasRealm) offer();
  relay.say(`n${NONCE}`);
  await settled(); // the page's own scripts run later, too
  return { page, relay, seen, offer };
}

/** @param {EventTarget} node */
function makeOffer(node) {
  return new FocusEvent("opentabs:offer", { relatedTarget: node });
}

/**
 * The same, with a plugin whose tools are given as the source of an object of handlers.
 * @param {string} tools
 * @param {Parameters<typeof startRuntime>[0]} [options]
 */
async function startPlugin(tools, options) {
  const { page, relay, seen, offer } = await startRuntime(options);
  // Created with Node's builtins, because the page may have patched its own.
  const handlers = Object.entries(page.run(`(${tools})`));
  page.context.__openTabs.adapters.demo = {
    isReady: async () => true,
    tools: handlers.map(([name, handle]) => ({ name, handle })),
  };
  relay.say("ademo");
  await until(() => relay.ofKind("s").length === 1, "the plugin's readiness");

  let calls = 0;
  /**
   * @param {string} tool
   * @param {object} [input]
   */
  function start(tool, input = {}, trace = false) {
    const callId = (calls++).toString(16).padStart(NAME, "0");
    const params = {
      documentId: "d".repeat(NAME),
      callId,
      plugin: "demo",
      tool,
      input,
      trace,
    };
    relay.say(`d${JSON.stringify({ jsonrpc: "2.0", method: "tool.dispatch", params })}`);
    return callId;
  }
  /** @param {string} callId */
  function answers(callId) {
    return relay.heard
      .filter((text) => /^[re]/.test(text) && text.slice(1, NAME + 1) === callId)
      .map((text) => ({ kind: text[0], body: JSON.parse(text.slice(NAME + 1)) }));
  }
  /** @param {string} callId */
  function reports(callId) {
    return relay
      .ofKind("p")
      .filter((text) => text.startsWith(callId))
      .flatMap((text) => JSON.parse(`[${text.slice(NAME)}]`));
  }
  /**
   * @param {string} tool
   * @param {object} [input]
   */
  async function call(tool, input) {
    const callId = start(tool, input);
    await until(() => answers(callId).length > 0, `an answer of ${tool}`);
    return { callId, .../** @type {{kind: string, body: any}} */ (answers(callId)[0]) };
  }
  return { page, relay, seen, offer, start, answers, reports, call };
}

// --- calls ---

test("a tool runs with its input, and its return value is the result", async () => {
  const { call } = await startPlugin("{ double: async ({ n }) => ({ n: n * 2 }) }");
  const { kind, body } = await call("double", { n: 21 });
  assert.deepEqual([kind, body], ["r", { n: 42 }]);
});

test("a call runs once in a page with two runtimes", async () => {
  const tools = "{ once: () => { note('ran'); return 1; } }";
  const { call, seen } = await startPlugin(tools, { before: RUNTIME, hasRealm: false });
  assert.equal((await call("once")).body, 1);
  await settled();
  assert.equal(seen.length, 1);
});

for (const delivers of [true, false]) {
  const does = delivers ? "delivers its logs itself" : "may have posted logs";
  test(`a plugin that ${does} ${delivers ? "sends only the result" : "announces the end of a call before its result"}`, async () => {
    const { page, relay, call } = await startPlugin("{ plain: () => 'done' }");
    page.context.__openTabs.adapters.demo.deliversLogs = delivers;
    relay.say("ademo");
    const { callId } = await call("plain");
    const kinds = relay.heard.filter((text) => text.slice(1).startsWith(callId)).map((t) => t[0]);
    assert.deepEqual(kinds, delivers ? ["r"] : ["l", "r"]);
  });
}

test("a handler is called with its tool as `this`", async () => {
  const { call } = await startPlugin("{ me() { return this.name; } }");
  assert.equal((await call("me")).body, "me");
});

test("a handler without a context parameter works", async () => {
  const { call } = await startPlugin("{ plain: () => 'done' }");
  assert.equal((await call("plain")).body, "done");
});

test("a call to a tool that the page does not have fails with PLUGIN_NOT_LOADED", async () => {
  const { call } = await startPlugin("{}");
  const { kind, body } = await call("nothing");
  assert.deepEqual([kind, body.code, body.retryable], ["e", "PLUGIN_NOT_LOADED", true]);
  assert.match(body.message, /tool nothing of plugin demo.*Reload/);
});

// Each: what the tool returns, and the result.
for (const [value, expected] of /** @type {[string, unknown][]} */ ([
  ["undefined", null],
  ["null", null],
  ["() => 1", null],
  ["Symbol('x')", null],
  ["NaN", null],
  ["'\\ud800'", "\ud800"],
  ["new Map([['b', 1], ['a', new Map([[2, 3]])]])", { b: 1, a: { 2: 3 } }],
  ["new Set([1, new Set([2])])", [1, [2]]],
  ["({ z: 1, a: undefined, m: [undefined] })", { z: 1, m: [null] }],
  ["new Date(0)", "1970-01-01T00:00:00.000Z"],
  ["({ toJSON: () => 'own' })", "own"],
  ["Promise.resolve([1])", [1]],
  ["Object.create(null)", {}],
  ["Object.create(Object.create(null))", {}],
  ["new (class Bag {})()", {}],
  ["new (class { get [Symbol.toStringTag]() { return 'Bag'; } a = 1 })()", { a: 1 }],
  ["Object.assign(new Error('x'), { code: 'X' })", { code: "X" }],
  ["[new Number(0), new Boolean(false), new String('')]", [0, false, ""]],
  ["new Uint8Array(0)", {}],
  ["new (class extends Map {})()", {}],
  ["new (class { get [Symbol.toStringTag]() { return 'DOMStringMap'; } })()", {}],
  [
    "new (class { get [Symbol.toStringTag]() { return 'Storage'; } get length() { return 0; } })()",
    {},
  ],
])) {
  test(`a result of ${value} arrives as ${JSON.stringify(expected)}`, async () => {
    const { call } = await startPlugin(`{ give: () => ${value} }`);
    const { kind, body } = await call("give");
    assert.deepEqual([kind, body], ["r", expected]);
  });
}

test("the keys of a result keep their order", async () => {
  const { call } = await startPlugin("{ give: () => ({ z: 1, a: 2 }) }");
  assert.equal(JSON.stringify((await call("give")).body), '{"z":1,"a":2}');
});

for (const value of [
  "(() => { const a = {}; a.a = a; return a; })()",
  "10n",
  "({ get x() { throw new Error('no'); } })",
  "({ toJSON() { throw null; } })",
]) {
  test(`a result of ${value} is an error that lists the types to return`, async () => {
    const { call } = await startPlugin(`{ give: () => ${value} }`);
    const { kind, body } = await call("give");
    assert.deepEqual([kind, body.code], ["e", "RESULT_NOT_SERIALIZABLE"]);
    assert.match(body.message, /Return plain objects/);
  });
}

// Node's classes have the same type names as the browser's.
const PLATFORM = "class HTMLElement { get nodeType() { return 1; } get length() { return 0; } }";

// Each: what a tool returns, and what the error says about it.
for (const [value, problem] of /** @type {[string, string][]} */ ([
  ["fetched", "$ is of type Response, which JSON turns into {}; return await its json() or text()"],
  ["({ data: { response: fetched } })", "$.data.response is of type Response, "],
  [
    "({ a: { b: 1 }, c: [{}, { d: [], later: Promise.resolve(1) }] })",
    "$.c[1].later is of type Promise, which JSON turns into {}; await it",
  ],
  ["[new Map([['x', new Set([1, new Error('no')])]])]", "$[0].x[1] is of type Error, "],
  [
    "({ toJSON: () => ({ own: new WeakMap() }) })",
    "$.own is of type WeakMap, which JSON turns into {}.",
  ],
  ["new Map().keys()", "$ is of type Map Iterator, "],
  ["/x/", "$ is of type RegExp, "],
  ["new ArrayBuffer(8)", "$ is of type ArrayBuffer, "],
  [
    "Object.defineProperty(new HTMLElement(), Symbol.toStringTag, { value: 'HTMLFormElement' })",
    "$ is of type HTMLFormElement, which JSON turns into {}; return its text or attributes",
  ],
  ["(() => { const same = {}; return { a: same, b: same, c: [same, /x/] }; })()", "$.c[1] is of"],
  ["({ ['k'.repeat(1000)]: /x/ })", `$.${"k".repeat(498)} is of`],
])) {
  test(`a result of ${value} is an error with the path of the problem`, async () => {
    const { page, call } = await startPlugin(`{ give: () => ${value} }`);
    page.context.fetched = new Response("{}");
    page.run(PLATFORM.replace("class", "globalThis.HTMLElement = class"));
    const { kind, body } = await call("give");
    assert.deepEqual([kind, body.code], ["e", "RESULT_NOT_SERIALIZABLE"]);
    assert.ok(body.message.includes(`as JSON: ${problem}`), body.message);
    assert.match(body.message, /\. Return plain objects/);
  });
}

// --- errors ---

test("all fields of a ToolError are sent", async () => {
  const { call } = await startPlugin(`{ fail: () => {
    throw Object.assign(new Error("Too fast."),
      { code: "SLOW_DOWN", category: "rate_limit", retryable: true, retryAfterMs: 1500 });
  } }`);
  const { stack, ...fields } = (await call("fail")).body;
  assert.deepEqual(fields, {
    code: "SLOW_DOWN",
    message: "Too fast.",
    category: "rate_limit",
    retryable: true,
    retryAfterMs: 1500,
  });
  assert.match(stack, /^Error: Too fast\.\n {4}at .*fail/);
});

test("an Error is sent as INTERNAL_ERROR with its message, and is not retryable", async () => {
  const { call } = await startPlugin(
    "{ fail: async () => { throw Object.assign(new TypeError('x is not y'), { retryable: true }); } }",
  );
  const { code, message, retryable } = (await call("fail")).body;
  assert.deepEqual([code, message, retryable], ["INTERNAL_ERROR", "x is not y", false]);
});

for (const [thrown, message] of [
  [
    "{ error: { status: 409, why: 'Lent to Ada' } }",
    '{"error":{"status":409,"why":"Lent to Ada"}}',
  ],
  ["{ code: 'LENT', message: 4 }", '{"code":"LENT","message":4}'],
  ["{ long: 'x'.repeat(9999) }", `{"long":"${"x".repeat(991)}`],
  ["{ get own() { throw 1; } }", "[object Object]"],
  ["{ own: 10n }", "[object Object]"],
  ["{ status: 4, response: Promise.resolve() }", '{"status":4,"response":{}}'],
  ["{}", "[object Object]"],
  ["{ toString: () => 'said by itself' }", "said by itself"],
]) {
  test(`the message of a thrown ${thrown} describes it`, async () => {
    const { call } = await startPlugin(`{ fail: () => { throw ${thrown}; } }`);
    assert.equal((await call("fail")).body.message, message);
  });
}

test("a long stack is truncated, and a stack that throws when read is left out", async () => {
  const { call } = await startPlugin(`{
    long: () => { throw Object.assign(new Error("x"), { stack: "s".repeat(100_000) }); },
    trap: () => { throw Object.defineProperty(new Error("x"), "stack", { get() { throw 1; } }); },
  }`);
  assert.equal((await call("long")).body.stack.length, 8000);
  const { stack, message } = (await call("trap")).body;
  assert.deepEqual([stack, message], [undefined, "x"]);
});

// Each: what is thrown, and the lines of its stack that are not frames.
for (const [thrown, lines] of /** @type {[string, string[]][]} */ ([
  [
    "new Error('outer', { cause: new TypeError('inner', { cause: new RangeError('root') }) })",
    ["Error: outer", "[cause]: TypeError: inner", "[cause]: RangeError: root"],
  ],
  ["new Error('outer', { cause: 'text' })", ["Error: outer", "[cause]: text"]],
  ["new Error('outer', { cause: { status: 409 } })", ["Error: outer", '[cause]: {"status":409}']],
  ["new Error('outer', { cause: null })", ["Error: outer", "[cause]: null"]],
  ["new Error('outer', { cause: undefined })", ["Error: outer"]],
  ["{ code: 'LENT', message: 'outer', cause: 'text' }", ["[cause]: text"]],
  [
    "(() => { const e = new Error('self'); e.cause = new Error('other', { cause: e }); return e; })()",
    ["Error: self", "[cause]: Error: other"],
  ],
  ["Object.defineProperty(new Error('outer'), 'cause', { get() { throw 1; } })", ["Error: outer"]],
  [
    "new Error('outer', { cause: new Proxy({}, { get() { throw 1; } }) })",
    ["Error: outer", "[cause]: a value that cannot be shown was thrown"],
  ],
  [
    "new (class Endless extends Error { get cause() { return new Endless('again'); } })('outer')",
    ["Error: outer", ...Array(5).fill("[cause]: Error: again")],
  ],
])) {
  test(`the stack of a thrown ${thrown} includes its causes`, async () => {
    const { call } = await startPlugin(`{ fail: () => { throw ${thrown}; } }`);
    const { stack, message } = (await call("fail")).body;
    assert.deepEqual(
      stack.split("\n").filter((/** @type {string} */ line) => !line.startsWith("    at ")),
      lines,
    );
    assert.doesNotMatch(message, /inner|root|text|409|again/);
  });
}

test("a stack with long causes is truncated to the same length", async () => {
  const { call } = await startPlugin(`{
    fail: () => { throw new Error("outer", { cause: new Error("i".repeat(100_000)) }); },
  }`);
  const { stack } = (await call("fail")).body;
  assert.equal(stack.length, 8000);
  assert.match(stack, /^Error: outer\n {4}at .*\n\[cause\]: Error: iii/s);
});

test("the message of an error without one is that of its cause", async () => {
  const { call } = await startPlugin(`{
    fail: () => { throw new Error("", { cause: new TypeError("x is not y") }); },
    bare: () => { throw new Error(""); },
  }`);
  assert.equal((await call("fail")).body.message, "TypeError: x is not y");
  assert.equal((await call("bare")).body.message, "Error");
});

for (const thrown of [
  "null",
  "undefined",
  "'text'",
  "7",
  "Symbol('s')",
  "10n",
  "() => {}",
  "({})",
  "Object.create(null)",
  "new Proxy({}, { get() { throw new Error('trap'); } })",
  "new Proxy(function () {}, { get() { throw null; } })",
  "({ get message() { throw 1; }, get code() { throw 2; }, toString() { throw 3; } })",
  "({ message: 5, code: 6, toString: () => 7 })",
  "({ code: 'X'.repeat(1000), message: '', category: 'y'.repeat(1000), retryAfterMs: -1 })",
  "({ code: 'X', retryAfterMs: NaN, retryable: 'yes', category: {} })",
  "({ code: 'X', retryAfterMs: '5', message: { toString: null } })",
]) {
  test(`a tool can throw ${thrown}`, async () => {
    const { call } = await startPlugin(`{ fail: () => { throw ${thrown}; }, next: () => 1 }`);
    const { kind, body } = await call("fail");
    assert.equal(kind, "e");
    assert.ok(body.code.length >= 1 && body.code.length <= 256);
    assert.ok(typeof body.message === "string" && body.message !== "");
    assert.equal(body.retryable, false);
    assert.ok(body.category === undefined || body.category.length <= 256);
    assert.equal(body.retryAfterMs, undefined);
    assert.equal((await call("next")).body, 1);
  });
}

// --- cancelling ---

test("a cancelled call aborts the signal with the reason, and sends no answer", async () => {
  const { page, relay, start, answers } = await startPlugin(`{ wait: (_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => {
      globalThis.reason = signal.reason;
      reject(signal.reason);
    })) }`);
  const callId = start("wait");
  await settled();
  relay.say(`c${callId}idle: no sign of life for 30 s`);
  await settled();
  const { reason } = page.context;
  assert.deepEqual([reason.name, reason.message], ["AbortError", "idle: no sign of life for 30 s"]);
  assert.deepEqual(answers(callId), []);
});

for (const before of [
  "delete globalThis.DOMException",
  "DOMException = class { constructor() { throw 'mine'; } }",
]) {
  test(`a cancelled call aborts the signal in a page that ran ${before}`, async () => {
    const tool = `{ wait: (_, { signal }) => new Promise((resolve) =>
      signal.addEventListener("abort", () => resolve(globalThis.aborted = true))) }`;
    const { page, relay, start } = await startPlugin(tool, { before });
    const callId = start("wait");
    await settled();
    relay.say(`c${callId}the client cancelled it`);
    await settled();
    assert.equal(page.context.aborted, true);
  });
}

test("a report after the end of its call is not sent", async () => {
  const { page, call, reports } = await startPlugin(
    "{ keep: (_, context) => { globalThis.context = context; } }",
  );
  const { callId } = await call("keep");
  page.context.context.reportProgress({ progress: 1 });
  await settled();
  assert.deepEqual(reports(callId), []);
});

test("a traced call writes to the console when it is cancelled and when its tool has stopped", async () => {
  const { page, relay, start } = await startPlugin(`{
    wait: () => new Promise((resolve) => { globalThis.stop = resolve; }),
  }`);
  const callId = start("wait", {}, true);
  await settled();
  relay.say(`c${callId}why not`);
  await settled();
  const cancelled = ["OpenTabs: cancelled while it ran:", "demo wait"];
  assert.deepEqual(page.notes, [cancelled]);
  page.run("stop()");
  await settled();
  assert.deepEqual(page.notes, [
    cancelled,
    ["OpenTabs: stopped after its cancellation:", "demo wait"],
  ]);
});

test("cancelling a call that is not traced, or has ended, writes nothing to the console", async () => {
  const { page, relay, start, call } = await startPlugin(
    "{ wait: () => new Promise(() => {}), end: () => 1 }",
  );
  const callId = start("wait");
  const ended = await call("end");
  await settled();
  relay.say(`c${callId}why not`);
  relay.say(`c${ended.callId}why not`);
  await settled();
  assert.deepEqual(page.notes, []);
});

test("cancelling an unknown call does nothing", async () => {
  const { relay, call } = await startPlugin("{ next: () => 1 }");
  relay.say(`c${CALL}why not`);
  assert.equal((await call("next")).body, 1);
});

// --- progress ---

test("a report is sent with its three values", async () => {
  const { call, reports } = await startPlugin(`{ work: (_, { reportProgress }) => {
    reportProgress({ progress: 3, total: 12, message: "Exported page 3 of 12" });
  } }`);
  const { callId } = await call("work");
  assert.deepEqual(reports(callId), [{ progress: 3, total: 12, message: "Exported page 3 of 12" }]);
});

test("the first report is sent before the tool continues", async () => {
  const { page, relay, call } = await startPlugin(`{ work: (_, { reportProgress }) => {
    reportProgress({ progress: 1 });
    globalThis.look();
  } }`);
  let heard = 0;
  page.context.look = () => {
    heard = relay.ofKind("p").length;
  };
  await call("work");
  assert.equal(heard, 1);
});

test("10,000 reports of a loop are sent in order, in two messages, before the result", async () => {
  const { relay, call, reports } = await startPlugin(`{ work: (_, { reportProgress }) => {
    for (let i = 0; i < 10_000; i++) reportProgress({ progress: i });
  } }`);
  const { callId } = await call("work");
  const values = reports(callId).map((report) => report.progress);
  assert.deepEqual(
    values,
    Array.from({ length: 10_000 }, (_, index) => index),
  );
  assert.equal(relay.ofKind("p").length, 2);
  assert.equal(relay.heard.at(-1)?.[0], "r");
});

test("reports of two calls made in one job are kept apart and in order", async () => {
  const { page, start, reports } = await startPlugin(
    "{ hold: (_, { reportProgress }) => new Promise(() => { (globalThis.held ??= []).push(reportProgress); }) }",
  );
  const ids = [start("hold"), start("hold")];
  await until(() => page.context.held?.length === 2, "both calls");
  page.run("for (let i = 0; i < 6; i++) held[i % 2]({ progress: i })");
  await settled();
  const values = ids.map((id) => reports(id).map((report) => report.progress));
  assert.deepEqual(values, [
    [0, 2, 4],
    [1, 3, 5],
  ]);
});

for (const invalid of [
  "",
  "undefined",
  "null",
  "7",
  "'text'",
  "Symbol('s')",
  "10n",
  "[]",
  "() => {}",
  "{ progress: NaN, total: Infinity, message: 5 }",
  "{ progress: '1', total: {}, message: Symbol('s') }",
  "{ progress: 10n }",
  "{ get progress() { throw new Error('no'); } }",
  "{ message: { toString() { throw 1; } } }",
  "{ message: 'x'.repeat(5000) }",
  "new Proxy({}, { get() { throw null; } })",
]) {
  test(`reportProgress(${invalid}) does not throw and sends a report`, async () => {
    const { page, call, reports } = await startPlugin(`{ work: (_, { reportProgress }) => {
      reportProgress(${invalid});
      reportProgress(${invalid});
      return "unharmed";
    } }`);
    const { callId, body } = await call("work");
    assert.equal(body, "unharmed");
    const sent = reports(callId);
    assert.equal(sent.length, 2);
    for (const { progress, total, message } of sent) {
      assert.equal(progress ?? null, null);
      assert.equal(total ?? null, null);
      assert.ok((message ?? "").length <= 4096);
    }
    assert.ok(page.warnings.length <= 1, "logged more than once for one call");
  });
}

test("the valid members of an invalid report are sent, and the problem is logged once", async () => {
  const { page, call, reports } = await startPlugin(`{ work: (_, { reportProgress }) => {
    for (let i = 0; i < 3; i++) reportProgress({ progress: 5, total: "many", message: "m" });
  } }`);
  const { callId } = await call("work");
  const [{ progress, total, message }] = reports(callId);
  assert.deepEqual([progress, total ?? null, message], [5, null, "m"]);
  assert.equal(page.warnings.length, 1);
});

test("reports after the end of their call are logged once, with the tool's name", async () => {
  const { page, call } = await startPlugin(`{ work: (_, { reportProgress }) => {
    globalThis.late = () => reportProgress({ progress: 1 });
  } }`);
  await call("work");

  page.run("late(); late();");

  assert.deepEqual(page.warnings, [["OpenTabs: reported progress after its end:", "demo work"]]);
});

// --- the channel ---

test("a traced call reports its start before its tool runs, and its end", async () => {
  const { relay, start, answers } = await startPlugin(
    "{ echo: async () => 1, hang: () => new Promise(() => {}) }",
  );
  const [echo, hang] = [start("echo", {}, true), start("hang", {}, true)];
  await until(() => answers(echo).length === 1, "the answer");
  const stamps = relay
    .ofKind("t")
    .map((text) => [text.slice(0, NAME), Object.keys(JSON.parse(text.slice(NAME)))]);
  assert.deepEqual(stamps, [
    [echo, ["runtime.down"]],
    [hang, ["runtime.down"]],
    [echo, ["runtime.up"]],
  ]);
});

test("a call that is not traced reports no times", async () => {
  const { relay, call } = await startPlugin("{ echo: async () => 1 }");
  await call("echo");
  assert.deepEqual(relay.ofKind("t"), []);
});

test("a message that is not on the channel's node is ignored", async () => {
  const { page, call, answers } = await startPlugin(
    "{ next: () => { globalThis.runs = (globalThis.runs ?? 0) + 1; } }",
  );
  await call("next");
  const params = { callId: CALL, plugin: "demo", tool: "next", input: {}, trace: false };
  const detail = `d${JSON.stringify({ params })}`;
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
    assert.throws(() => channelEnd(other, { hears: "up", says: "down" }).say("n"), /nobody/);
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
    channelEnd(node, { hears: "up", says: "down" }).say("n");
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

      assert.deepEqual([kind, body], ["r", { list: [true, "two"], deep: { yes: true } }]);
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

/**
 * All text in a value, by own properties only.
 * @param {any} thing
 * @param {number} [depth]
 * @returns {string}
 */
function inspect(thing, depth = 0) {
  if (typeof thing === "string") return thing;
  if (typeof thing !== "object" || thing === null || depth > 4) return "";
  const parts = [];
  for (const key of Object.getOwnPropertyNames(thing)) {
    const descriptor = Object.getOwnPropertyDescriptor(thing, key);
    parts.push(key, inspect(descriptor?.value, depth + 1));
  }
  return parts.join(" ");
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

// --- adapters ---

test("plugins can read the nonces that sign their logs and readiness changes", async () => {
  const { page } = await startRuntime();
  const { _logNonce, _readinessNonce } = page.context.__openTabs;
  assert.deepEqual([_logNonce, _readinessNonce], [NONCE, NONCE]);
});

test("an adapter that did not register itself is reported as unavailable, with the reason", async () => {
  const { relay } = await startRuntime();
  relay.say("aghost");
  await until(() => relay.ofKind("s").length > 0, "readiness");
  const state = JSON.parse(/** @type {string} */ (relay.ofKind("s")[0]));
  assert.deepEqual([state.plugin, state.readiness], ["ghost", "unavailable"]);
  assert.match(state.reason, /did not register/);
});

test("a removed plugin cannot be called, and its running calls return their results", async () => {
  const { page, relay, start, answers, call } = await startPlugin(`{
    wait: () => new Promise((resolve) => { globalThis.release = resolve; }),
  }`);
  const waiting = start("wait");
  await settled();
  relay.say("xdemo");
  const refused = await call("wait");
  assert.equal(refused.body.code, "PLUGIN_NOT_LOADED");
  page.run("release(1)");
  await until(() => answers(waiting).length > 0, "the answer");
  assert.deepEqual(answers(waiting), [{ kind: "r", body: 1 }]);
});

test("a call does not run in the old adapter if the new one did not register itself", async () => {
  const { page, relay, call } = await startPlugin("{ echo: () => 1 }");
  page.run("globalThis.__openTabs = { adapters: {} };");
  relay.say("ademo");
  await until(() => relay.ofKind("s").length === 2, "readiness");
  const { readiness } = JSON.parse(/** @type {string} */ (relay.ofKind("s")[1]));
  assert.equal(readiness, "unavailable");
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
  relay.say("asecond");
  await until(() => relay.ofKind("s").length === 2, "the second plugin's readiness");
  const state = JSON.parse(/** @type {string} */ (relay.ofKind("s")[1]));
  assert.deepEqual([state.plugin, state.readiness], ["second", "ready"]);
});

/**
 * @param {string} isReady
 * @param {Parameters<typeof startRuntime>[0]} [options]
 */
async function startWithReadiness(isReady, options) {
  const { page, relay } = await startRuntime(options);
  page.run(`globalThis.asked = 0; __openTabs.adapters.demo = { tools: [], isReady: ${isReady} };`);
  relay.say("ademo");
  await settled();
  return { page, relay, states: () => relay.ofKind("s").map((text) => JSON.parse(text)) };
}

test("an isReady() that never settles is called once, and the plugin stays pending", async () => {
  const { page, relay, states } = await startWithReadiness(
    "() => { asked++; return new Promise(() => {}); }",
  );
  relay.say("kdemo");
  relay.say("kdemo");
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
  relay.say("ademo");
  await settled();
  const params = { callId: CALL, plugin: "demo", tool: "late", input: {}, trace: false };
  const call = () => relay.say(`d${JSON.stringify({ params })}`);
  return { page, relay, states, call };
}

test("a call waits 6 s for isReady(), then uses the last answer", async () => {
  const { page, relay, call } = await startAsked(
    "() => asked++ < 2 ? Promise.resolve(true) : new Promise(() => {})",
  );
  call();
  await settled();
  assert.deepEqual(relay.ofKind("r"), []);
  const bound = page.timers.findIndex(({ ms }) => ms === 6000);
  page.timers.splice(bound, 1)[0]?.run();
  await until(() => relay.ofKind("r").length === 1, "the result");
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
  await until(() => relay.ofKind("r").length === 1, "the result");
});

test("a call is refused if isReady() returns false, and its tool is not started", async () => {
  const { page, relay, states, call } = await startAsked("async () => asked++ < 2");
  call();
  await until(() => relay.ofKind("e").length === 1, "the refusal");
  const error = JSON.parse(/** @type {string} */ (relay.ofKind("e")[0]).slice(NAME));
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
  relay.say(`c${CALL}the client cancelled it`);
  await settled();
  page.run("answer(true)");
  await settled();
  assert.deepEqual([...relay.ofKind("r"), ...relay.ofKind("e")], []);
});

test("a slow isReady() is not called for each call", async () => {
  const { page, relay, call } = await startAsked(
    "async () => { asked++; for (const end = Date.now() + 60; Date.now() < end; ); return true; }",
  );
  const { asked } = page.context;
  call();
  await until(() => relay.ofKind("r").length === 1, "the result");
  assert.equal(page.context.asked, asked);
});

test("a query of readiness is answered even if nothing has changed or the plugin is missing", async () => {
  const { relay, states } = await startWithReadiness("async () => true");
  relay.say("qdemo");
  relay.say("qghost");
  await settled();
  assert.deepEqual(
    states().map(({ plugin, readiness }) => [plugin, readiness]),
    [
      ["demo", "ready"],
      ["ghost", "unavailable"],
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
  relay.say("kdemo");
  await settled();
  assert.deepEqual(
    states().map((state) => state.readiness),
    ["unavailable", "ready"],
  );
  assert.equal(page.timers.length, 1);
});
