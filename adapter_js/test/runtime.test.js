// The runtime: calls, their cancellation and progress.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CALL, NAME, settled, until } from "./fakes.js";
import { RUNTIME, startPlugin } from "./runtimes.js";

// --- calls ---

test("a tool runs with its input, and its return value is the result", async () => {
  const { call } = await startPlugin("{ double: async ({ n }) => ({ n: n * 2 }) }");
  const { kind, body } = await call("double", { n: 21 });
  assert.deepEqual([kind, body], ["tool.result", { n: 42 }]);
});

test("a call runs once in a page with two runtimes", async () => {
  const tools = "{ once: () => { note('ran'); return 1; } }";
  const { call, seen } = await startPlugin(tools, { before: RUNTIME, hasRealm: false });
  assert.equal((await call("once")).body, 1);
  await settled();
  assert.equal(seen.length, 1);
});

for (const delivers of [true, false]) {
  const does = delivers ? "delivers its logs itself" : "may have posted logs";
  test(`a plugin that ${does} ${delivers ? "sends only the result" : "announces the end of a call before its result"}`, async () => {
    const { page, relay, call } = await startPlugin("{ plain: () => 'done' }");
    page.context.__openTabs.adapters.demo.deliversLogs = delivers;
    relay.say("adopt", "demo");
    const { callId } = await call("plain");
    const kinds = relay.heard.filter(({ text }) => text.startsWith(callId)).map(({ kind }) => kind);
    assert.deepEqual(kinds, delivers ? ["tool.result"] : ["logged", "tool.result"]);
  });
}

test("a handler is called with its tool as `this`", async () => {
  const { call } = await startPlugin("{ me() { return this.name; } }");
  assert.equal((await call("me")).body, "me");
});

test("a handler without a context parameter works", async () => {
  const { call } = await startPlugin("{ plain: () => 'done' }");
  assert.equal((await call("plain")).body, "done");
});

test("a call to a tool that the page does not have fails with PLUGIN_NOT_LOADED", async () => {
  const { call } = await startPlugin("{}");
  const { kind, body } = await call("nothing");
  assert.deepEqual([kind, body.code, body.retryable], ["tool.error", "PLUGIN_NOT_LOADED", true]);
  assert.match(body.message, /tool nothing of plugin demo.*Reload/);
});

test("a traced call reports its start before its tool runs, and its end", async () => {
  const { relay, start, answers } = await startPlugin(
    "{ echo: async () => 1, hang: () => new Promise(() => {}) }",
  );
  const [echo, hang] = [start("echo", {}, true), start("hang", {}, true)];
  await until(() => answers(echo).length === 1, "the answer");
  const stamps = relay
    .ofKind("tool.stamps")
    .map((text) => [text.slice(0, NAME), Object.keys(JSON.parse(text.slice(NAME)))]);
  assert.deepEqual(stamps, [
    [echo, ["runtime.down"]],
    [hang, ["runtime.down"]],
    [echo, ["runtime.up"]],
  ]);
});

test("a call that is not traced reports no times", async () => {
  const { relay, call } = await startPlugin("{ echo: async () => 1 }");
  await call("echo");
  assert.deepEqual(relay.ofKind("tool.stamps"), []);
});

// --- cancelling ---

test("a cancelled call aborts the signal with the reason, and sends no answer", async () => {
  const { page, relay, start, answers } = await startPlugin(`{ wait: (_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => {
      globalThis.reason = signal.reason;
      reject(signal.reason);
    })) }`);
  const callId = start("wait");
  await settled();
  relay.say("tool.cancel", `${callId}idle: no sign of life for 30 s`);
  await settled();
  const { reason } = page.context;
  assert.deepEqual([reason.name, reason.message], ["AbortError", "idle: no sign of life for 30 s"]);
  assert.deepEqual(answers(callId), []);
});

