// The console's forms for tools' arguments, with hand-written elements: recursive schemas.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeDocument } from "./fake_dom.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const page = new URL("../../opentabs_py/console/page/", import.meta.url);
const { schemaForm } = await import(`${page}schema_form.js`);

/** @typedef {{[name: string]: any}} Schema */
/** @import { FakeElement } from "./fake_dom.js" */

fakeDocument();

/** @param {Schema} schema */
function formFor(schema) {
  const form = schemaForm(schema, () => {});
  const root = /** @type {FakeElement} */ (/** @type {unknown} */ (form.element));
  /** @param {string} label */
  const labelled = (label) =>
    root.all().filter(({ attributes }) => attributes["aria-label"] === label);
  /** @param {string} label */
  const tick = (label) => {
    const [box] = labelled(label);
    if (box === undefined) throw new Error(`no ${label}`);
    box.checked = true;
    box.fire("change");
  };
  /** The number of fields, including the checkboxes of optional members. */
  const count = () => root.all().filter(({ name }) => /input|select|textarea/.test(name)).length;
  return { form, labelled, tick, count };
}

const NAMES = ["left", "right", "up", "down", "next", "last"];
const MANY = 1_500; // as many as a form of 1,000 fields may have

/** @param {Schema} member */
function membersOf(member) {
  return Object.fromEntries(NAMES.map((name) => [name, member]));
}

test("a member that is null by default is optional, and created when it is selected", () => {
  const node = { anyOf: [{ $ref: "#/$defs/Node" }, { type: "null" }], default: null };
  const Node = { type: "object", properties: membersOf(node) };
  const { form, count, tick } = formFor({ ...Node, $defs: { Node } });
  assert.equal(count(), NAMES.length); // a box for each
  assert.deepEqual(form.get(), {});
  tick("Send left");
  assert.deepEqual(form.get(), { left: {} });
  form.set({ left: null, right: { up: null } });
  assert.deepEqual(form.get(), { left: null, right: { up: null } });
});

test("a member that may be an object or null is created when it is selected", () => {
  const schema = { type: ["object", "null"], properties: membersOf({ $ref: "#" }) };
  const { form, count, tick } = formFor(schema);
  assert.equal(count(), 1 + NAMES.length); // object or null, and a box for each
  tick("Send left");
  assert.deepEqual(form.get(), { left: {} });
});

test("nested lists with five required items each become JSON at the size limit of a form", () => {
  /** @type {Schema} */
  let schema = { type: "string" };
  for (let depth = 0; depth < 6; depth++) schema = { type: "array", items: schema, minItems: 5 };
  const properties = { lists: schema };
  const { form, count, labelled } = formFor({ type: "object", properties, required: ["lists"] });
  assert.ok(count() < MANY, String(count()));
  assert.equal(labelled("lists 5, as JSON").length, 1);
  const { lists } = /** @type {any} */ (form.get());
  assert.equal(lists[0][0][0][0][0][0], "");
  assert.equal(lists[4], null);
});

test("nested objects with six required members each stay within the size limit of a form", () => {
  const members = membersOf({ anyOf: [{ $ref: "#" }, { type: "null" }] });
  const { form, count } = formFor({ type: "object", properties: members, required: NAMES });
  assert.ok(count() < MANY, String(count()));
  assert.equal(/** @type {any} */ (form.get()).last, null);
});

test("a member left out because of the size limit is created when it is selected", () => {
  const wide = Object.fromEntries([...Array(1_200).keys()].map((each) => [each, {}]));
  const more = { type: "object", properties: { name: { type: "string" } } };
  const { labelled, tick } = formFor({ type: "object", properties: { ...wide, more } });
  tick("Send more");
  assert.equal(labelled("name").length, 1);
});

for (const { what, anyOf, value, index, $defs } of [
  {
    what: "with a property of any kind",
    anyOf: [{ type: "string" }, { type: "object", properties: { any: true } }],
    value: { any: 1 },
    index: 1,
  },
  {
    what: "whose kind is named by reference",
    anyOf: [
      { type: "object", properties: { kind: { $ref: "#/$defs/Cat" } } },
      { type: "object", properties: { kind: { $ref: "#/$defs/Dog" } } },
    ],
    value: { kind: "dog" },
    index: 1,
    $defs: { Cat: { const: "cat" }, Dog: { const: "dog" } },
  },
  {
    what: "of several types",
    anyOf: [{ type: "boolean" }, { type: ["string", "null"] }],
    value: "text",
    index: 1,
  },
  {
    what: "after one with variants of its own",
    anyOf: [{ anyOf: [{ type: "string" }, { type: "null" }] }, { type: "number" }],
    value: 5,
    index: 1,
  },
  {
    what: "that is a list of its items",
    anyOf: [
      { type: "array", items: { type: "string" } },
      { type: "array", items: { type: "number" } },
    ],
    value: [5],
    index: 1,
  },
  {
    what: "that allows its members",
    anyOf: [
      { type: "object", properties: { a: {} }, additionalProperties: false },
      { type: "object", properties: { b: { type: "string" } } },
      { type: "object", properties: { b: { type: "number" } } },
    ],
    value: { b: 1 },
    index: 2,
  },
  {
    what: "that is a whole number or null",
    anyOf: [{ type: ["integer", "null"] }, { type: ["number", "string"] }],
    value: 1.5,
    index: 1,
  },
]) {
  test(`a value is shown as the variant ${what}`, () => {
    const { form, labelled } = formFor({ anyOf, $defs });
    form.set(value);
    assert.equal(labelled("Kind of The arguments")[0]?.value, String(index));
    assert.deepEqual(form.get(), value);
  });
}

