import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { settled } from "../fakes.js";
import { bundleAs, fakeTimers, openPage, withGlobals } from "./fakes.js";

bundleAs("shop");
const { log, OpenTabsPlugin } = await import("../../sdk/index.js");
const { register } = await import("../../sdk/register.js");

/** @import { TestContext } from "node:test" */

const REASON = new Error("mine");

/**
 * A plugin that records the calls of its hooks, with their arguments.
 * @param {Record<string, unknown>} [members] added or in place of its own
 */
function makePlugin(members = {}) {
  /** @type {unknown[][]} */
  const calls = [];
  /**
   * @param {string} name
   * @returns {(this: unknown, ...args: unknown[]) => void}
   */
  const note = (name) =>
    function (...args) {
      assert.equal(this, plugin);
      calls.push([name, ...args]);
    };
  const plugin = {
    displayName: "Shop",
    tools: [],
    isReady: async () => true,
    onActivate: note("onActivate"),
    onDeactivate: note("onDeactivate"),
    teardown: note("teardown"),
    onNavigate: note("onNavigate"),
    onToolInvocationStart: note("onToolInvocationStart"),
    onToolInvocationEnd: note("onToolInvocationEnd"),
    ...members,
  };
  return { plugin: /** @type {any} */ (plugin), calls };
}

/**
 * A page with one plugin registered in it.
 * @param {TestContext} t
 * @param {Record<string, unknown>} [members]
 */
function start(t, members) {
  const page = openPage(t);
  fakeTimers(t);
  const { plugin, calls } = makePlugin(members);
  register(plugin, { name: "shop", hash: "1f" });
  const adapter = page.openTabs().adapters.shop;
  calls.length = 0; // of onActivate
  return { page, adapter, calls };
}

/**
 * A page with one tool in it.
 * @param {TestContext} t
 * @param {Record<string, unknown>} tool
 * @param {Record<string, unknown>} [members]
 */
function startTool(t, tool, members) {
  const whole = { name: "a_tool", description: "", input: z.object({}), output: z.any(), ...tool };
  const { adapter, ...rest } = start(t, { tools: [whole], ...members });
  return { ...rest, tool: whole, handle: adapter.tools[0].handle };
}

// --- the adapter ---

test("the adapter has the members that a host reads, and is frozen", (t) => {
  const tool = { name: "a_tool", input: z.object({}), handle: () => 1 };
  const { adapter, page } = start(t, { tools: [tool] });
  assert.deepEqual(
    [adapter.name, adapter.displayName, adapter.__adapterHash],
    ["shop", "Shop", "1f"],
  );
  assert.deepEqual(Object.keys(adapter.tools[0]), ["name", "handle"]);
  assert.equal(adapter.tools[0].name, "a_tool");
  for (const each of [adapter, adapter.tools, adapter.tools[0]]) {
    assert.ok(Object.isFrozen(each));
  }
  assert.throws(() => {
    page.openTabs().adapters = {};
  }, TypeError);
  assert.throws(() => {
    page.openTabs().adapters.shop = {};
  }, TypeError);
});

test("a plugin class is instantiated", (t) => {
  const page = openPage(t);
  class Shop extends /** @type {any} */ (OpenTabsPlugin) {
    displayName = "Shop";
    /** @type {unknown[]} */
    tools = [];
  }
  register(/** @type {any} */ (Shop), { name: "shop", hash: "" });
  assert.equal(page.openTabs().adapters.shop.displayName, "Shop");
});

test("a missing registry is created", (t) => {
  openPage(t);
  withGlobals(t, { __openTabs: undefined });
  register(makePlugin().plugin, { name: "shop", hash: "" });
  assert.equal(/** @type {any} */ (globalThis).__openTabs.adapters.shop.name, "shop");
});

test("other plugins can still register, by hand and as builds do", (t) => {
  const { page, adapter } = start(t);
  page.openTabs().adapters.byHand = {};
  register(makePlugin().plugin, { name: "other", hash: "" });
  assert.deepEqual(Object.keys(page.openTabs().adapters), ["shop", "byHand", "other"]);
  assert.equal(page.openTabs().adapters.shop, adapter);
  assert.throws(() => {
    page.openTabs().adapters.shop = {};
  }, TypeError);
});

