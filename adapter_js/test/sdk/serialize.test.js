import assert from "node:assert/strict";
import { test } from "node:test";
import { serialize } from "../../sdk/serialize.js";
import { withGlobals } from "./fakes.js";

class Point {
  x = 1;
}

class Token {
  #secret = 1;
  read() {
    return this.#secret;
  }
}

for (const [value, expected] of /** @type {[unknown, unknown][]} */ ([
  ["text", "text"],
  [1.5, 1.5],
  [true, true],
  [null, null],
  [undefined, "[undefined]"],
  [Number.NaN, "[NaN]"],
  [Number.NEGATIVE_INFINITY, "[-Infinity]"],
  [2n ** 64n, "18446744073709551616n"],
  [Symbol("s"), "[Symbol(s)]"],
  [function named() {}, "[function named]"],
  [
    [1, [undefined]],
    [1, ["[undefined]"]],
  ],
  [
    { a: { b: 1 }, c: undefined },
    { a: { b: 1 }, c: "[undefined]" },
  ],
  [Object.create(null), {}],
  [new Date(0), "1970-01-01T00:00:00.000Z"],
  [new Date(Number.NaN), "[invalid date]"],
  [
    new Map([
      ["a", 1],
      ["b", 2],
    ]),
    { a: 1, b: 2 },
  ],
  [new Set([1, 2]), [1, 2]],
  [new URL("https://a.example/"), "https://a.example/"],
  [/a+/g, "/a+/g"],
  [new Uint16Array(4), "[Uint16Array of 8 bytes]"],
  [new ArrayBuffer(3), "[ArrayBuffer of 3 bytes]"],
  [new Point(), { x: 1 }],
  [new Token(), "[Token]"],
  [Promise.resolve(1), "[Promise]"],
])) {
  test(`${typeof value} is shown as ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(serialize(value), expected);
  });
}

test("an error is shown with its message, fields, cause and stack", () => {
  const error = Object.assign(new TypeError("what", { cause: new Error("why") }), { code: "C" });
  const shown = /** @type {any} */ (serialize(error));
  assert.deepEqual(Object.keys(shown), ["name", "message", "code", "cause", "stack"]);
  assert.deepEqual([shown.name, shown.message, shown.code], ["TypeError", "what", "C"]);
  assert.equal(shown.cause.message, "why");
  assert.match(shown.stack, /serialize\.test\.js/);
});

test("a cycle is marked, and an object that occurs twice is shown twice", () => {
  const shared = { a: 1 };
  const value = { shared, again: [shared], self: /** @type {unknown} */ (null) };
  value.self = value;
  assert.deepEqual(serialize(value), { shared: { a: 1 }, again: [{ a: 1 }], self: "[circular]" });
});

test("a getter that throws hides only its own value", () => {
  const value = {
    a: 1,
    get b() {
      throw new Error("no");
    },
    c: 2,
  };
  assert.deepEqual(serialize(value), { a: 1, b: "[threw Error: no]", c: 2 });
});

test("a value that throws on any access is still shown", () => {
  const fail = () => {
    throw new Error("no");
  };
  const hostile = new Proxy({}, { ownKeys: fail, get: fail, getPrototypeOf: fail });
  assert.equal(serialize(hostile), "[threw Error: no]");
  const worse = {
    get a() {
      throw {
        toString() {
          throw 1;
        },
      };
    },
  };
  assert.deepEqual(serialize(worse), { a: "[threw an error that cannot be shown]" });
});

test("a member named __proto__ is shown as a member", () => {
  const shown = serialize(JSON.parse('{"__proto__": {"a": 1}}'));
  assert.equal(JSON.stringify(shown), '{"__proto__":{"a":1}}');
});

test("a DOM node is shown by its name", (t) => {
  class Node {
    constructor(/** @type {string} */ nodeName) {
      this.nodeName = nodeName;
    }
  }
  class Element extends Node {
    id = "home";
    classList = ["a", "b"];
  }
  withGlobals(t, { Node, Element });
  assert.equal(serialize(new Element("A")), "<a#home.a.b>");
  assert.equal(serialize(Object.assign(new Element("P"), { id: "", classList: [] })), "<p>");
  assert.equal(serialize(new Node("#text")), "[#text]");
});

test("a window is shown without its members", () => {
  const window = { window: {}, secret: 1 };
  window.window = window;
  assert.deepEqual(serialize([window, { window: 1 }]), ["[Window]", { window: 1 }]);
});

test("deep values are truncated", () => {
  let deep = /** @type {unknown} */ ([]);
  for (let depth = 0; depth < 100_000; depth++) deep = { deep };
  const shown = JSON.stringify(serialize(deep));
  assert.equal(shown, `${'{"deep":'.repeat(6)}"[Object]"${"}".repeat(6)}`);
});

test("long values are truncated, with how much is missing", () => {
  assert.equal(serialize("x".repeat(4000)), "x".repeat(4000));
  assert.equal(serialize("x".repeat(4001)), `${"x".repeat(4000)}… (4001 characters)`);
  const list = /** @type {unknown[]} */ (serialize(Array(1000).fill(0)));
  assert.deepEqual([list.length, list.at(-1)], [101, "[900 more]"]);
  const object = Object.fromEntries(Array.from({ length: 103 }, (_, index) => [`k${index}`, 0]));
  const shown = /** @type {Record<string, unknown>} */ (serialize(object));
  assert.deepEqual([Object.keys(shown).length, shown["…"]], [101, "[3 more]"]);
});

test("a string is never cut within a surrogate pair", () => {
  const shown = /** @type {string} */ (serialize(`x${"😀".repeat(3000)}`));
  assert.ok(shown.isWellFormed());
});

test("a large value of any shape is shown in a bounded number of characters", () => {
  const text = "x".repeat(3000);
  const wide = Array(100).fill(Array(100).fill(Array(100).fill(text)));
  const keyed = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [text + index, 1]));
  /** @type {(depth: number) => unknown} */
  const tree = (depth) => (depth === 0 ? 0 : Array(90).fill(tree(depth - 1)));
  for (const value of [wide, keyed, tree(5), new Set(wide), new Map([[text, wide]])]) {
    const { length } = JSON.stringify(serialize(value));
    assert.ok(length > 100 && length < 40_000, `${length} characters`);
  }
});
