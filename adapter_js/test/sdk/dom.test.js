import assert from "node:assert/strict";
import { test } from "node:test";
import {
  getMetaContent,
  getTextContent,
  observeDOM,
  querySelectorAll,
  waitForSelector,
  waitForSelectorRemoval,
} from "../../sdk/dom.js";
import { fakeTimers, listeners, openPage, stateOf, withGlobals } from "./fakes.js";

/** @import { TestContext } from "node:test" */

/** @typedef {{selector: string, textContent?: string, isVisible?: boolean, attributes?: Record<string, string>}} Spec */

/**
 * A document whose elements match one selector each.
 * @param {TestContext} t
 * @param {Spec[]} specs
 */
function openDocument(t, specs = []) {
  const make = (/** @type {Spec} */ { isVisible = true, attributes = {}, ...rest }) => ({
    ...rest,
    getAttribute: (/** @type {string} */ name) => attributes[name] ?? null,
    checkVisibility: () => isVisible,
  });
  let elements = specs.map(make);
  const document = {
    querySelectorAll(/** @type {string} */ selector) {
      if (selector === "[") {
        throw new SyntaxError("not a selector");
      }
      return elements.filter((element) => element.selector === selector);
    },
    querySelector: (/** @type {string} */ selector) =>
      document.querySelectorAll(selector)[0] ?? null,
  };
  /** @type {Set<{target: unknown, options: unknown, change: (records: unknown[]) => void}>} */
  const observed = new Set();
  class MutationObserver {
    /** @param {Function} callback */
    constructor(callback) {
      this.callback = callback;
    }
    observe(/** @type {unknown} */ target, /** @type {unknown} */ options) {
      const change = (/** @type {unknown[]} */ records) => this.callback(records, this);
      this.entry = { target, options, change };
      observed.add(this.entry);
    }
    disconnect() {
      observed.delete(/** @type {any} */ (this.entry));
    }
  }
  withGlobals(t, { document, MutationObserver });
  return {
    document,
    observed,
    elements: () => elements,
    /** @param {Spec[]} next what the document has from now on, without a mutation */
    put(next) {
      elements = next.map(make);
    },
    mutate() {
      for (const { change } of observed) change(["a record"]);
    },
  };
}

const REASON = new Error("cancelled");

test("waitForSelector returns an existing element without a timer or an observer", async (t) => {
  const timers = fakeTimers(t);
  const page = openDocument(t, [{ selector: "a" }, { selector: "a" }]);
  assert.equal(await waitForSelector("a"), page.elements()[0]);
  assert.deepEqual([timers.count(), page.observed.size], [0, 0]);
});

for (const [how, happen] of /** @type {const} */ ([
  ["after a mutation", "mutate"],
  ["without a mutation, at the next check", "advance"],
])) {
  test(`waitForSelector returns an element that appears ${how}`, async (t) => {
    const timers = fakeTimers(t);
    const page = openDocument(t);
    const waiting = waitForSelector("a");
    page.put([{ selector: "b" }]);
    page.mutate();
    await timers.advance(200);
    assert.equal((await stateOf(waiting)).state, "pending");
    page.put([{ selector: "a" }]);
    await (happen === "mutate" ? page.mutate() : timers.advance(200));
    assert.equal((await stateOf(waiting)).value, page.elements()[0]);
    assert.deepEqual([timers.count(), page.observed.size], [0, 0]);
  });
}

test("waitForSelector waits for a visible element, and returns the first", async (t) => {
  fakeTimers(t);
  const page = openDocument(t, [{ selector: "a", isVisible: false }]);
  assert.equal((await stateOf(waitForSelector("a"))).state, "fulfilled");
  const waiting = waitForSelector("a", { visible: true });
  assert.equal((await stateOf(waiting)).state, "pending");
  page.put([{ selector: "a", isVisible: false }, { selector: "a" }]);
  page.mutate();
  assert.equal((await stateOf(waiting)).value, page.elements()[1]);
});

/** @type {[string, (options?: object) => Promise<unknown>, RegExp][]} */
const WAITS = [
  ["waitForSelector", (options) => waitForSelector("b", options), /No element matched b /],
  [
    "waitForSelector for a visible one",
    (options) => waitForSelector("b", { visible: true, ...options }),
    /No visible element matched b /,
  ],
  [
    "waitForSelectorRemoval",
    (options) => waitForSelectorRemoval("a", options),
    /An element still matched a /,
  ],
];

