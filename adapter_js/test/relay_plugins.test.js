// The relay: plugins' readiness and logs, and the page's own tools.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MEBI, startLogs, startRelay } from "./relays.js";

// --- readiness and logs ---

test("an adopted plugin's readiness is reported to the worker", () => {
  const relay = startRelay();
  relay.adopt();
  assert.deepEqual(relay.page.ofKind("adopt"), ["demo"]);
  relay.page.say("readiness", '{"plugin":"demo","readiness":"unavailable","reason":"signed out"}');
  assert.deepEqual(relay.drain(), [
    {
      type: "readiness",
      plugin: "demo",
      state: { readiness: "unavailable", reason: "signed out" },
    },
  ]);
});

test("a dropped plugin is removed from the page, and its messages are ignored", () => {
  const relay = startRelay();
  relay.adopt();
  relay.worker.say({ type: "drop", plugin: "demo" });
  assert.deepEqual(relay.page.ofKind("drop"), ["demo"]);
  relay.page.say("readiness", '{"plugin":"demo","readiness":"ready"}');
  assert.deepEqual(relay.drain(), []);
  relay.worker.die();
  assert.deepEqual(relay.drain()[0].plugins, []);
});

test("readiness that changes all the time is sent eight times at once, and then now and then", () => {
  const relay = startRelay();
  relay.adopt();
  const change = (/** @type {string} */ readiness) =>
    relay.page.say("readiness", JSON.stringify({ plugin: "demo", readiness, reason: "r" }));
  for (let i = 0; i < 100; i++) change(i % 2 === 0 ? "ready" : "unavailable");
  assert.equal(relay.drain().length, 8);
  relay.elapse();
  assert.deepEqual(
    relay.drain().map(({ state }) => state.readiness),
    ["unavailable"],
  );
});

test("readiness that the worker has asked for is sent at once, however often it has changed", () => {
  const relay = startRelay();
  relay.adopt();
  const say = (/** @type {string} */ readiness) =>
    relay.page.say("readiness", JSON.stringify({ plugin: "demo", readiness }));
  for (let i = 0; i < 10; i++) say("unavailable");
  relay.drain();
  relay.worker.say({ type: "ask", plugin: "demo" });
  say("ready");
  assert.deepEqual(
    relay.drain().map(({ state }) => state.readiness),
    ["ready"],
  );
  relay.elapse();
  assert.deepEqual(relay.drain(), []);
});

test("the readiness of an unknown plugin is ignored", () => {
  const relay = startRelay();
  relay.page.say("readiness", '{"plugin":"ghost","readiness":"ready"}');
  assert.deepEqual(relay.drain(), []);
});

test("a hole in an array of log records is sent as a record", () => {
  const relay = startRelay();
  relay.adopt();
  // biome-ignore lint/suspicious/noSparseArray: a page may send one
  const entries = [, { level: "info", message: "kept" }];
  relay.post({ type: "opentabs:plugin-logs", plugin: "demo", entries, nonce: relay.nonce() });
  const { entries: sent } = relay.drain()[0].params;
  assert.equal(sent.length, 2);
  assert.ok(sent.every((/** @type {any} */ each) => typeof each?.message === "string"));
});

test("a reason with a lone surrogate, or cut within a pair, is sent well-formed", () => {
  for (const reason of ["\ud800", `${"x".repeat(999)}\u{1f600}`]) {
    const relay = startRelay();
    relay.adopt();
    relay.page.say(
      "readiness",
      JSON.stringify({ plugin: "demo", readiness: "unavailable", reason }),
    );
    const [{ state }] = relay.drain();
    assert.ok(state.reason.isWellFormed());
  }
});

test("a signed change of readiness makes the runtime check", () => {
  const relay = startRelay();
  relay.adopt();
  relay.post({ type: "opentabs:readiness-changed", plugin: "demo", nonce: relay.nonce() });
  assert.deepEqual(relay.page.ofKind("check"), ["demo"]);
});

