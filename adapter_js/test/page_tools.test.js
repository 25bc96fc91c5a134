// The tools that a page registers itself, in the runtime, with a hand-written browser and relay.

import assert from "node:assert/strict";
import { test } from "node:test";
import { channelEnd, makeNode, makePage, NAME, settled, source, until } from "./fakes.js";

const SCRIPTS = ["extension/content/page_tools.js", "adapter_js/runtime.js"].map(source);

// The minimum of a browser's WebMCP. It announces changes when a test calls `announce`.
const BROWSER = `
  class ModelContext extends EventTarget {
    all = new Map();
    async registerTool({ execute, ...tool }, { signal } = {}) {
      if (this.all.has(tool.name)) throw new Error("Duplicate tool name");
      this.all.set(tool.name, { title: "", ...tool, window: globalThis });
      signal?.addEventListener("abort", () => this.all.delete(tool.name));
    }
    async getTools() { return [...this.all.values()]; }
    async executeTool(tool, input) { return JSON.stringify({ by: "the browser", input }); }
  }
  document.modelContext = new ModelContext();
  const announce = () => document.modelContext.dispatchEvent(new Event("toolchange"));
  const register = (name, execute, more = {}, options = {}) =>
    document.modelContext.registerTool({ name, description: "d", execute, ...more }, options);
`;

/** @param {{early?: string}} [options] what the page runs before the scripts */
async function startPage({ early = "" } = {}) {
  const node = makeNode();
  const page = makePage(node);
  page.context.AbortSignal = AbortSignal;
  page.context[0].AbortSignal = AbortSignal;
  const relay = channelEnd(node, { hears: "up", says: "down" });
  page.run(`${BROWSER}; ${early}`);
  for (const script of SCRIPTS) page.run(script);
  relay.say("nonce", "f".repeat(NAME));
  relay.say("adopt", "@page");
  await until(() => relay.ofKind("readiness").length === 1, "the readiness");
  let calls = 0;

  /**
   * @param {string} tool
   * @param {object} [input]
   */
  async function call(tool, input = {}) {
    const callId = (calls++).toString(16).padStart(NAME, "0");
    const params = { documentId: "d".repeat(NAME), callId, plugin: "@page", tool, input };
    relay.say("tool.dispatch", JSON.stringify({ jsonrpc: "2.0", method: "tool.dispatch", params }));
    const ends = () => [...relay.ofKind("tool.result"), ...relay.ofKind("tool.error")];
    const mine = () => ends().find((each) => each.startsWith(callId));
    await until(() => mine() !== undefined, "the end of the call");
    return JSON.parse(/** @type {string} */ (mine()).slice(NAME));
  }

  return {
    relay,
    call,
    /** @param {string} script */
    async run(script) {
      page.run(script);
      await settled();
    },
    /** The last list that was sent. */
    list: () => JSON.parse(relay.ofKind("page.tools").at(-1) ?? "null"),
    names() {
      /** @type {{id: number, name: string}[]} */
      const tools = this.list().tools;
      return tools.map(({ id, name }) => `${id} ${name}`);
    },
  };
}

test("a page without tools sends an empty list after it has loaded", async () => {
  const page = await startPage();
  assert.deepEqual(page.list(), { tools: [], leftOut: 0 });
});

test("a call runs the page's own function and returns its error", async () => {
  const page = await startPage();
  await page.run(`
    register("add", ({a}) => ({sum: a + 1}));
    register("fail", () => { throw new Error("my own") })`);
  assert.deepEqual(page.names(), ["1 add", "2 fail"]);
  assert.deepEqual(await page.call("1 add", { a: 1 }), { sum: 2 });
  assert.equal((await page.call("2 fail")).message, "my own");
});

test("a removed tool cannot be called, even before the browser announces the change", async () => {
  const page = await startPage();
  await page.run(`
    const off = new AbortController();
    register("add", () => "ran", {}, {signal: off.signal})`);
  await page.run("off.abort()");
  assert.deepEqual(page.names(), ["1 add"]); // no change was announced
  const { code, started, retryable, retryAfterMs } = await page.call("1 add");
  assert.deepEqual([code, started, retryable, retryAfterMs], ["PAGE_TOOL_GONE", false, true, 1000]);
});

