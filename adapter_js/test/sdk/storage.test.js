import assert from "node:assert/strict";
import { test } from "node:test";
import * as sdk from "../../sdk/storage.js";
import { withGlobals } from "./fakes.js";

/** @import { TestContext } from "node:test" */

/** @param {Record<string, string>} entries */
function makeStorage(entries = {}) {
  const map = new Map(Object.entries(entries));
  return {
    get length() {
      return map.size;
    },
    key: (/** @type {number} */ index) => [...map.keys()][index] ?? null,
    getItem: (/** @type {string} */ key) => map.get(key) ?? null,
    removeItem: (/** @type {string} */ key) => map.delete(key),
    setItem(/** @type {string} */ key, /** @type {string} */ value) {
      if (value === "too much") throw new DOMException("full", "QuotaExceededError");
      map.set(key, value);
    },
  };
}

/** @param {TestContext} t */
function openBlocked(t) {
  const blocked = {
    get() {
      throw new DOMException("blocked", "SecurityError");
    },
  };
  const window = Object.defineProperties({}, { localStorage: blocked, sessionStorage: blocked });
  withGlobals(t, { window });
}

for (const [area, get, set, remove] of /** @type {const} */ ([
  ["localStorage", sdk.getLocalStorage, sdk.setLocalStorage, sdk.removeLocalStorage],
  ["sessionStorage", sdk.getSessionStorage, sdk.setSessionStorage, sdk.removeSessionStorage],
])) {
  test(`${area} sets, returns and removes values, and returns null for a missing one`, (t) => {
    withGlobals(t, { window: { [area]: makeStorage() } });
    assert.equal(get("a"), null);
    assert.equal(set("a", "1"), true);
    assert.equal(get("a"), "1");
    assert.equal(remove("a"), true);
    assert.equal(get("a"), null);
  });

  test(`a blocked ${area} returns null, and false when it is changed`, (t) => {
    openBlocked(t);
    assert.deepEqual([get("a"), set("a", "1"), remove("a")], [null, false, false]);
  });

  test(`a full ${area} returns false`, (t) => {
    withGlobals(t, { window: { [area]: makeStorage() } });
    assert.equal(set("a", "too much"), false);
  });

  test(`a ${area} that the page deleted is read through a temporary frame`, (t) => {
    const window = {};
    const storage = makeStorage({ token: "t" });
    /** @type {unknown[]} */
    const readOn = [];
    const getter = {
      get() {
        readOn.push(this);
        return storage;
      },
    };
    let frames = 0;
    const frame = {
      contentWindow: Object.defineProperty({}, area, getter),
      remove: () => frames--,
    };
    const document = { createElement: () => frame, documentElement: { append: () => frames++ } };
    withGlobals(t, { window, document });
    assert.equal(get("token"), "t");
    assert.equal(readOn[0], window);
    assert.equal(frames, 0);
  });
}

test("findLocalStorageEntry returns the first entry that matches by key or by value", (t) => {
  const entries = { other: "1", "token-1f": "2", "token-2f": "3" };
  withGlobals(t, { window: { localStorage: makeStorage(entries) } });
  const byKey = sdk.findLocalStorageEntry((key) => key.startsWith("token-"));
  assert.deepEqual(byKey, { key: "token-1f", value: "2" });
  const byValue = sdk.findLocalStorageEntry((_, value) => value === "3");
  assert.deepEqual(byValue, { key: "token-2f", value: "3" });
  assert.equal(
    sdk.findLocalStorageEntry(() => false),
    null,
  );
});

test("findLocalStorageEntry returns null if storage is blocked", (t) => {
  openBlocked(t);
  assert.equal(
    sdk.findLocalStorageEntry(() => true),
    null,
  );
});

test("findLocalStorageEntry throws the error of its predicate", (t) => {
  withGlobals(t, { window: { localStorage: makeStorage({ a: "" }) } });
  const wrong = () => {
    throw new Error("mine");
  };
  assert.throws(() => sdk.findLocalStorageEntry(wrong), /mine/);
});