for (const before of [
  "delete globalThis.DOMException",
  "DOMException = class { constructor() { throw 'mine'; } }",
]) {
  test(`a cancelled call aborts the signal in a page that ran ${before}`, async () => {
    const tool = `{ wait: (_, { signal }) => new Promise((resolve) =>
      signal.addEventListener("abort", () => resolve(globalThis.aborted = true))) }`;
    const { page, relay, start } = await startPlugin(tool, { before });
    const callId = start("wait");
    await settled();
    relay.say("tool.cancel", `${callId}the client cancelled it`);
    await settled();
    assert.equal(page.context.aborted, true);
  });
}

test("a report after the end of its call is not sent", async () => {
  const { page, call, reports } = await startPlugin(
    "{ keep: (_, context) => { globalThis.context = context; } }",
  );
  const { callId } = await call("keep");
  page.context.context.reportProgress({ progress: 1 });
  await settled();
  assert.deepEqual(reports(callId), []);
});

test("a traced call writes to the console when it is cancelled and when its tool has stopped", async () => {
  const { page, relay, start } = await startPlugin(`{
    wait: () => new Promise((resolve) => { globalThis.stop = resolve; }),
  }`);
  const callId = start("wait", {}, true);
  await settled();
  relay.say("tool.cancel", `${callId}why not`);
  await settled();
  const cancelled = ["OpenTabs: cancelled while it ran:", "demo wait"];
  assert.deepEqual(page.notes, [cancelled]);
  page.run("stop()");
  await settled();
  assert.deepEqual(page.notes, [
    cancelled,
    ["OpenTabs: stopped after its cancellation:", "demo wait"],
  ]);
});

