// The console's form for a plugin's settings, with hand-written elements and a hand-written server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fakeDocument } from "./fake_dom.js";
import { settled } from "./fakes.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const page = new URL("../../opentabs_py/console/page/", import.meta.url);
const { settingsForm } = await import(`${page}settings.js`);

fakeDocument();
globalThis.HTMLInputElement = /** @type {any} */ (FakeElement);

const SIZE = {
  key: "size",
  type: "number",
  label: "Size",
  description: null,
  placeholder: null,
  options: null,
  required: false,
  default: null,
  isSecret: false,
  isSet: false,
  isWritten: false,
  isElsewhere: false,
  value: null,
};

/**
 * The form for a setting, and what it sends when it is saved.
 * @param {object} setting
 */
async function formFor(setting) {
  /** @type {any[]} */
  const posted = [];
  const described = { file: "settings.toml", isServed: true, settings: [setting] };
  const link = {
    get: async () => described,
    post: async (/** @type {string} */ _, /** @type {any} */ { values }) => {
      posted.push(values);
      return described;
    },
  };
  const { element, read } = settingsForm(link, "chat");
  await read();
  const all = /** @type {FakeElement[]} */ (element.all());
  const [form, input, status] = [
    all.find(({ name }) => name === "form"),
    all.find(({ attributes }) => attributes.id === "setting-size"),
    all.find(({ attributes }) => attributes.role === "status"),
  ];
  assert.ok(form !== undefined && input !== undefined && status !== undefined);
  const remove = all.find((each) => each.name === "button" && each.text() === "Remove");
  const save = async () => {
    form.fire("submit");
    await settled();
    return { posted, status: status.textContent };
  };
  return { input, remove, save };
}

/** @param {string} text that the user writes into the setting's field, and saves */
async function save(text) {
  const form = await formFor(SIZE);
  form.input.value = text;
  form.input.fire("input");
  return form.save();
}

test("a number is saved as a number", async () => {
  assert.deepEqual((await save("12.5")).posted, [{ size: 12.5 }]);
});

test("the largest exact integer is saved", async () => {
  assert.deepEqual((await save("-9007199254740991")).posted, [{ size: -9007199254740991 }]);
});

for (const text of ["9007199254740993", "-9007199254740993"]) {
  test(`${text} is rejected, because it would be saved as another number`, async () => {
    const { posted, status } = await save(text);
    assert.deepEqual(posted, []);
    assert.equal(status, "Size: this number is too large to be sent exactly.");
  });
}

for (const text of ["0x10", "Infinity", "1e999", "many"]) {
  test(`${text} is not saved`, async () => {
    const { posted, status } = await save(text);
    assert.deepEqual(posted, []);
    assert.match(status, /^Size: (write a number|this number is too large)/);
  });
}

const WRITTEN = { ...SIZE, isSet: true, isWritten: true, value: 5 };
const CHOSEN = { ...WRITTEN, type: "select", options: ["small", "large"], value: "small" };

test("a setting is removed", async () => {
  const { remove, save } = await formFor(WRITTEN);
  remove?.fire("click");
  assert.deepEqual((await save()).posted, [{ size: null }]);
});

for (const [setting, type, text, value] of /** @type {[object, string, string, unknown][]} */ ([
  [WRITTEN, "input", "7", 7],
  [CHOSEN, "change", "large", "large"],
])) {
  test(`${text} is saved if it is entered after Remove`, async () => {
    const { input, remove, save } = await formFor(setting);
    assert.ok(remove !== undefined);
    remove.fire("click");
    assert.equal(remove.textContent, "Removed when saved");
    input.value = text;
    input.fire(type);
    assert.equal(remove.textContent, "Remove");
    assert.equal(/** @type {any} */ (remove).disabled, false);
    assert.deepEqual((await save()).posted, [{ size: value }]);
  });

  test(`${text} is removed if it is entered before Remove`, async () => {
    const { input, remove, save } = await formFor(setting);
    input.value = text;
    input.fire(type);
    remove?.fire("click");
    assert.deepEqual((await save()).posted, [{ size: null }]);
  });
}