for (const [how, lock] of /** @type {[string, (registry: any) => object][]} */ ([
  [
    "frozen",
    (registry) => Object.freeze({ ...registry, adapters: Object.freeze(registry.adapters) }),
  ],
  [
    "locked as the ecosystem's builds lock it",
    (registry) => {
      Object.defineProperty(registry.adapters, "other", { writable: false, configurable: false });
      return Object.defineProperty(registry, "adapters", { writable: false });
    },
  ],
])) {
  test(`a registry that is ${how} is replaced by a copy with all its members`, (t) => {
    const page = openPage(t);
    const other = {};
    const members = { pluginConfig: { a: 1 }, preScript: { b: 2 }, tokenCache: { c: 3 } };
    const nonces = { _logNonce: "log", _readinessNonce: "ready" };
    const locked = lock({ adapters: { other }, ...members, ...nonces });
    withGlobals(t, { __openTabs: locked });
    register(makePlugin().plugin, { name: "shop", hash: "" });
    const { adapters, ...rest } = page.openTabs();
    assert.deepEqual(rest, { ...members, ...nonces });
    assert.equal(adapters.other, other);
    assert.equal(adapters.shop.name, "shop");
    page.openTabs().pluginConfig = { a: 2 }; // a host sets it for the next plugin
  });
}

test("an older adapter with the same name is torn down before it is replaced", (t) => {
  const page = openPage(t);
  /** @type {string[]} */
  const order = [];
  const teardown = () => order.push(`old, while ${page.openTabs().adapters.shop.name} is there`);
  withGlobals(t, { __openTabs: { adapters: { shop: { name: "the old", teardown } } } });
  const { plugin } = makePlugin({ onActivate: () => order.push("new") });
  register(plugin, { name: "shop", hash: "" });
  assert.deepEqual(order, ["old, while the old is there", "new"]);
});

for (const [what, old] of /** @type {[string, object][]} */ ([
  ["has no teardown", {}],
  [
    "fails in its teardown",
    {
      teardown() {
        throw REASON;
      },
    },
  ],
])) {
  test(`an older adapter that ${what} is still replaced`, (t) => {
    const page = openPage(t, { openTabs: { adapters: { shop: old } } });
    fakeTimers(t);
    register(makePlugin().plugin, { name: "shop", hash: "2" });
    assert.equal(page.openTabs().adapters.shop.__adapterHash, "2");
  });
}

test("a plugin whose constructor throws does not affect the old adapter", (t) => {
  let torn = false;
  const old = {
    teardown() {
      torn = true;
    },
  };
  const page = openPage(t, { openTabs: { adapters: { shop: old } } });
  class Broken extends /** @type {any} */ (OpenTabsPlugin) {
    constructor() {
      super();
      throw REASON;
    }
  }
  assert.throws(() => register(/** @type {any} */ (Broken), { name: "shop", hash: "" }), REASON);
  assert.deepEqual([page.openTabs().adapters.shop === old, torn], [true, false]);
});

// --- readiness ---

for (const [what, isReady, expected] of /** @type {[string, () => unknown, boolean][]} */ ([
  ["true", async () => true, true],
  ["false", async () => false, false],
  ["not awaited", () => true, true],
  ["an element", async () => ({}), true],
  ["null", async () => null, false],
])) {
  test(`an isReady() result of ${what} makes the adapter ${expected ? "" : "not "}ready`, async (t) => {
    const { adapter } = start(t, { isReady });
    assert.equal(await adapter.isReady(), expected);
  });
}

for (const [kind, isReady] of /** @type {[string, () => unknown][]} */ ([
  [
    "throws",
    () => {
      throw REASON;
    },
  ],
  ["rejects", () => Promise.reject(REASON)],
])) {
  test(`the error with which an isReady() ${kind} reaches the host, and is logged at level debug`, async (t) => {
    const { adapter, page } = start(t, { isReady });
    await assert.rejects(adapter.isReady(), REASON);
    assert.deepEqual(
      page.printed.map(([level]) => level),
      ["debug"],
    );
  });
}

test("isReady() is called as a method of the plugin", async (t) => {
  const { adapter } = start(t, {
    signedIn: true,
    async isReady() {
      return this.signedIn;
    },
  });
  assert.equal(await adapter.isReady(), true);
});

// --- calls ---

test("a tool receives its parameters with defaults, its context, and itself as `this`", async (t) => {
  /** @type {unknown[]} */
  let got = [];
  const { handle, tool } = startTool(t, {
    input: z.object({ id: z.string(), limit: z.number().default(10) }),
    /** @this {unknown} */
    async handle(/** @type {unknown[]} */ ...args) {
      got = [this, ...args];
      return { ok: true };
    },
  });
  const context = { reportProgress() {}, signal: new AbortController().signal };
  assert.deepEqual(await handle({ id: "1" }, context), { ok: true });
  assert.deepEqual(got, [tool, { id: "1", limit: 10 }, context]);
  assert.equal(got[2], context);
});