for (const [how, end, sent] of [
  ["throws", "reject(new Error('stopped'))", /^{"started":true,"stack":"Error: stopped\\n +at /],
  ["throws nothing", "reject()", /^{"started":true,"stack":""}$/],
  ["returns", "resolve(1)", /^{"started":true}$/],
]) {
  test(`that the tool of a cancelled call ${how} is sent to the relay`, async () => {
    const { relay, start } = await startPlugin(`{
      wait: (_, { signal }) => new Promise((resolve, reject) => { signal.onabort = () => ${end}; }),
    }`);
    const callId = start("wait");
    await settled();
    relay.say("tool.cancel", `${callId}why not`);
    await settled();
    const [text = "", ...more] = relay.ofKind("tool.stopped");
    assert.deepEqual([text.slice(0, NAME), more], [callId, []]);
    assert.match(text.slice(NAME), /** @type {RegExp} */ (sent));
  });
}

test("cancelling a call that is not traced, or has ended, writes nothing to the console", async () => {
  const { page, relay, start, call } = await startPlugin(
    "{ wait: () => new Promise(() => {}), end: () => 1 }",
  );
  const callId = start("wait");
  const ended = await call("end");
  await settled();
  relay.say("tool.cancel", `${callId}why not`);
  relay.say("tool.cancel", `${ended.callId}why not`);
  await settled();
  assert.deepEqual(page.notes, []);
});

test("cancelling an unknown call does nothing", async () => {
  const { relay, call } = await startPlugin("{ next: () => 1 }");
  relay.say("tool.cancel", `${CALL}why not`);
  assert.equal((await call("next")).body, 1);
});

// --- progress ---

test("a report is sent with its three values", async () => {
  const { call, reports } = await startPlugin(`{ work: (_, { reportProgress }) => {
    reportProgress({ progress: 3, total: 12, message: "Exported page 3 of 12" });
  } }`);
  const { callId } = await call("work");
  assert.deepEqual(reports(callId), [{ progress: 3, total: 12, message: "Exported page 3 of 12" }]);
});

test("the first report is sent before the tool continues", async () => {
  const { page, relay, call } = await startPlugin(`{ work: (_, { reportProgress }) => {
    reportProgress({ progress: 1 });
    globalThis.look();
  } }`);
  let heard = 0;
  page.context.look = () => {
    heard = relay.ofKind("tool.progress").length;
  };
  await call("work");
  assert.equal(heard, 1);
});

test("10,000 reports of a loop are sent in order, in two messages, before the result", async () => {
  const { relay, call, reports } = await startPlugin(`{ work: (_, { reportProgress }) => {
    for (let i = 0; i < 10_000; i++) reportProgress({ progress: i });
  } }`);
  const { callId } = await call("work");
  const values = reports(callId).map((report) => report.progress);
  assert.deepEqual(
    values,
    Array.from({ length: 10_000 }, (_, index) => index),
  );
  assert.equal(relay.ofKind("tool.progress").length, 2);
  assert.equal(relay.heard.at(-1)?.kind, "tool.result");
});

test("reports of two calls made in one job are kept apart and in order", async () => {
  const { page, start, reports } = await startPlugin(
    "{ hold: (_, { reportProgress }) => new Promise(() => { (globalThis.held ??= []).push(reportProgress); }) }",
  );
  const ids = [start("hold"), start("hold")];
  await until(() => page.context.held?.length === 2, "both calls");
  page.run("for (let i = 0; i < 6; i++) held[i % 2]({ progress: i })");
  await settled();
  const values = ids.map((id) => reports(id).map((report) => report.progress));
  assert.deepEqual(values, [
    [0, 2, 4],
    [1, 3, 5],
  ]);
});

for (const invalid of [
  "",
  "undefined",
  "null",
  "7",
  "'text'",
  "Symbol('s')",
  "10n",
  "[]",
  "() => {}",
  "{ progress: NaN, total: Infinity, message: 5 }",
  "{ progress: '1', total: {}, message: Symbol('s') }",
  "{ progress: 10n }",
  "{ get progress() { throw new Error('no'); } }",
  "{ message: { toString() { throw 1; } } }",
  "{ message: 'x'.repeat(5000) }",
  "new Proxy({}, { get() { throw null; } })",
]) {
  test(`reportProgress(${invalid}) does not throw and sends a report`, async () => {
    const { page, call, reports } = await startPlugin(`{ work: (_, { reportProgress }) => {
      reportProgress(${invalid});
      reportProgress(${invalid});
      return "unharmed";
    } }`);
    const { callId, body } = await call("work");
    assert.equal(body, "unharmed");
    const sent = reports(callId);
    assert.equal(sent.length, 2);
    for (const { progress, total, message } of sent) {
      assert.equal(progress ?? null, null);
      assert.equal(total ?? null, null);
      assert.ok((message ?? "").length <= 4096);
    }
    assert.ok(page.warnings.length <= 1, "logged more than once for one call");
  });
}

test("the valid members of an invalid report are sent, and the problem is logged once", async () => {
  const { page, call, reports } = await startPlugin(`{ work: (_, { reportProgress }) => {
    for (let i = 0; i < 3; i++) reportProgress({ progress: 5, total: "many", message: "m" });
  } }`);
  const { callId } = await call("work");
  const [{ progress, total, message }] = reports(callId);
  assert.deepEqual([progress, total ?? null, message], [5, null, "m"]);
  const [[text, given], ...more] = /** @type {[[string, object]]} */ (page.warnings);
  assert.match(
    text,
    /^OpenTabs: reported progress that is not valid: demo work\nreportProgress\(\) /,
  );
  assert.deepEqual([{ ...given }, more], [{ progress: 5, total: "many", message: "m" }, []]);
});

test("reports after the end of their call are logged once, with the tool's name", async () => {
  const { page, call } = await startPlugin(`{ work: (_, { reportProgress }) => {
    globalThis.late = () => reportProgress({ progress: 1 });
  } }`);
  await call("work");

  page.run("late(); late();");

  assert.deepEqual(page.warnings, [["OpenTabs: reported progress after its end:", "demo work"]]);
});