test("a plugin's logs are forwarded with level, text and time", () => {
  const relay = startLogs();
  relay.log(
    { level: "warn", message: "slow", data: [{ ms: 5 }], ts: 12.5 },
    { level: "odd", message: 7 },
  );
  const [{ method, params }] = relay.drain();
  assert.equal(method, "plugin.log");
  assert.deepEqual(params.entries, [
    { level: "warning", message: 'slow [{"ms":5}]', time: 12.5 },
    { level: "info", message: "7", time: relay.clock.now },
  ]);
});

test("an error that a plugin logs is shown with its stack and its causes, in lines", () => {
  const relay = startLogs();
  const cause = {
    name: "TypeError",
    message: "gone",
    stack: "TypeError: gone\n    at look (b.js:1)",
  };
  const error = {
    name: "Error",
    message: "no",
    code: "NO",
    cause,
    stack: "Error: no\n    at a.js:2",
  };
  const other = { name: "Error", message: "changed since", stack: "Error: as thrown", cause: [1] };
  relay.log(
    { level: "error", message: "failed", data: [{ id: 3 }, error, null, other] },
    { level: "error", message: "failed", data: { name: "Ada", message: "hello" } },
  );
  const [{ params }] = relay.drain();
  assert.deepEqual(
    params.entries.map((/** @type {any} */ each) => each.message.split("\n")),
    [
      [
        'failed [{"id":3},null]',
        "Error: no",
        "    at a.js:2",
        "[cause]: TypeError: gone",
        "    at look (b.js:1)",
        '{"code":"NO"}',
        "Error: changed since",
        "Error: as thrown",
        "[cause]: [1]",
      ],
      ['failed [{"name":"Ada","message":"hello"}]'],
    ],
  );
});

test("logs without the nonce, from another window, or of an unknown plugin are dropped", () => {
  const relay = startLogs();
  const sound = { type: "opentabs:plugin-logs", plugin: "demo", entries: [{ message: "m" }] };
  relay.post({ ...sound, nonce: "f".repeat(32) });
  relay.post(sound);
  relay.post({ ...sound, nonce: relay.nonce() }, {});
  relay.post({ ...sound, nonce: relay.nonce(), plugin: "ghost" });
  relay.post({ ...sound, nonce: relay.nonce(), entries: "many" });
  assert.deepEqual(relay.drain(), []);
});

/** A relay in a document that is loading, and a function that posts logs of a plugin. */
function startLoading() {
  const relay = startRelay({ document: { readyState: "loading" } });
  const log = (/** @type {unknown} */ plugin, /** @type {number} */ count) => {
    const entries = Array.from({ length: count }, (_, i) => ({ message: `${plugin} ${i}` }));
    relay.post({ type: "opentabs:plugin-logs", plugin, entries, nonce: relay.nonce() });
  };
  /** @param {string[]} plugins */
  const adopted = (...plugins) => {
    for (const plugin of plugins) relay.adopt(plugin);
    return relay
      .drain()
      .filter(({ method }) => method === "plugin.log")
      .map(({ params: { plugin, entries, dropped } }) => [plugin, entries.length, dropped]);
  };
  return { ...relay, log, adopted };
}

test("logs of a pre-script are forwarded once the document has its plugin, and only once", () => {
  const relay = startLoading();
  relay.log("demo", 1);
  relay.log("demo", 2);
  relay.log("ghost", 1);
  assert.deepEqual(relay.drain(), []);
  assert.deepEqual(relay.adopted("demo"), [["demo", 3, 0]]);
  assert.deepEqual(relay.adopted("demo"), []);
});

test("of the logs of plugins that a document does not have, only a few are kept", () => {
  const relay = startLoading();
  relay.log("first", 60);
  relay.log("first", 1);
  relay.log("x".repeat(257), 1);
  relay.log({ no: "name" }, 1);
  for (let i = 2; i <= 11; i++) relay.log(`p${i}`, 1);
  assert.deepEqual(relay.adopted("first", "x".repeat(257), "p10", "p11"), [
    ["first", 50, 11],
    ["p10", 1, 0],
  ]);
});