test("a tool may be sync, and be called without a context", async (t) => {
  const { handle } = startTool(t, { handle: (/** @type {unknown[]} */ ...args) => args });
  assert.deepEqual(await handle({}), [{}, undefined]);
});

test("parameters that violate the schema are an error with the paths and reasons", async (t) => {
  let ran = false;
  const { handle } = startTool(t, {
    input: z
      .object({ ids: z.array(z.string()), from: z.number(), to: z.number() })
      .refine(({ from, to }) => from < to, { message: "from must be before to" }),
    handle() {
      ran = true;
    },
  });
  await assert.rejects(handle({ ids: ["a", 1], from: 1 }), (/** @type {any} */ error) => {
    assert.deepEqual([error.code, error.category], ["VALIDATION_ERROR", "validation"]);
    assert.match(error.message, /ids\[1\]: .*expected string.*; to: .*expected number/);
    return true;
  });
  await assert.rejects(handle({ ids: [], from: 2, to: 1 }), /are not valid: from must be before/);
  await assert.rejects(handle(undefined), { code: "VALIDATION_ERROR" });
  assert.equal(ran, false);
});

test("an error of a tool is thrown unchanged", async (t) => {
  const { handle } = startTool(t, {
    handle() {
      throw REASON;
    },
  });
  await assert.rejects(handle({}), (error) => error === REASON);
});

for (const [how, handle, success] of /** @type {[string, () => unknown, boolean][]} */ ([
  ["a value", async () => 1, true],
  ["an error", () => Promise.reject(REASON), false],
])) {
  test(`hooks are called before and after a call that ends in ${how}`, async (t) => {
    /** @type {unknown[]} */
    let before = [];
    const run = () => {
      before = calls.slice();
      return handle();
    };
    const { handle: call, calls } = startTool(t, { handle: run });
    await call({}).catch(() => {});
    const start = ["onToolInvocationStart", "a_tool"];
    assert.deepEqual(before, [start]);
    const [, end = [], ...more] = calls;
    assert.deepEqual(end.slice(0, 3), ["onToolInvocationEnd", "a_tool", success]);
    assert.ok(Number(end[3]) >= 0);
    assert.deepEqual(more, []);
  });
}

test("hooks see a call with invalid parameters as failed", async (t) => {
  const { handle, calls } = startTool(t, { input: z.object({ id: z.string() }), handle: () => 1 });
  await assert.rejects(handle({}));
  assert.deepEqual(
    calls.map(([hook, tool, success]) => [hook, tool, success]),
    [
      ["onToolInvocationStart", "a_tool", undefined],
      ["onToolInvocationEnd", "a_tool", false],
    ],
  );
});

test("a call does not wait for its hooks", async (t) => {
  const never = () => new Promise(() => {});
  const hooks = { onToolInvocationStart: never, onToolInvocationEnd: never };
  const { handle } = startTool(t, { handle: () => 1 }, hooks);
  assert.equal(await handle({}), 1);
});

test("records logged during a call are sent before its result", async (t) => {
  const { handle, page } = startTool(
    t,
    { handle: () => log.info("in the tool") },
    { onToolInvocationEnd: () => log.info("in the hook") },
  );
  await handle({});
  assert.deepEqual(
    page.records().map(({ message }) => message),
    ["in the tool", "in the hook"],
  );
});

test("records logged during a failed call are sent before its error", async (t) => {
  const { handle, page } = startTool(t, {
    handle() {
      log.info("in the tool");
      throw REASON;
    },
  });
  await assert.rejects(handle({}));
  assert.equal(page.records().length, 1);
});

// --- hooks that fail ---

const HOOKS = [
  "onActivate",
  "onToolInvocationStart",
  "onToolInvocationEnd",
  "onNavigate",
  "onDeactivate",
  "teardown",
];

for (const [kind, fail] of /** @type {[string, () => unknown][]} */ ([
  [
    "throw",
    () => {
      throw REASON;
    },
  ],
  ["reject", async () => Promise.reject(REASON)],
])) {
  test(`hooks that ${kind} are logged by name, and affect nothing else`, async (t) => {
    const hooks = Object.fromEntries(HOOKS.map((hook) => [hook, fail]));
    const { handle, page } = startTool(t, { handle: () => 1 }, hooks);
    assert.equal(await handle({}), 1);
    page.go("https://shop.example/2");
    page.openTabs().adapters.shop.teardown();
    await settled();
    assert.deepEqual(
      page.printed.map(([level, [, message, error]]) => [level, message, error]),
      HOOKS.map((hook) => ["error", `${hook}() failed`, REASON]),
    );
  });
}