test("a schema whose variants refer to itself does not hang the form", () => {
  const { form } = formFor({ anyOf: [{ $ref: "#" }, { $ref: "#" }] });
  form.set({ a: 1 });
  assert.deepEqual(form.get(), { a: 1 });
});

for (const given of [{ list: "x" }, { size: { toString: 1 }, list: {} }]) {
  test(`a form rejects ${JSON.stringify(given)}, which it could not send unchanged`, () => {
    const list = { type: "array", items: { type: "string" } };
    const { form } = formFor({ type: "object", properties: { list } });
    assert.throws(
      () => form.set(given),
      /cannot show these arguments unchanged\. Send them as JSON/,
    );
  });
}

test("an invalid argument is shown, and rejected when it is sent", () => {
  const properties = { size: { type: "number" } };
  const { form, labelled } = formFor({ type: "object", properties, required: ["size"] });
  form.set({ size: { toString: 1 } });
  assert.equal(labelled("size")[0]?.value, '{"toString":1}');
  assert.throws(() => form.get(), /size: write a number/);
});

/** @param {string} text that the user writes into a number's field */
function numberWritten(text) {
  const properties = { size: { type: "number" } };
  const { form, labelled } = formFor({ type: "object", properties, required: ["size"] });
  const [input] = labelled("size");
  assert.ok(input !== undefined);
  input.value = text;
  return form.get();
}

for (const [text, size] of /** @type {const} */ ([
  ["0", 0],
  [" -0.5 ", -0.5],
  ["1e3", 1000],
  ["1.25E-2", 0.0125],
])) {
  test(`${text} is a number`, () => {
    assert.deepEqual(numberWritten(text), { size });
  });
}

for (const text of ["", "x", "0x10", "Infinity", "-Infinity", "NaN", "1_000", "012", "1.", "+1"]) {
  test(`'${text}' is not a number`, () => {
    assert.throws(() => numberWritten(text), {
      message: "size: write a number, for example 12, -0.5 or 1e3.",
    });
  });
}

test("a number that is larger than JavaScript can represent is rejected with that reason", () => {
  assert.throws(() => numberWritten("1e999"), { message: "size: this number is too large." });
});

test("a member whose reference is malformed is edited as JSON", () => {
  const properties = { part: { $ref: "#/%" }, name: { $ref: "#/$defs/a~1b%20c" } };
  const $defs = { "a/b c": { type: "string" } };
  const { labelled } = formFor({ type: "object", properties, $defs });
  assert.equal(labelled("part, as JSON").length, 1);
  assert.equal(labelled("name").length, 1);
});

test("a number in JSON that cannot be sent exactly is rejected", () => {
  const properties = { part: { $ref: "#/%" } };
  const { form, labelled } = formFor({ type: "object", properties, required: ["part"] });
  const [input] = labelled("part, as JSON");
  assert.ok(input !== undefined);
  input.value = '{"ids": [1, 1e300, 9007199254740991]}';
  assert.deepEqual(form.get(), { part: { ids: [1, 1e300, 9007199254740991] } });
  input.value = '{"ids": [1, 9007199254740993]}';
  const message = "part: this number is too large to be sent exactly.";
  assert.throws(() => form.get(), { message });
  input.value = "{";
  assert.throws(() => form.get(), /part: this is not valid JSON\./);
});

for (const additionalProperties of [undefined, true, {}]) {
  test(`an object with additionalProperties: ${JSON.stringify(additionalProperties)} has a field for other members`, () => {
    const { form, labelled } = formFor({ type: "object", additionalProperties });
    form.set({ any: 1 });
    assert.equal(labelled("Other members, as JSON").length, 1);
    assert.deepEqual(form.get(), { any: 1 });
  });
}

test("a closed object without properties has no fields, and keeps its value", () => {
  const { form, count } = formFor({ type: "object", additionalProperties: false });
  form.set({ any: 1 });
  assert.deepEqual([count(), form.get()], [0, { any: 1 }]);
});

test("a text keeps its line breaks until the user writes another one", () => {
  const text = { type: "string", default: "line 1\nline 2" };
  const sep = { type: "string", default: "\r\n" };
  const plain = { type: "string", default: "one line" };
  const { form, labelled } = formFor({ type: "object", properties: { text, sep, plain } });
  assert.deepEqual(form.get(), { text: "line 1\nline 2", sep: "\r\n", plain: "one line" });
  const names = ["text", "sep", "plain"].map((label) => labelled(label)[0]?.name);
  assert.deepEqual(names, ["textarea", "textarea", "input"]);
  form.set({ plain: "a\r\nb" });
  assert.equal(/** @type {any} */ (form.get()).plain, "a\r\nb");
  const [field] = labelled("plain");
  assert.ok(field !== undefined);
  field.value = "a\nb\nc";
  assert.equal(/** @type {any} */ (form.get()).plain, "a\nb\nc");
});
