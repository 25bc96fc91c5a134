// The demo plugin's tools, loaded as in a page, with a site that answers like the demo's.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const PLUGIN = new URL("../../opentabs_py/demo/plugin/dist/", import.meta.url);
const SOURCE = readFileSync(new URL("adapter.iife.js", PLUGIN), "utf8");
const MANIFEST = JSON.parse(readFileSync(new URL("tools.json", PLUGIN), "utf8"));

const PAGE_SIZE = 25;

/**
 * @typedef {{text: string, author: string, timestamp: string}} Message
 * @typedef {{progress: number, total: number, message: string}} Report
 */

/**
 * The demo site's API behind a `fetch`: history in pages, newest first; a session or 401.
 * @param {{signedIn?: boolean, answer?: () => Response}} [options]
 */
function demoSite({ signedIn = true, answer } = {}) {
  const general = Array.from({ length: 60 }, (_, index) => message(`message ${index}`, index));
  /** @type {Record<string, Message[]>} */
  const channels = { general, empty: [] };
  /** @type {string[]} */
  const requests = [];

  /**
   * @param {string} path
   * @param {RequestInit} [options]
   */
  async function fetch(path, options = {}) {
    options.signal?.throwIfAborted();
    requests.push(`${options.method ?? "GET"} ${path}`);
    if (answer) return answer();
    if (!signedIn) return refuse(401, "No session. Open the site's page first.");
    const url = new URL(path, "http://127.0.0.1/");
    if (url.pathname === "/api/channels") {
      const listed = Object.entries(channels).map(([id, list]) => ({ id, messages: list.length }));
      return Response.json({ channels: listed });
    }
    const id = /^\/api\/channels\/([^/]+)\/messages$/.exec(url.pathname)?.[1];
    const messages = channels[decodeURIComponent(id ?? "")];
    if (messages === undefined) return refuse(404, "There is no such channel.");
    if (options.method === "POST") {
      const { text } = JSON.parse(String(options.body));
      messages.push(message(text, messages.length));
      return Response.json({ message: messages.at(-1) }, { status: 201 });
    }
    const end = Number(url.searchParams.get("cursor") || messages.length);
    const start = Math.max(0, end - PAGE_SIZE);
    return Response.json({
      messages: messages.slice(start, end).reverse(),
      totalPages: Math.max(1, Math.ceil(messages.length / PAGE_SIZE)),
      ...(start > 0 && { nextCursor: String(start) }),
    });
  }
  return { fetch, requests };
}

/**
 * @param {string} text
 * @param {number} second
 */
function message(text, second) {
  return { text, author: "Ada", timestamp: new Date(second * 1000).toISOString() };
}

/**
 * @param {number} status
 * @param {string} text
 * @param {Record<string, string>} [headers]
 */
function refuse(status, text, headers = {}) {
  return Response.json({ error: "refused", message: text }, { status, headers });
}

/**
 * A page's MAIN world with the demo site behind it.
 * @param {{fetch: unknown}} site
 * @param {{isDemo?: boolean, openTabs?: unknown}} [options]
 */
function openPage(site, { isDemo = true, openTabs } = {}) {
  const document = { querySelector: () => (isDemo ? {} : null) };
  const page = vm.createContext({
    fetch: site.fetch,
    document,
    AbortController,
    AbortSignal,
    URLSearchParams,
    ...(openTabs !== undefined && { __openTabs: openTabs }),
  });
  vm.runInContext(SOURCE, page);
  return page;
}

/** @param {vm.Context} page */
const adapterOf = (page) => page.__openTabs.adapters.demo;

/**
 * @param {vm.Context} page
 * @param {string} name
 */
function handlerOf(page, name) {
  const tools = /** @type {{name: string, handle: Function}[]} */ (adapterOf(page).tools);
  const tool = tools.find((one) => one.name === name);
  assert.ok(tool, `the adapter has no ${name}`);
  return tool.handle;
}

