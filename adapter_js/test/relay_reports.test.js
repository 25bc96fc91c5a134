// The relay: reports of progress and results, their order, resending and size.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CALL } from "./fakes.js";
import { lengths, MEBI, seqs, startCall } from "./relays.js";

/** @param {number} count */
function manyReports(count) {
  const message = "x".repeat(4000);
  return Array.from({ length: count }, (_, i) => ({ progress: i, message }));
}

/**
 * Everything that a relay sends when each batch is acknowledged.
 * @param {ReturnType<typeof import("./relays.js").startRelay>} relay
 */
function drain(relay) {
  const messages = [];
  for (let more = relay.drain(); more.length > 0; more = relay.drain()) {
    messages.push(...more);
    const reports = more.findLast(({ method }) => method === "tool.progress")?.params.reports;
    if (reports !== undefined) relay.ack(reports.at(-1).seq);
  }
  return messages;
}

// --- progress ---

test("the first report is sent at once, and those made before its acknowledgement are sent together after it", () => {
  const relay = startCall();
  relay.report({ progress: 1 });
  assert.deepEqual(seqs(relay.drain()), [[0]]);
  relay.report({ progress: 2 });
  relay.report({ progress: 3 }, { progress: 4 });
  assert.deepEqual(seqs(relay.drain()), []);
  relay.ack(0);
  assert.deepEqual(seqs(relay.drain()), [[1, 2, 3]]);
  relay.ack(3);
  assert.deepEqual(seqs(relay.drain()), []);
  relay.report({ progress: 5 });
  assert.deepEqual(seqs(relay.drain()), [[4]]);
});

test("a few reports are sent before the result without waiting for an acknowledgement", () => {
  const relay = startCall();
  for (let i = 0; i < 3; i++) relay.report({ progress: i });
  relay.result("done");
  assert.deepEqual(seqs(relay.drain()), [[0], [1, 2], "tool.result"]);
});

test("at most two batches of reports are in flight, also after the end, and the result is sent last", () => {
  const relay = startCall();
  relay.report({ progress: 0 });
  relay.report(...manyReports(200)); // more than six batches
  assert.deepEqual(lengths(relay.drain()), [1, 33, 33]);
  relay.ack(0);
  assert.deepEqual(lengths(relay.drain()), []);
  relay.ack(33);
  assert.deepEqual(lengths(relay.drain()), [33]);
  relay.result("done");
  assert.deepEqual(lengths(relay.drain()), [33]); // one more, because the tool has ended
  relay.ack(99);
  assert.deepEqual(lengths(relay.drain()), [33]);
  relay.worker.die();
  relay.drain();
  relay.resend();
  assert.deepEqual(lengths(relay.drain()), [33, 33]);
  relay.ack(132);
  assert.deepEqual(lengths(relay.drain()), [33]);
  relay.ack(165);
  assert.deepEqual(lengths(relay.drain()), []);
  relay.ack(198);
  assert.deepEqual(lengths(relay.drain()), [2, "tool.result"]);
  relay.ack(200);
  assert.deepEqual(lengths(relay.drain()), []);
});

test("a document that is left sends all its reports, then the result", () => {
  const relay = startCall();
  relay.report({ progress: 0 });
  relay.report(...manyReports(200));
  relay.result("done");
  relay.drain();
  relay.fire("pagehide");
  assert.deepEqual(lengths(relay.drain()), [33, 33, 33, 2, "tool.result"]);
});

for (const kind of ["tool.result", "tool.error"]) {
  test(`${kind === "tool.result" ? "a result" : "an error"} waits for logs that were posted before it`, () => {
    const relay = startCall();
    relay.adopt();
    relay.drain();
    const entries = [{ message: "the last" }];
    relay.page.say("logged", CALL);
    relay.page.say(kind, `${CALL}{"code":"NOPE","message":"No.","retryable":true}`);
    relay.post({ type: "opentabs:plugin-logs", plugin: "demo", entries, nonce: relay.nonce() });
    const before = relay.drain().map(({ method }) => method);
    relay.arrive();
    const after = relay.drain().map(({ method }) => method);
    assert.deepEqual([before, after], [["plugin.log"], [kind]]);
  });
}

