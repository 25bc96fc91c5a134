// The permissions of tools in the console, with hand-written elements and a hand-written server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fakeDocument } from "./fake_dom.js";
import { settled } from "./fakes.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const page = new URL("../../opentabs_py/console/page/", import.meta.url);
const { toolList } = await import(`${page}tool_list.js`);

fakeDocument();

const TOOL = {
  name: "chat_send",
  owner: "chat",
  title: "Send",
  summary: "",
  group: "",
  icon: "wrench",
  permission: "ask",
  because: "it changes something",
  rule: "chat.send",
  readOnly: false,
};

test("a permission that cannot be saved is reset to the one saved last, and one that does not last is noted", async () => {
  let works = true;
  let note = "";
  let told = "";
  const post = async () => {
    if (!works) throw new Error("The server is gone.");
    return { note };
  };
  const tell = (/** @type {string} */ text) => {
    told = text;
  };
  const list = /** @type {FakeElement} */ (toolList([TOOL], { link: { post }, tell }));
  const select = list.all().find(({ name }) => name === "select");
  assert.ok(select instanceof FakeElement);
  /** @param {string} value */
  const choose = async (value) => {
    select.value = value;
    select.fire("change");
    await settled();
  };

  await choose("off");
  works = false;
  await choose("auto");
  assert.deepEqual([select.value, select.validity], ["off", "The server is gone."]);
  works = true;
  await choose("auto");
  assert.deepEqual([select.value, select.validity], ["auto", ""]);
  assert.equal(select.title, "Because it changes something");
  note = "Only until the server stops.";
  await choose("ask");
  assert.deepEqual([select.value, told], ["ask", note]);
});