/**
 * Values created in a page have that page's prototypes; compare them by content.
 * @param {unknown} value
 */
const plain = (value) => JSON.parse(JSON.stringify(value));

/** @param {Promise<unknown>} running */
async function thrownBy(running) {
  try {
    await running;
  } catch (error) {
    const { message: text, code, category, retryable, retryAfterMs } = /** @type {any} */ (error);
    return { text, code, category, retryable, retryAfterMs };
  }
  return assert.fail("nothing was thrown");
}

test("the adapter has the tools of the manifest, in the same order", () => {
  const tools = adapterOf(openPage(demoSite())).tools;
  assert.deepEqual(
    plain(tools).map((/** @type {{name: string}} */ tool) => tool.name),
    MANIFEST.tools.map((/** @type {{name: string}} */ tool) => tool.name),
  );
  assert.equal(adapterOf(openPage(demoSite())).name, "demo");
});

test("an export without a context returns every message, newest first", async () => {
  const result = plain(
    await handlerOf(openPage(demoSite()), "export_messages")({ channelId: "general" }),
  );
  assert.equal(result.total, 60);
  assert.deepEqual(
    result.messages.map((/** @type {Message} */ one) => one.text),
    Array.from({ length: 60 }, (_, index) => `message ${59 - index}`),
  );
});

test("an export reports each page after it has loaded", async () => {
  const site = demoSite();
  /** @type {(Report & {requests: number})[]} */
  const reports = [];
  const context = {
    reportProgress: (/** @type {Report} */ report) =>
      reports.push({ ...report, requests: site.requests.length }),
  };
  const result = await handlerOf(openPage(site), "export_messages")(
    { channelId: "general" },
    context,
  );
  assert.equal(result.total, 60);
  assert.deepEqual(reports, [
    { progress: 1, total: 3, message: "Exported page 1 of 3", requests: 1 },
    { progress: 2, total: 3, message: "Exported page 2 of 3", requests: 2 },
    { progress: 3, total: 3, message: "Exported page 3 of 3", requests: 3 },
  ]);
});

test("an export of an empty channel has one empty page", async () => {
  /** @type {Report[]} */
  const reports = [];
  const context = { reportProgress: (/** @type {Report} */ report) => reports.push({ ...report }) };
  const running = handlerOf(openPage(demoSite()), "export_messages")(
    { channelId: "empty" },
    context,
  );
  assert.deepEqual(plain(await running), { messages: [], total: 0 });
  assert.deepEqual(reports, [{ progress: 1, total: 1, message: "Exported page 1 of 1" }]);
});

test("an export whose signal is aborted requests no more pages and throws the reason", async () => {
  const site = demoSite();
  const stop = new AbortController();
  const reason = new Error("cancelled by the client");
  const context = {
    signal: stop.signal,
    reportProgress: (/** @type {Report} */ report) => report.progress === 2 && stop.abort(reason),
  };
  const running = handlerOf(openPage(site), "export_messages")({ channelId: "general" }, context);
  await assert.rejects(running, (error) => error === reason);
  assert.equal(site.requests.length, 2);
});

test("a signal aborts a request that is in flight", async () => {
  const stop = new AbortController();
  const reason = new Error("timed out");
  const fetch = (/** @type {string} */ _path, /** @type {RequestInit} */ { signal }) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
      stop.abort(reason);
    });
  const running = handlerOf(openPage({ fetch }), "list_channels")({}, { signal: stop.signal });
  await assert.rejects(running, (error) => error === reason);
});

test("calls fail after a teardown", async () => {
  const page = openPage(demoSite());
  adapterOf(page).teardown();
  await assert.rejects(handlerOf(page, "list_channels")({}), /unloaded/);
});