test("a result that waits for logs is sent when the document is left", () => {
  const relay = startCall();
  relay.page.say("logged", CALL);
  relay.result("done");
  relay.drain();
  relay.fire("pagehide");
  assert.deepEqual(
    relay.drain().map(({ method }) => method),
    ["tool.result"],
  );
  relay.arrive();
  assert.deepEqual(relay.drain(), []);
});

test("a result in a document restored from the back/forward cache waits for its own logs", () => {
  const relay = startCall();
  relay.page.say("logged", CALL);
  relay.result("old");
  relay.fire("pagehide");
  relay.fire("pageshow", { persisted: true });
  relay.resend();
  relay.dispatch();
  relay.page.say("logged", CALL);
  relay.result("new");
  relay.drain();
  relay.arrive(1); // what was in flight when the document was left
  assert.deepEqual(relay.drain(), []);
  relay.arrive();
  assert.deepEqual(
    relay.drain().map(({ params }) => params.value),
    ["new"],
  );
});

test("after the worker dies, unacknowledged messages are sent again unchanged", () => {
  const relay = startCall();
  for (let i = 0; i < 4; i++) relay.report({ progress: i });
  relay.ack(0);
  relay.result("done");
  relay.drain();
  relay.worker.die();
  relay.drain();
  relay.resend();
  const messages = relay.drain();
  assert.deepEqual(seqs(messages), [[1, 2, 3], "tool.result"]);
  assert.deepEqual([messages[1].params.seq, messages[1].params.value], [4, "done"]);
});

test("after the worker dies, a running call continues with one batch at a time", () => {
  const relay = startCall();
  relay.report({ progress: 0 });
  relay.report({ progress: 1 });
  relay.worker.die();
  relay.report({ progress: 2 });
  relay.drain();
  relay.resend();
  assert.deepEqual(seqs(relay.drain()), [[0, 1, 2]]);
  relay.report({ progress: 3 });
  assert.deepEqual(seqs(relay.drain()), []);
  relay.ack(2);
  assert.deepEqual(seqs(relay.drain()), [[3]]);
});

test("messages sent while a Port is closing are not lost", () => {
  const relay = startCall();
  const [port] = relay.worker.ports;
  if (port !== undefined) port.open = false;
  relay.report({ progress: 1 });
  relay.result("done");
  relay.worker.die();
  relay.drain();
  relay.resend();
  assert.deepEqual(seqs(relay.drain()), [[0], "tool.result"]);
});

test("beyond 8 MiB, the oldest unsent reports are dropped, and their sequence numbers are missing", () => {
  const relay = startCall();
  const message = "x".repeat(4000);
  const total = 3000; // 12 MB
  for (let i = 0; i < total; i += 100) {
    relay.report(...Array.from({ length: 100 }, (_, j) => ({ progress: i + j, message })));
  }
  relay.result("done");
  const batches = drain(relay).filter(({ method }) => method === "tool.progress");
  const reports = batches.flatMap(({ params }) => params.reports);
  const kept = reports.length * 4040;
  assert.ok(kept > 7.5 * MEBI && kept < 8.5 * MEBI, `kept ${kept}`);
  const numbers = reports.map(({ seq }) => seq);
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  );
  assert.equal(numbers[0], 0); // the batch in flight was not touched
  assert.equal(numbers.at(-1), total - 1);
  assert.ok(reports.every(({ seq, progress }) => seq === progress));
});

test("only the valid members of a report are forwarded, and it still counts", () => {
  const relay = startCall();
  relay.report({ progress: "1", total: null, message: 5, extra: true }, 7, null, []);
  const [{ params }] = relay.drain();
  assert.deepEqual(params.reports, [{ seq: 0 }, { seq: 1 }, { seq: 2 }, { seq: 3 }]);
});