test("the logs of a plugin that a loaded document does not receive are forgotten", () => {
  const relay = startLoading();
  relay.log("demo", 1);
  relay.complete();
  relay.elapse();
  relay.log("demo", 1);
  assert.deepEqual(relay.adopted("demo"), []);
});

test("logs over the rate limit are dropped and counted", () => {
  const relay = startLogs();
  relay.log(...Array.from({ length: 250 }, (_, i) => ({ message: `${i}` })));
  relay.log({ message: "one more" });
  relay.clock.now += 1000; // allows 50 more
  relay.log(...Array.from({ length: 60 }, (_, i) => ({ message: `${i}` })));
  const counts = relay.drain().map(({ params }) => [params.entries.length, params.dropped]);
  assert.deepEqual(counts, [
    [200, 50],
    [50, 11],
  ]);
});

test("logs are forwarded after the clock is set back", () => {
  const relay = startLogs();
  relay.log({ message: "before" });
  relay.clock.now -= 3_600_000;
  relay.log({ message: "after" });
  const entries = relay.drain().flatMap(({ params }) => params.entries);
  assert.deepEqual(
    entries.map(({ message }) => message),
    ["before", "after"],
  );
});

for (const [what, entry] of /** @type {[string, object][]} */ ([
  ["an infinite time", { message: "m", ts: Infinity }],
  ["a lone surrogate", { message: "\ud800", data: ["\udfff"] }],
  ["a text cut within a surrogate pair", { message: `${"x".repeat(7999)}\u{1f600}` }],
  ["data that JSON cannot represent", { message: "m", data: [10n] }],
  ["a message that is not a string", { message: { toString: 1, valueOf: 1 } }],
  ["no members", {}],
])) {
  test(`a log with ${what} is sent as a valid record, and so is the next one`, () => {
    const relay = startLogs();
    relay.log(entry);
    relay.log({ message: "next" });
    const entries = relay.drain().flatMap(({ params }) => params.entries);
    assert.equal(entries.at(-1).message, "next");
    for (const { message, time } of entries) {
      assert.ok(message.isWellFormed());
      assert.ok(Number.isFinite(time));
    }
  });
}

// --- the page's own tools ---

/** @param {number} [id] */
const toolsText = (id = 1) => JSON.stringify({ tools: [{ id }], leftOut: 0 });

test("a list of the page's tools is sent with the document's id, and sent again on a new link", () => {
  const relay = startRelay();
  relay.page.say("page.tools", toolsText());
  const [{ method, params }] = relay.drain();
  assert.equal(method, "page.tools");
  assert.deepEqual(params, {
    documentId: relay.attached[0].documentId,
    tools: [{ id: 1 }],
    leftOut: 0,
  });
  relay.resend();
  assert.deepEqual(
    relay.drain().map((message) => message.params),
    [params],
  );
});

test("for a page that keeps changing its tools, the latest list is sent at a limited rate", () => {
  const relay = startRelay();
  const ids = () => relay.drain().map(({ params }) => params.tools[0].id);
  for (let id = 1; id <= 100; id++) relay.page.say("page.tools", toolsText(id));
  assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6, 7, 8]);
  relay.elapse();
  assert.deepEqual(ids(), [100]);
  for (let turn = 0; turn < 20; turn++) relay.elapse();
  assert.deepEqual([ids(), relay.timers.length], [[], 0]);
});

test("a list of tools cannot name another document, and one that is too long or not JSON is ignored", () => {
  const relay = startRelay();
  relay.page.say(
    "page.tools",
    JSON.stringify({ tools: [], leftOut: 0, documentId: "e".repeat(32) }),
  );
  assert.equal(relay.drain()[0].params.documentId, relay.attached[0].documentId);
  relay.page.say("page.tools", JSON.stringify({ tools: ["x".repeat(MEBI)], leftOut: 0 }));
  relay.page.say("page.tools", "nonsense");
  assert.deepEqual(relay.drain(), []);
});
