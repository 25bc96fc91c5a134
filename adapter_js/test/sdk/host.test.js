// What a plugin shares with its host and with its pre-script through `__openTabs`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { bundleAs, fakeTimers, openPage, withGlobals } from "./fakes.js";

bundleAs("shop");
const {
  clearAuthCache,
  definePreScript,
  getAuthCache,
  getConfig,
  getPreScriptValue,
  setAuthCache,
} = await import("../../sdk/index.js");
const { notifyReadinessChanged } = await import("../../sdk/readiness.js");

// --- settings ---

test("getConfig returns settings, including false and 0, and undefined for others", (t) => {
  openPage(t, { openTabs: { pluginConfig: { site: "https://a.example", on: false, count: 0 } } });
  const keys = ["site", "on", "count", "none", "toString", "__proto__"];
  const expected = ["https://a.example", false, 0, undefined, undefined, undefined];
  assert.deepEqual(
    keys.map((key) => getConfig(key)),
    expected,
  );
});

test("getConfig returns undefined without settings or without a host", (t) => {
  assert.equal(getConfig("site"), undefined);
  openPage(t);
  assert.equal(getConfig("site"), undefined);
});

// --- readiness ---

test("notifyReadinessChanged posts a signed message, or nothing without a host", (t) => {
  const page = openPage(t);
  notifyReadinessChanged();
  assert.deepEqual(page.posted, [
    { type: "opentabs:readiness-changed", plugin: "shop", nonce: "ready", origin: "*" },
  ]);
  const alone = openPage(t, { hasHost: false });
  notifyReadinessChanged();
  assert.deepEqual(alone.posted, []);
});

// --- the auth cache ---

test("the auth cache keeps values by namespace until they are cleared", (t) => {
  openPage(t);
  setAuthCache("shop", { token: "t" });
  setAuthCache("other", "o");
  assert.deepEqual([getAuthCache("shop"), getAuthCache("other")], [{ token: "t" }, "o"]);
  clearAuthCache("shop");
  assert.deepEqual([getAuthCache("shop"), getAuthCache("other")], [null, "o"]);
});

test("the auth cache returns null for missing entries, including names on Object.prototype", (t) => {
  openPage(t);
  assert.deepEqual(["shop", "toString", "__proto__"].map(getAuthCache), [null, null, null]);
  setAuthCache("__proto__", 1);
  assert.equal(getAuthCache("__proto__"), 1);
  assert.equal(getAuthCache("shop"), null);
});

test("the auth cache works without a host", (t) => {
  withGlobals(t, { __openTabs: undefined });
  assert.equal(getAuthCache("shop"), null);
  clearAuthCache("shop");
  setAuthCache("shop", 1);
  assert.equal(getAuthCache("shop"), 1);
});

test("the auth cache works in a frozen registry, and keeps the registry's other members", (t) => {
  const adapters = Object.freeze({ other: {} });
  const tokenCache = Object.freeze({ other: "o" });
  withGlobals(t, { __openTabs: Object.freeze({ adapters, tokenCache, _logNonce: "log" }) });
  setAuthCache("shop", 1);
  assert.deepEqual([getAuthCache("shop"), getAuthCache("other")], [1, "o"]);
  const { adapters: now, _logNonce } = /** @type {any} */ (globalThis).__openTabs;
  assert.deepEqual([now === adapters, _logNonce], [true, "log"]);
});

// --- the pre-script ---

test("a pre-script runs at once, and the tools of its plugin can read its values", (t) => {
  const page = openPage(t, { openTabs: { preScript: { other: { token: "o" } } } });
  definePreScript(({ set }) => {
    set("token", "t");
    set("count", 1);
    set("token", "u");
  });
  const keys = ["token", "count", "none", "toString"];
  assert.deepEqual(keys.map(getPreScriptValue), ["u", 1, undefined, undefined]);
  assert.deepEqual(page.openTabs().preScript, {
    other: { token: "o" },
    shop: { token: "u", count: 1 },
  });
});

test("a pre-script can set values later, even if the registry is frozen by then", (t) => {
  const page = openPage(t);
  /** @type {(key: string, value: unknown) => void} */
  let keep = () => {};
  definePreScript(({ set }) => {
    keep = set;
  });
  assert.equal(getPreScriptValue("token"), undefined);
  withGlobals(t, {
    __openTabs: Object.freeze({ ...page.openTabs(), preScript: Object.freeze({}) }),
  });
  keep("token", "t");
  assert.equal(getPreScriptValue("token"), "t");
});

for (const [kind, run] of /** @type {[string, () => unknown][]} */ ([
  [
    "throws",
    () => {
      throw new Error("mine");
    },
  ],
  ["rejects", () => Promise.reject(new Error("mine"))],
])) {
  test(`an error is logged if a pre-script ${kind}`, async (t) => {
    const page = openPage(t);
    const timers = fakeTimers(t);
    definePreScript(run);
    await timers.advance(100);
    const [record] = page.records();
    assert.deepEqual([record.level, record.data[0].message], ["error", "mine"]);
  });
}

test("a pre-script logs in the name of its plugin", async (t) => {
  const page = openPage(t);
  const timers = fakeTimers(t);
  definePreScript(({ log }) => log.info("early"));
  await timers.advance(100);
  assert.deepEqual([page.posted[0].plugin, page.records()[0].message], ["shop", "early"]);
});
