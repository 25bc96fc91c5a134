// The console's questions, with hand-written elements.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fakeDocument } from "./fake_dom.js";

// A computed name, so that tsc does not follow it: it would treat a page's modules as CommonJS.
const page = new URL("../../opentabs_py/console/page/", import.meta.url);
const { approvalsView } = await import(`${page}approvals.js`);

/** @import { FakeElement } from "./fake_dom.js" */

fakeDocument();
globalThis.setInterval = /** @type {any} */ (() => 0);

test("an answer that comes too late is reported as not counted, and one that does not last as such", async () => {
  const question = { id: "1", tool: "pay", title: "Pay", answers: ["once", "no"], element: "" };
  const questions = new Map([["1", { ...question, site: null, tabTitle: null, plugin: "shop" }]]);
  const store = {
    rows: (/** @type {string} */ name) => (name === "questions" ? questions : new Map()),
    now: () => 0,
  };
  let counts = false;
  let note = "";
  const view = approvalsView({ store, link: { post: async () => ({ counts, note }) } });
  view.show([]);
  const all = /** @type {FakeElement} */ (view.element).all();
  const refuse = all.find((each) => each.name === "button" && each.text() === "Refuse");
  const notice = /** @type {any} */ (
    all.find((each) => each.attributes.class === "notice closable")
  );
  refuse?.fire("click");
  await new Promise(setImmediate);
  assert.match(
    notice.children[0].textContent,
    /^Your answer about Pay did not count: it had been answered/,
  );
  assert.equal(notice.hidden, false);
  counts = true;
  refuse?.fire("click");
  await new Promise(setImmediate);
  assert.equal(notice.hidden, true);
  note = "Pay is allowed only until the server stops.";
  refuse?.fire("click");
  await new Promise(setImmediate);
  assert.equal(notice.hidden, false);
  assert.equal(notice.children[0].textContent, note);
});
