import assert from "node:assert/strict";
import { test } from "node:test";
import { bundleAs, fakeTimers, openPage, withGlobals } from "./fakes.js";

bundleAs("shop");
const { flushLogs, log } = await import("../../sdk/log.js");

/** @typedef {"debug" | "info" | "warn" | "error"} Level */

for (const level of /** @type {Level[]} */ (["debug", "info", "warn", "error"])) {
  test(`log.${level}() prints, and posts a signed record with its data and its time`, (t) => {
    const page = openPage(t);
    fakeTimers(t);
    t.mock.timers.enable({ apis: ["Date"], now: 1234 });
    log[level]("what", 1n, { a: undefined });
    flushLogs();
    assert.deepEqual(page.posted, [
      {
        type: "opentabs:plugin-logs",
        plugin: "shop",
        entries: [{ level, message: "what", data: ["1n", { a: "[undefined]" }], ts: 1234 }],
        nonce: "log",
        origin: "*",
      },
    ]);
    assert.deepEqual(page.printed, [[level, ["[shop]", "what", 1n, { a: undefined }]]]);
  });
}

test("records are sent together 100 ms after the first", async (t) => {
  const page = openPage(t);
  const timers = fakeTimers(t);
  log.info("first");
  await timers.advance(99);
  log.info("second");
  assert.equal(page.posted.length, 0);
  await timers.advance(1);
  assert.deepEqual(
    page.posted.map(({ entries }) => entries.length),
    [2],
  );
  assert.equal(timers.count(), 0);
});

test("fifty records are sent at once, and the next ones wait again", async (t) => {
  const page = openPage(t);
  const timers = fakeTimers(t);
  for (let count = 0; count < 51; count++) log.info(String(count));
  assert.deepEqual(
    page.posted.map(({ entries }) => entries.length),
    [50],
  );
  assert.deepEqual(timers.left(), [100]);
  await timers.advance(100);
  assert.deepEqual(
    page.records().map(({ message }) => message),
    Array.from({ length: 51 }, (_, index) => String(index)),
  );
});

test("flushing sends waiting records once", async (t) => {
  const page = openPage(t);
  const timers = fakeTimers(t);
  log.info("one");
  flushLogs();
  flushLogs();
  await timers.advance(1000);
  assert.deepEqual([page.posted.length, timers.count()], [1, 0]);
});

test("without a host, records are only printed", (t) => {
  const page = openPage(t, { hasHost: false });
  const timers = fakeTimers(t);
  log.info("alone");
  flushLogs();
  assert.deepEqual([page.posted.length, page.printed.length, timers.count()], [0, 1, 0]);
});

test("without a page, records are only printed", (t) => {
  /** @type {unknown[][]} */
  const printed = [];
  withGlobals(t, { console: { warn: (/** @type {unknown[]} */ ...args) => printed.push(args) } });
  log.warn("in a unit test");
  assert.deepEqual(printed, [["[shop]", "in a unit test"]]);
});

test("a message that is not a string is converted to one", (t) => {
  const page = openPage(t);
  fakeTimers(t);
  log.error(/** @type {any} */ ({ a: [1n] }));
  log.error(/** @type {any} */ (undefined));
  flushLogs();
  assert.deepEqual(
    page.records().map(({ message }) => message),
    ['{"a":["1n"]}', "[undefined]"],
  );
});

test("a long message is truncated", (t) => {
  const page = openPage(t);
  fakeTimers(t);
  log.info("x".repeat(1_000_000));
  flushLogs();
  assert.ok(page.records()[0].message.length < 5000);
});

for (const part of ["console", "postMessage", "setTimeout"]) {
  test(`logging does not throw if the page has patched ${part}`, (t) => {
    const page = openPage(t);
    fakeTimers(t);
    const fail = () => {
      throw new Error("patched");
    };
    if (part === "postMessage") {
      page.window.postMessage = fail;
    } else {
      withGlobals(t, { [part]: part === "console" ? { info: fail } : fail });
    }
    log.info("still here");
    flushLogs();
  });
}

test("a record that could not be sent is not sent again", (t) => {
  const page = openPage(t);
  fakeTimers(t);
  const { postMessage } = page.window;
  page.window.postMessage = () => {
    throw new Error("patched");
  };
  log.info("lost");
  flushLogs();
  page.window.postMessage = postMessage;
  log.info("found");
  flushLogs();
  assert.deepEqual(
    page.records().map(({ message }) => message),
    ["found"],
  );
});
