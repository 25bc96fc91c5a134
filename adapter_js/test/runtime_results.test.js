// The runtime: results and errors of tools.

import assert from "node:assert/strict";
import { test } from "node:test";
import { startPlugin } from "./runtimes.js";

// --- results ---

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
    assert.deepEqual([kind, body], ["tool.result", expected]);
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
    assert.deepEqual([kind, body.code], ["tool.error", "RESULT_NOT_SERIALIZABLE"]);
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
  ["({ a: { b: [1, 2n] } })", "$.a.b[1] is a BigInt; return a number or a string."],
  [
    "({ a: new Map([[{ id: 1 }, 1]]) })",
    "$.a is a Map with a key that is not a string or a number; return an array of its entries.",
  ],
  ["new Map([[Symbol('a'), 1]])", "$ is a Map with a key that is not a string or a number;"],
  ["[new Map([[1, 'a'], ['1', 'b']])]", '$[0] is a Map with two keys "1";'],
  ["new Map([['a', 2n]])", "$.a is a BigInt; "],
])) {
  test(`a result of ${value} is an error with the path of the problem`, async () => {
    const { page, call } = await startPlugin(`{ give: () => ${value} }`);
    page.context.fetched = new Response("{}");
    page.run(PLATFORM.replace("class", "globalThis.HTMLElement = class"));
    const { kind, body } = await call("give");
    assert.deepEqual([kind, body.code], ["tool.error", "RESULT_NOT_SERIALIZABLE"]);
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
  ["null", "null was thrown"],
  ["undefined", "undefined was thrown"],
  ["'text'", "text"],
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
    assert.equal(kind, "tool.error");
    assert.ok(body.code.length >= 1 && body.code.length <= 256);
    assert.ok(typeof body.message === "string" && body.message !== "");
    assert.equal(body.retryable, false);
    assert.ok(body.category === undefined || body.category.length <= 256);
    assert.equal(body.retryAfterMs, undefined);
    assert.equal((await call("next")).body, 1);
  });
}