test("a report that is not JSON is ignored", () => {
  const relay = startCall();
  relay.page.say("tool.progress", `${CALL}{{{`);
  relay.result("done");
  assert.deepEqual(seqs(relay.drain()), ["tool.result"]);
});

// --- text and size ---

for (const [what, value, expected] of /** @type {[string, string, string][]} */ ([
  ["a lone surrogate becomes a replacement character", "a\ud800b\udfff", "a\ufffdb\ufffd"],
  ["a surrogate pair is kept", "\u{1f600}", "\u{1f600}"],
  ["a backslash before the letters ud800 is kept", "\\ud800", "\\ud800"],
  ["a lone surrogate after a backslash becomes a replacement character", "\\\ud800", "\\\ufffd"],
  ["two backslashes before the letters are kept", "\\\\udc00 \\udder", "\\\\udc00 \\udder"],
  [
    "surrogates in the wrong order become two replacement characters",
    "\udc00\ud800",
    "\ufffd\ufffd",
  ],
])) {
  test(`in a result, ${what}`, () => {
    const relay = startCall();
    relay.result({ value, [value]: 1 });
    const [frame] = relay.worker.drain();
    assert.deepEqual(JSON.parse(frame).params.value, { value: expected, [expected]: 1 });
  });

  test(`in a report, ${what}`, () => {
    const relay = startCall();
    relay.report({ message: value });
    assert.equal(relay.drain()[0].params.reports[0].message, expected);
  });
}

test("a message cut within a surrogate pair is well-formed", () => {
  const relay = startCall();
  relay.report({ message: `${"x".repeat(4095)}\u{1f600}` });
  const [{ params }] = relay.drain();
  assert.ok(params.reports[0].message.isWellFormed());
});

test("a lone surrogate after a long run of backslashes is replaced", () => {
  const relay = startCall();
  const value = `${"\\".repeat(300_000)}\ud800`;
  relay.result(value);
  assert.equal(relay.drain()[0].params.value, `${"\\".repeat(300_000)}\ufffd`);
});

test("a long result is sent in parts that never split a surrogate pair and join to the same value", () => {
  const relay = startCall();
  const value = `x${"\u{1f600}".repeat(MEBI)}`; // every even boundary lies within a pair
  relay.result(value);
  const frames = relay.worker.drain();
  assert.ok(frames.length > 8);
  for (const [index, frame] of frames.entries()) {
    const mark = index === frames.length - 1 ? "." : "+";
    assert.equal(frame.slice(0, 42), `~${relay.documentId()}00000000${mark}`);
    assert.ok(frame.isWellFormed(), "a pair was split");
    assert.ok(frame.length <= 42 + 256 * 1024);
  }
  const text = frames.map((/** @type {string} */ frame) => frame.slice(42)).join("");
  assert.equal(JSON.parse(text).params.value, value);
});

test("a long result that is sent again has another stream number", () => {
  const relay = startCall();
  relay.result("x".repeat(MEBI));
  relay.worker.drain();
  relay.worker.die();
  relay.worker.drain();
  relay.resend();
  const [, frame] = relay.worker.drain();
  assert.equal(frame.slice(33, 41), "00000001");
});

test("a result over the limit is an error with its length", () => {
  const relay = startCall();
  relay.resend(1000);
  relay.result("x".repeat(1000));
  const [{ method, params }] = relay.drain();
  assert.deepEqual([method, params.error.code], ["tool.error", "RESULT_TOO_LARGE"]);
  assert.match(params.error.message, /is 1,002 characters of JSON; the limit is 1,000/);
});

test("an error over the limit is shortened and ends its call", () => {
  const relay = startCall();
  relay.resend(1000);
  relay.page.say(
    "tool.error",
    `${CALL}${JSON.stringify({ code: "X", message: "x".repeat(5000) })}`,
  );
  const [, frame] = relay.worker.drain();
  assert.equal(JSON.parse(frame).method, "tool.error");
  assert.ok(frame.length < 2000, `a frame of ${frame.length} characters`);
});