test("a missing session is an auth error that is not retryable", async () => {
  const page = openPage(demoSite({ signedIn: false }));
  assert.deepEqual(await thrownBy(handlerOf(page, "export_messages")({ channelId: "general" })), {
    text: "No session. Open the site's page first. Reload the tab to sign in, then call again.",
    code: "AUTH_ERROR",
    category: "auth",
    retryable: false,
    retryAfterMs: undefined,
  });
});

test("an unknown channel is a NOT_FOUND error", async () => {
  const page = openPage(demoSite());
  const thrown = await thrownBy(
    handlerOf(page, "send_message")({ channelId: "attic", text: "hi" }),
  );
  assert.equal(thrown.code, "NOT_FOUND");
  assert.equal(thrown.category, "not_found");
  assert.equal(thrown.retryable, false);
});

for (const { status, headers, code, category, retryable, retryAfterMs } of [
  { status: 400, code: "VALIDATION_ERROR", category: "validation", retryable: false },
  { status: 403, code: "AUTH_ERROR", category: "auth", retryable: false },
  { status: 429, code: "RATE_LIMITED", category: "rate_limit", retryable: true },
  {
    status: 429,
    headers: { "retry-after": "2" },
    code: "RATE_LIMITED",
    category: "rate_limit",
    retryable: true,
    retryAfterMs: 2000,
  },
  { status: 503, code: "SITE_ERROR", category: "internal", retryable: true },
]) {
  test(`status ${status} with headers ${JSON.stringify(headers ?? {})} is ${code}`, async () => {
    const site = demoSite({ answer: () => refuse(status, "No.", headers) });
    const { text, ...thrown } = await thrownBy(handlerOf(openPage(site), "list_channels")({}));
    assert.match(text, /^No\./);
    assert.deepEqual(thrown, { code, category, retryable, retryAfterMs });
  });
}

test("the error for a response that is not JSON contains the status", async () => {
  const site = demoSite({ answer: () => new Response("<h1>Bad gateway</h1>", { status: 502 }) });
  const thrown = await thrownBy(handlerOf(openPage(site), "list_channels")({}));
  assert.equal(thrown.text, "The site answered 502.");
});

test("a channel's id is escaped in the path", async () => {
  const site = demoSite();
  await thrownBy(handlerOf(openPage(site), "send_message")({ channelId: "a/../b?c", text: "hi" }));
  assert.deepEqual(site.requests, ["POST /api/channels/a%2F..%2Fb%3Fc/messages"]);
});

test("send_message returns the message with its author", async () => {
  const sent = await handlerOf(
    openPage(demoSite()),
    "send_message",
  )({ channelId: "empty", text: "hi" });
  assert.deepEqual(plain(sent), { message: message("hi", 0) });
});

test("the plugin is ready only on the demo's page", async () => {
  assert.equal(await adapterOf(openPage(demoSite())).isReady(), true);
  assert.equal(await adapterOf(openPage(demoSite(), { isDemo: false })).isReady(), false);
});

test("registering keeps the adapters of other plugins", () => {
  const other = { name: "other" };
  const page = openPage(demoSite(), { openTabs: { adapters: { other } } });
  assert.equal(page.__openTabs.adapters.other, other);
  assert.equal(adapterOf(page).name, "demo");
});

test("loading the plugin again tears down the old adapter", async () => {
  const page = openPage(demoSite());
  const old = handlerOf(page, "list_channels");
  vm.runInContext(SOURCE, page);
  await assert.rejects(old({}), /unloaded/);
  assert.equal(plain(await handlerOf(page, "list_channels")({})).channels.length, 2);
});

test("a registry that another plugin locked is replaced by a copy", () => {
  const other = Object.freeze({ name: "other" });
  const openTabs = Object.freeze({ adapters: Object.freeze({ other }), pluginConfig: { a: 1 } });
  const page = openPage(demoSite(), { openTabs });
  assert.equal(adapterOf(page).name, "demo");
  assert.equal(page.__openTabs.adapters.other, other);
  assert.deepEqual(plain(page.__openTabs.pluginConfig), { a: 1 });
});