test("a plugin without hooks works", async (t) => {
  const hooks = Object.fromEntries(HOOKS.map((hook) => [hook, undefined]));
  const { handle, page } = startTool(t, { handle: () => 1 }, hooks);
  assert.equal(await handle({}), 1);
  page.go("https://shop.example/2");
  page.openTabs().adapters.shop.teardown();
  assert.deepEqual(page.printed, []);
});

// --- life cycle ---

test("a plugin is activated after it is registered", (t) => {
  const page = openPage(t);
  /** @type {unknown} */
  let registered;
  const onActivate = () => {
    registered = page.openTabs().adapters.shop;
  };
  register(makePlugin({ onActivate }).plugin, { name: "shop", hash: "" });
  assert.equal(registered, page.openTabs().adapters.shop);
});

test("onNavigate is called once for each new URL", (t) => {
  const { page, calls } = start(t);
  page.go("https://shop.example/2");
  page.go("https://shop.example/2");
  page.go("https://shop.example/2#part");
  assert.deepEqual(calls, [
    ["onNavigate", "https://shop.example/2"],
    ["onNavigate", "https://shop.example/2#part"],
  ]);
});

test("a plugin is deactivated and then torn down, once, and its hooks are not called after that", (t) => {
  const { page, adapter, calls } = start(t);
  adapter.teardown();
  adapter.teardown();
  page.go("https://shop.example/2");
  assert.deepEqual(calls, [["onDeactivate"], ["teardown"]]);
});

test("records logged during a teardown are sent", (t) => {
  const { page, adapter } = start(t, { teardown: () => log.info("bye") });
  adapter.teardown();
  assert.equal(page.records().length, 1);
});

test("in a page with its own global `navigation`, onNavigate is called for popstate and hashchange", (t) => {
  const page = openPage(t);
  page.window.navigation = { items: [] };
  const { plugin, calls } = makePlugin();
  register(plugin, { name: "shop", hash: "" });
  for (const type of ["popstate", "hashchange"]) {
    page.window.location.href += type;
    page.window.dispatchEvent(new Event(type));
  }
  page.openTabs().adapters.shop.teardown();
  page.window.location.href += "unheard";
  page.window.dispatchEvent(new Event("popstate"));
  assert.deepEqual(calls, [
    ["onActivate"],
    ["onNavigate", "https://shop.example/popstate"],
    ["onNavigate", "https://shop.example/popstatehashchange"],
    ["onDeactivate"],
    ["teardown"],
  ]);
});

test("a plugin whose registration fails halfway can be torn down", (t) => {
  const page = openPage(t);
  Reflect.deleteProperty(page.window, "location");
  const { plugin, calls } = makePlugin();
  assert.throws(() => register(plugin, { name: "shop", hash: "" }), TypeError);
  page.openTabs().adapters.shop.teardown();
  assert.deepEqual(calls, [["onDeactivate"], ["teardown"]]);
});

for (const first of ["shop", "other"]) {
  test(`each of two plugins is notified of URLs, and tearing down ${first} does not affect the other`, (t) => {
    const page = openPage(t);
    const plugins = { shop: makePlugin(), other: makePlugin() };
    for (const [name, { plugin, calls }] of Object.entries(plugins)) {
      register(plugin, { name, hash: "" });
      calls.length = 0;
    }
    const urls = (/** @type {"shop" | "other"} */ name) =>
      plugins[name].calls.filter(([hook]) => hook === "onNavigate").length;
    page.go("https://shop.example/2");
    assert.deepEqual([urls("shop"), urls("other")], [1, 1]);
    page.openTabs().adapters[first].teardown();
    page.go("https://shop.example/3");
    const expected = first === "shop" ? [1, 2] : [2, 1];
    assert.deepEqual([urls("shop"), urls("other")], expected);
  });
}

test("only the new version of a plugin is notified of URLs", (t) => {
  const { page, calls } = start(t);
  const next = makePlugin();
  register(next.plugin, { name: "shop", hash: "2f" });
  page.go("https://shop.example/2");
  assert.deepEqual(calls, [["onDeactivate"], ["teardown"]]);
  assert.deepEqual(next.calls, [["onActivate"], ["onNavigate", "https://shop.example/2"]]);
});
