// The console's forms for any schema return valid values unchanged.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeDocument } from "./fake_dom.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const page = new URL("../../opentabs_py/console/page/", import.meta.url);
const { schemaForm } = await import(`${page}schema_form.js`);

/** @typedef {{[name: string]: any}} Schema */
/** @typedef {[Schema | boolean, any]} Case a schema, and a valid value */

fakeDocument();

const NAMES = ["a", "kind", "constructor", "__proto__", "toString", "length", "0", "x y", ""];
const TEXTS = ["", "x", "null", "1", "{}", " a ", "line\nbreak", "é"];
const NUMBERS = [0, 1, -1, 2.5, 1e21, 1e-7];
const SIMPLE = ["string", "number", "boolean", "null", "enum", "const", "any"];
const NESTED = [
  "array",
  "tuple",
  "object",
  "record",
  "anyOf",
  "oneOf",
  "nullable",
  "allOf",
  "types",
];
const DEEPEST = 3;

/** A random number from 0 to 1, the same at each run. @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** @param {() => number} random */
function drawing(random) {
  /** @template T @param {readonly T[]} list @returns {T} */
  const pick = (list) => /** @type {T} */ (list[Math.floor(random() * list.length)]);

  /**
   * @param {() => Case} draw
   * @param {number} often from 0 to 1
   */
  const members = (draw, often) =>
    NAMES.filter(() => random() < often).map((name) => /** @type {const} */ ([name, draw()]));

  /** @param {number} depth @returns {Case} */
  function draw(depth) {
    const inner = () => draw(depth + 1);
    switch (pick(depth > DEEPEST ? SIMPLE : [...SIMPLE, ...NESTED])) {
      case "string":
        return [
          { type: "string", ...(random() < 0.2 ? { default: pick(TEXTS) } : {}) },
          pick(TEXTS),
        ];
      case "number":
        return [{ type: "number" }, pick(NUMBERS)];
      case "boolean":
        return [{ type: "boolean" }, random() < 0.5];
      case "null":
        return [{ type: "null" }, null];
      case "enum": {
        const values = ["x", 1, null, true, { a: 1 }, [1]].filter(() => random() < 0.7);
        return values.length === 0 ? [true, 1] : [{ enum: values }, pick(values)];
      }
      case "const": {
        const value = pick(["c", 1, null, true, { a: [1] }, []]);
        return [{ const: value }, value];
      }
      case "array": {
        const [items, value] = inner();
        return [{ type: "array", items }, Array(Math.floor(random() * 3)).fill(value)];
      }
      case "tuple": {
        const pair = [inner(), inner()];
        return [
          { type: "array", prefixItems: pair.map(([schema]) => schema) },
          pair.map(([, value]) => value),
        ];
      }
      case "object": {
        const drawn = members(inner, 0.3);
        const required = drawn.map(([name]) => name).filter(() => random() < 0.5);
        const sent = drawn.filter(([name]) => required.includes(name) || random() < 0.6);
        const properties = Object.fromEntries(drawn.map(([name, [schema]]) => [name, schema]));
        return [
          { type: "object", properties, required, additionalProperties: random() < 0.5 },
          Object.fromEntries(sent.map(([name, [, value]]) => [name, value])),
        ];
      }
      case "record": {
        const [additionalProperties, value] = inner();
        const names = NAMES.filter(() => random() < 0.2);
        return [
          { type: "object", additionalProperties },
          Object.fromEntries(names.map((name) => [name, value])),
        ];
      }
      case "anyOf":
      case "oneOf": {
        const variants = [inner(), inner(), inner()];
        const name = random() < 0.5 ? "anyOf" : "oneOf";
        return [{ [name]: variants.map(([schema]) => schema) }, pick(variants)[1]];
      }
      case "nullable": {
        const [schema, value] = inner();
        return [{ anyOf: [schema, { type: "null" }] }, random() < 0.4 ? null : value];
      }
      case "allOf": {
        const [schema, value] = inner();
        return [{ allOf: [schema] }, value];
      }
      case "types":
        return [{ type: ["string", "null", "number"] }, pick(["x", null, 3])];
      default:
        return [{}, pick([1, "x", null, [1, { a: 2 }], { b: null }])];
    }
  }
  return draw;
}

test("a form for any schema returns a valid value unchanged", () => {
  for (let seed = 1; seed <= 500; seed++) {
    const draw = drawing(randomFrom(seed));
    const [a, b] = [draw(0), draw(0)];
    const schema = { type: "object", properties: { a: a[0], b: b[0] }, required: ["a"] };
    const form = schemaForm(schema, () => {});
    const value = { a: a[1], b: b[1] };
    form.set(value);
    assert.deepEqual(form.get(), value, `seed ${seed}: ${JSON.stringify(schema)}`);
  }
});