test("a call to an earlier registration does not run the later one", async () => {
  const page = await startPage();
  await page.run(`
    const off = new AbortController();
    register("add", () => "first", {}, {signal: off.signal})`);
  await page.run("off.abort(); register('add', () => 'second')");
  assert.deepEqual(page.names(), ["2 add"]);
  assert.equal((await page.call("1 add")).code, "PAGE_TOOL_GONE");
  assert.equal(await page.call("2 add"), "second");
});

test("a call to an earlier registration is refused before the list has changed", async () => {
  const page = await startPage({
    early: `
      globalThis.isHeld = false;
      const { getTools } = ModelContext.prototype;
      ModelContext.prototype.getTools = function () {
        return isHeld ? new Promise(() => {}) : getTools.call(this);
      }`,
  });
  await page.run(`
    const off = new AbortController();
    register("add", () => "first", {}, {signal: off.signal})`);
  await page.run("isHeld = true; off.abort(); register('add', () => 'second')");
  assert.deepEqual(page.names(), ["1 add"]);
  assert.equal((await page.call("1 add")).code, "PAGE_TOOL_GONE");
});

test("a second registration that the browser rejects keeps the first", async () => {
  const page = await startPage();
  await page.run("register('add', () => 'first')");
  await page.run("register('add', () => 'second').catch(() => {})");
  assert.equal(await page.call("1 add"), "first");
});

test("a tool that was registered before the runtime started is run by the browser", async () => {
  const page = await startPage({ early: "register('old', () => 'own')" });
  assert.deepEqual(page.names(), ["1 old"]);
  assert.deepEqual(await page.call("1 old", { a: 1 }), { by: "the browser", input: { a: 1 } });
});

test("tools over the limits are left out and counted", async () => {
  const page = await startPage();
  await page.run(`
    register("", () => 1);
    register("x".repeat(129), () => 1);
    register("large", () => 1, {inputSchema: {description: "x".repeat(20000)}});
    register("list", () => 1, {inputSchema: []});
    let deep = {};
    for (let i = 0; i < 65; i++) deep = {not: deep};
    register("deep", () => 1, {inputSchema: deep});
    for (let i = 0; i < 101; i++) register("t" + i, () => 1)`);
  assert.deepEqual([page.list().tools.length, page.list().leftOut], [100, 6]);
});

test("tools whose schemas are too large in total are left out", async () => {
  const page = await startPage();
  await page.run(`
    const inputSchema = {description: "x".repeat(10000)};
    for (let i = 0; i < 50; i++) register("t" + i, () => 1, {inputSchema})`);
  const { tools, leftOut } = page.list();
  assert.equal(tools.length + leftOut, 50);
  assert.ok(JSON.stringify(tools).length < 280_000);
});

test("the same list is not sent twice", async () => {
  const page = await startPage();
  await page.run("register('add', () => 1)");
  const before = page.relay.ofKind("page.tools").length;
  await page.run("announce(); announce()");
  assert.equal(page.relay.ofKind("page.tools").length, before);
});

test("the list is sent again to a new relay", async () => {
  const page = await startPage();
  await page.run("register('add', () => 1)");
  const before = page.relay.ofKind("page.tools");
  page.relay.say("nonce", "e".repeat(NAME));
  await settled();
  assert.deepEqual(page.relay.ofKind("page.tools"), [...before, before.at(-1)]);
});

test("all a page can find is functions that look like the browser's", async () => {
  const page = await startPage();
  await page.run(`
    globalThis.found = [
      "openTabsPageTools" in globalThis,
      typeof document.modelContext.registerTool,
      document.modelContext.registerTool.name,
      Object.keys(document.modelContext.registerTool).length,
    ]; register("tell", () => found)`);
  assert.deepEqual(await page.call("1 tell"), [false, "function", "registerTool", 0]);
});

test("a page obtains no function of these scripts, and so not their arguments", async () => {
  const page = await startPage({
    early: `
      globalThis.names = [];
      Error.prepareStackTrace = (_error, sites) =>
        sites.flatMap((site) => site.getFunction()?.name ?? []);
      const { modelContext } = document;
      Object.defineProperty(document, "modelContext", {
        get: function mine() {
          names.push(...new Error().stack);
          return modelContext;
        },
      });`,
  });
  await page.run('register("names", () => [...new Set(names)])');
  assert.deepEqual(await page.call("1 names"), ["mine", "register"]);
});