for (const [name, wait, message] of WAITS) {
  test(`${name} throws TIMEOUT after 10 s`, async (t) => {
    const timers = fakeTimers(t);
    const page = openDocument(t, [{ selector: "a" }]);
    const waiting = wait();
    waiting.catch(() => {});
    await timers.advance(9999);
    assert.equal((await stateOf(waiting)).state, "pending");
    await timers.advance(1);
    const { value } = await stateOf(waiting);
    assert.equal(value.code, "TIMEOUT");
    assert.match(value.message, message);
    assert.match(value.message, /10000 ms/);
    assert.deepEqual([timers.count(), page.observed.size], [0, 0]);
  });

  test(`${name} rejects with the signal's reason at once, and cleans up`, async (t) => {
    const timers = fakeTimers(t);
    const page = openDocument(t, [{ selector: "a" }]);
    const controller = new AbortController();
    const waiting = wait({ signal: controller.signal });
    assert.equal((await stateOf(waiting)).state, "pending");
    controller.abort(REASON);
    assert.deepEqual(await stateOf(waiting), { state: "rejected", value: REASON });
    assert.deepEqual([timers.count(), page.observed.size, listeners(controller.signal)], [0, 0, 0]);
  });

  test(`${name} does not start if its signal is aborted`, async (t) => {
    const page = openDocument(t);
    await assert.rejects(wait({ signal: AbortSignal.abort(REASON) }), REASON);
    assert.equal(page.observed.size, 0);
  });
}

test("waitForSelector rejects an invalid selector with the browser's error", async (t) => {
  openDocument(t);
  await assert.rejects(waitForSelector("["), SyntaxError);
});

test("waitForSelectorRemoval returns when no element matches, even if none ever did", async (t) => {
  fakeTimers(t);
  const page = openDocument(t, [{ selector: "a" }, { selector: "a" }]);
  const waiting = waitForSelectorRemoval("a");
  page.put([{ selector: "a" }]);
  page.mutate();
  assert.equal((await stateOf(waiting)).state, "pending");
  page.put([]);
  page.mutate();
  assert.deepEqual(await stateOf(waiting), { state: "fulfilled", value: undefined });
  assert.equal(await waitForSelectorRemoval("a"), undefined);
});

test("querySelectorAll returns an array, empty when nothing matches", (t) => {
  const page = openDocument(t, [{ selector: "a" }, { selector: "b" }, { selector: "a" }]);
  const [first, , third] = page.elements();
  const found = querySelectorAll("a");
  assert.ok(Array.isArray(found));
  assert.deepEqual(found, [first, third]);
  assert.deepEqual(querySelectorAll("c"), []);
});

test("getTextContent returns the trimmed text of the first match, or null", (t) => {
  openDocument(t, [
    { selector: "a", textContent: "\n one  two " },
    { selector: "a", textContent: "three" },
    { selector: "b", textContent: "" },
  ]);
  assert.deepEqual(["a", "b", "c"].map(getTextContent), ["one  two", "", null]);
});

test("getMetaContent finds a name or a property with any characters, or returns null", (t) => {
  const selector = "meta[content]";
  openDocument(t, [
    { selector, attributes: { name: 'odd"]name', content: "1" } },
    { selector, attributes: { property: "og:title", content: "2" } },
    { selector, attributes: { name: "empty", content: "" } },
  ]);
  const found = ['odd"]name', "og:title", "empty", "none"].map(getMetaContent);
  assert.deepEqual(found, ["1", "2", "", null]);
});

test("observeDOM calls its callback with mutations and the observer until it is stopped", (t) => {
  const page = openDocument(t, [{ selector: "a" }]);
  /** @type {MutationObserver[]} */
  const observers = [];
  const stop = observeDOM("a", (mutations, observer) => {
    assert.deepEqual(mutations, ["a record"]);
    observers.push(observer);
  });
  const [entry] = page.observed;
  assert.equal(entry?.target, page.elements()[0]);
  assert.deepEqual(entry?.options, { childList: true, subtree: true });
  page.mutate();
  page.mutate();
  assert.deepEqual(
    observers.map((observer) => observer instanceof MutationObserver),
    [true, true],
  );
  stop();
  assert.equal(page.observed.size, 0);
});

test("observeDOM accepts a node and options", (t) => {
  const page = openDocument(t, [{ selector: "a" }]);
  const [node] = /** @type {any[]} */ (page.elements());
  observeDOM(node, () => {}, { attributes: true });
  const [entry] = page.observed;
  assert.deepEqual([entry?.target, entry?.options], [node, { attributes: true }]);
});

test("observeDOM throws NOT_FOUND when nothing matches", (t) => {
  openDocument(t);
  assert.throws(() => observeDOM("a", () => {}), {
    code: "NOT_FOUND",
    message: /Cannot observe a: no element matches\./,
  });
});

test("an error in the callback of observeDOM is logged, and the callback is called again", (t) => {
  const { printed } = openPage(t);
  fakeTimers(t);
  const page = openDocument(t, [{ selector: "a" }]);
  let calls = 0;
  observeDOM("a", () => {
    calls++;
    throw REASON;
  });
  page.mutate();
  page.mutate();
  assert.deepEqual([calls, printed.map(([level]) => level)], [2, ["error", "error"]]);
});
