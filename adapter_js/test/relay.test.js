// The relay in its isolated world, with a hand-written page and worker at its other ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import vm from "node:vm";
import { CALL, channelEnd, FocusEvent, fakeWorker, makeNode, makePage, source } from "./fakes.js";

const RELAY = ["channel", "outbox", "logs", "tool_list", "relay"]
  .map((name) => source(`extension/content/${name}.js`))
  .join("\n");
const MEBI = 1024 * 1024;

/**
 * @param {{runtime?: boolean, late?: boolean, document?: Record<string, unknown>}} [options]
 */
function startRelay({ runtime = true, late = false, document: more = {} } = {}) {
  const { document: target, timers, clock } = makePage();
  const worker = fakeWorker();
  const node = makeNode();
  const isDown = { hears: /** @type {const} */ ("down"), says: /** @type {const} */ ("up") };
  const page = channelEnd(runtime && !late ? node : makeNode(), isDown);
  const { addEventListener, removeEventListener, dispatchEvent } = EventTarget.prototype;
  let documentId = "";
  if (runtime && late) {
    /** @param {any} event */
    const accept = (event) => Object.assign(page, channelEnd(event.relatedTarget, isDown));
    addEventListener.call(target, "opentabs:offer", accept, { once: true });
  }
  const frame = { isThere: true, remove: () => (frame.isThere = false) };
  /** @type {[string, (event: any) => void][]} */
  const onDocument = [];
  /** @type {Map<string, (event: any) => void>} */
  const onWindow = new Map();
  const window = {
    /** @type {(type: string, listener: (event: any) => void) => void} */
    addEventListener: (type, listener) => onWindow.set(type, listener),
  };
  /** @type {() => void} */
  let childrenChanged = () => {};
  /** @type {{onmessage(): void}[]} ports with a message in flight */
  const posts = [];
  const context = vm.createContext({
    // The same document as the page's, by this world's own methods.
    document: Object.assign(
      {
        readyState: "complete",
        /** @type {EventTarget["addEventListener"]} */
        addEventListener(type, listener, options) {
          onDocument.push([type, /** @type {(event: any) => void} */ (listener)]);
          addEventListener.call(target, type, listener, options);
        },
        removeEventListener: removeEventListener.bind(target),
        dispatchEvent: dispatchEvent.bind(target),
        createElement: () => node,
        adoptNode: () =>
          assert.ok(frame.isThere, "the frame was removed before the node was adopted"),
      },
      more,
    ),
    window,
    chrome: worker.chrome,
    CustomEvent,
    FocusEvent,
    MutationObserver: class {
      /** @param {() => void} listener */
      constructor(listener) {
        childrenChanged = listener;
      }
      observe() {}
    },
    crypto,
    performance,
    Date: { now: () => clock.now },
    MessageChannel: class {
      constructor() {
        const port1 = { onmessage: () => {} };
        Object.assign(this, { port1, port2: { postMessage: () => posts.push(port1) } });
      }
    },
    setTimeout: (/** @type {() => void} */ run, /** @type {number} */ ms) =>
      timers.push({ run, ms }),
    ...(late ? {} : { openTabsRealm: { frame, node } }),
  });
  const load = () => vm.runInContext(RELAY, context);
  load();

  /** @type {number[]} the epochs of links with resent messages, of the last drain */
  let marks = [];

  /** Returns what the worker received: joined and parsed frames, and other messages. */
  function drain() {
    /** @type {any[]} */
    const messages = [];
    marks = [];
    let parts = "";
    for (const said of worker.drain()) {
      if (said.type === "attach") documentId = said.documentId;
      if (said.type === "resending") marks.push(said.epoch);
      else if (typeof said !== "string") messages.push(said);
      else if (!said.startsWith("~")) messages.push(JSON.parse(said));
      else {
        parts += said.slice(42);
        if (said[41] === ".") messages.push(JSON.parse(parts));
      }
    }
    return messages;
  }
  const attached = worker.ports.length > 0 ? drain() : [];

  /**
   * @param {string} method
   * @param {object} params
   */
  function server(method, params) {
    worker.say(JSON.stringify({ jsonrpc: "2.0", method, params: { callId: CALL, ...params } }));
  }
  return {
    page,
    worker,
    target,
    timers,
    clock,
    attached,
    marks: () => marks,
    load,
    drain,
    server,
    documentId: () => documentId,
    node,
    frame,
    /** Runs the tasks of messages to ports, or of the first few. */
    arrive(count = posts.length) {
      for (const port of posts.splice(0, count)) port.onmessage();
    },
    /** Runs the timers that are set now. */
    elapse() {
      for (const timer of timers.splice(0)) timer.run();
    },
    /** The page calls `document.open()`: every listener of its document and window is gone. */
    reopen() {
      for (const [type, listener] of onDocument.splice(0)) {
        removeEventListener.call(target, type, listener);
      }
      onWindow.clear();
      childrenChanged();
    },
    nonce: () => page.ofKind("n")[0],
    dispatch: (more = {}) =>
      server("tool.dispatch", { plugin: "demo", tool: "t", input: {}, ...more }),
    ack: (/** @type {number} */ seq) => server("tool.ack", { seq }),
    settle: () => server("tool.settled", { callIds: [CALL] }),
    /** @param {unknown[]} reports */
    report: (...reports) =>
      page.say(`p${CALL}${reports.map((report) => JSON.stringify(report)).join(",")}`),
    result: (/** @type {unknown} */ value) => page.say(`r${CALL}${JSON.stringify(value)}`),
    resend: (limit = Number.MAX_SAFE_INTEGER, epoch = 1, loadId = "load") =>
      worker.say({ type: "resend", limit, epoch, loadId }),
    adopt: (plugin = "demo") => worker.say({ type: "adopt", plugin, injected: "adapters/x.js {}" }),
    /** @param {object} data @param {unknown} [from] */
    post: (data, from = window) =>
      onWindow.get("message")?.({ source: from, data: structuredClone(data) }),
    fire: (/** @type {string} */ type, event = {}) =>
      onWindow.get(type)?.({ isTrusted: true, ...event }),
  };
}

/** A relay whose document has one call, and a worker that has seen it start. */
function startCall(more = {}) {
  const relay = startRelay();
  relay.resend();
  relay.dispatch(more);
  relay.drain();
  return relay;
}

/** @param {any[]} messages */
function seqs(messages) {
  return messages.map(({ method, params }) =>
    method === "tool.progress" ? params.reports.map((/** @type {any} */ r) => r.seq) : method,
  );
}

/** @param {any[]} messages */
function lengths(messages) {
  return seqs(messages).map((each) => (typeof each === "string" ? each : each.length));
}

/** @param {number} count */
function manyReports(count) {
  const message = "x".repeat(4000);
  return Array.from({ length: count }, (_, i) => ({ progress: i, message }));
}

/**
 * Everything that a relay sends when each batch is acknowledged.
 * @param {ReturnType<typeof startRelay>} relay
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

// --- connecting ---

test("a document announces its id and that its channel is protected", () => {
  const [attach] = startRelay().attached;
  assert.equal(attach.type, "attach");
  assert.match(attach.documentId, /^[0-9a-f]{32}$/);
  assert.deepEqual([attach.calls, attach.plugins, attach.isProtected], [[], [], true]);
});

test("a relay that was injected late announces that its channel is not protected", () => {
  assert.equal(startRelay({ late: true }).attached[0].isProtected, false);
});

test("a second relay does not replace the first", () => {
  const relay = startRelay();
  relay.load();
  assert.equal(relay.worker.ports.length, 1);
});

test("a prerendered document connects when it is shown", () => {
  const { worker, target } = startRelay({ document: { prerendering: true } });
  assert.equal(worker.ports.length, 0);
  target.dispatchEvent(new Event("prerenderingchange"));
  assert.equal(worker.ports.length, 1);
});

test("a prerendered document that called document.open() connects when it is shown", () => {
  const { worker, target, reopen } = startRelay({ document: { prerendering: true } });
  reopen();
  target.dispatchEvent(new Event("prerenderingchange"));
  assert.equal(worker.ports.length, 1);
});

test("a page that never finishes loading counts as complete some time after it was parsed", () => {
  const relay = startRelay({ document: { readyState: "interactive" } });
  assert.equal(relay.attached[0].complete, false);
  relay.timers[0]?.run();
  assert.deepEqual(relay.drain(), [{ type: "complete" }]);
});

test("a document whose worker died reconnects and lists its calls", () => {
  const relay = startCall();
  const before = relay.documentId();
  relay.worker.die();
  const [attach] = relay.drain();
  assert.deepEqual([attach.documentId, attach.calls], [before, [CALL]]);
});

test("a relay that reconnects names the load of the extension that answered it", () => {
  const relay = startRelay();
  assert.equal(relay.attached[0].loadId, null);
  relay.resend(1e6, 1, "first");
  relay.worker.die();
  assert.equal(relay.drain().find(({ type }) => type === "attach").loadId, "first");
});

test("a relay whose extension is gone does not reconnect", () => {
  const relay = startRelay();
  relay.worker.chrome.runtime.id = /** @type {any} */ (undefined);
  relay.worker.die();
  assert.equal(relay.worker.ports.length, 1);
});

test("a relay whose extension was reloaded ends its calls and drops its plugins when the next relay starts", () => {
  const relay = startCall();
  relay.adopt("one");
  relay.adopt("two");
  const another = () => relay.target.dispatchEvent(new Event("opentabs:offer"));
  another();
  assert.deepEqual([relay.page.ofKind("c"), relay.page.ofKind("x")], [[], []]);
  relay.worker.chrome.runtime.id = /** @type {any} */ (undefined);
  another();
  another();
  assert.deepEqual(relay.page.ofKind("c"), [`${CALL}the extension was reloaded`]);
  assert.deepEqual(relay.page.ofKind("x"), ["one", "two"]);
});

test("a document restored from the back/forward cache has a new id, and its running tools are cancelled", () => {
  const relay = startCall();
  const before = relay.documentId();
  relay.fire("pageshow", { persisted: true });
  const [attach] = relay.drain();
  assert.notEqual(attach.documentId, before);
  assert.deepEqual(attach.calls, []);
  assert.equal(relay.page.ofKind("c").length, 1);
});

test("a document restored from the back/forward cache ignores the late closing of its old Port", () => {
  const relay = startRelay();
  const [old] = relay.worker.ports;
  relay.fire("pageshow", { persisted: true });
  for (const listener of old?.onGone ?? []) listener();
  assert.equal(relay.worker.ports.length, 2);
});

// --- calls ---

test("a dispatch is forwarded to the page unchanged", () => {
  const relay = startCall({ input: { n: 1 } });
  const [text] = relay.page.ofKind("d");
  assert.deepEqual(JSON.parse(String(text)).params.input, { n: 1 });
});

test("a call that is dispatched twice starts once", () => {
  const relay = startCall();
  relay.dispatch();
  assert.equal(relay.page.ofKind("d").length, 1);
});

test("a result is sent with its document, its call and the next sequence number", () => {
  const relay = startCall();
  relay.report({ progress: 1 });
  relay.drain();
  relay.result({ rows: 3 });
  const [{ method, params }] = relay.drain();
  const { documentId, callId, seq, value } = params;
  assert.equal(method, "tool.result");
  assert.deepEqual([documentId, callId, seq, value], [relay.documentId(), CALL, 1, { rows: 3 }]);
});

test("a second result of a call is dropped", () => {
  const relay = startCall();
  relay.result("first");
  relay.result("second");
  assert.deepEqual(
    relay.drain().map(({ params }) => params.value),
    ["first"],
  );
});

test("an error is sent with all its fields", () => {
  const relay = startCall();
  relay.page.say(`e${CALL}{"code":"NOPE","message":"No.","retryable":true}`);
  const [{ method, params }] = relay.drain();
  assert.equal(method, "tool.error");
  assert.deepEqual(params.error, { code: "NOPE", message: "No.", retryable: true });
});

test("the page is notified of a cancelled call, which is then forgotten", () => {
  const relay = startCall();
  relay.server("tool.cancel", { reason: "idle" });
  assert.deepEqual(relay.page.ofKind("c"), [`${CALL}idle`]);
  relay.report({ progress: 1 });
  relay.result("too late");
  relay.resend();
  assert.deepEqual(relay.drain(), []);
});

test("a settled call is forgotten", () => {
  const relay = startCall();
  relay.result("done");
  relay.settle();
  relay.drain();
  relay.resend();
  assert.deepEqual(relay.drain(), []);
});

test("a call to a page where no script can run fails at once with PAGE_UNREACHABLE", () => {
  const relay = startRelay({ runtime: false });
  relay.dispatch();
  const [, { method, params }] = relay.drain();
  assert.deepEqual([method, params.error.code], ["tool.error", "PAGE_UNREACHABLE"]);
});

test("resent messages follow a marker with the epoch of their link", () => {
  const relay = startCall();
  relay.report({ progress: 1 });
  relay.drain();
  relay.resend(undefined, 7);
  const said = relay.worker.drain();
  assert.deepEqual(said[0], { type: "resending", epoch: 7 });
  assert.match(said[1], /tool\.progress/);
});

test("the worker is notified that a call was received before the page receives it", () => {
  const relay = startRelay();
  let heard = -1;
  relay.node.addEventListener("down", () => {
    heard = relay.drain().filter(({ type }) => type === "received").length;
  });
  relay.dispatch();
  assert.equal(heard, 1);
});

test("a dispatch in parts is joined, and the worker is notified of its call", () => {
  const relay = startRelay();
  const params = { callId: CALL, plugin: "demo", tool: "t", input: { text: "x".repeat(MEBI) } };
  const text = JSON.stringify({ jsonrpc: "2.0", method: "tool.dispatch", params });
  const head = `~${relay.documentId()}00000001`;
  relay.worker.say(`${head}+${text.slice(0, 700_000)}`);
  assert.equal(relay.page.ofKind("d").length, 0);
  relay.worker.say(`${head}.${text.slice(700_000)}`);
  assert.deepEqual(relay.page.ofKind("d"), [text]);
  assert.deepEqual(relay.drain(), [{ type: "received", callId: CALL }]);
});

test("parts of a dispatch on a lost link are not joined with parts on the next link", () => {
  const relay = startRelay();
  const params = { callId: CALL, plugin: "demo", tool: "t", input: {} };
  const text = JSON.stringify({ jsonrpc: "2.0", method: "tool.dispatch", params });
  const head = `~${relay.documentId()}00000001`;
  relay.worker.say(`${head}+${text.slice(0, 10)}`);
  relay.resend();
  relay.worker.say(`${head}+${text.slice(0, 10)}`);
  relay.worker.say(`${head}.${text.slice(10)}`);
  assert.deepEqual(relay.page.ofKind("d"), [text]);
});

test("the start of a traced call is reported before its tool answers", () => {
  const relay = startCall({ trace: true });
  relay.page.say(`t${CALL}{"runtime.down":1}`);
  const [{ type, callId, stamps }] = relay.drain();
  assert.deepEqual([type, callId], ["began", CALL]);
  assert.deepEqual(Object.keys(stamps), ["relay.down", "runtime.down"]);
});

test("the result of a traced call carries the times at the relay and the runtime", () => {
  const relay = startCall({ trace: true });
  relay.page.say(`t${CALL}{"runtime.down":1}`);
  relay.drain();
  relay.page.say(`t${CALL}{"runtime.up":2}`);
  relay.result(1);
  const [{ type, callId, frame }] = relay.drain();
  const { stamps } = JSON.parse(frame).params;
  assert.deepEqual([type, callId], ["traced", CALL]);
  assert.deepEqual(Object.keys(stamps), ["relay.down", "runtime.down", "runtime.up", "relay.up"]);
});

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

for (const kind of ["r", "e"]) {
  test(`${kind === "r" ? "a result" : "an error"} waits for logs that were posted before it`, () => {
    const relay = startCall();
    relay.adopt();
    relay.drain();
    const entries = [{ message: "the last" }];
    relay.page.say(`l${CALL}`);
    relay.page.say(`${kind}${CALL}{"code":"NOPE","message":"No.","retryable":true}`);
    relay.post({ type: "opentabs:plugin-logs", plugin: "demo", entries, nonce: relay.nonce() });
    const before = relay.drain().map(({ method }) => method);
    relay.arrive();
    const after = relay.drain().map(({ method }) => method);
    assert.deepEqual(
      [before, after],
      [["plugin.log"], [kind === "r" ? "tool.result" : "tool.error"]],
    );
  });
}

test("a result that waits for logs is sent when the document is left", () => {
  const relay = startCall();
  relay.page.say(`l${CALL}`);
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
  relay.page.say(`l${CALL}`);
  relay.result("old");
  relay.fire("pagehide");
  relay.fire("pageshow", { persisted: true });
  relay.resend();
  relay.dispatch();
  relay.page.say(`l${CALL}`);
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
  relay.page.say(`p${CALL}{{{`);
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
  assert.match(params.error.message, /takes 1002 characters as JSON; 1000 is the limit/);
});

test("an error over the limit is shortened and ends its call", () => {
  const relay = startCall();
  relay.resend(1000);
  relay.page.say(`e${CALL}${JSON.stringify({ code: "X", message: "x".repeat(5000) })}`);
  const [, frame] = relay.worker.drain();
  assert.equal(JSON.parse(frame).method, "tool.error");
  assert.ok(frame.length < 2000, `a frame of ${frame.length} characters`);
});

// --- readiness and logs ---

test("an adopted plugin's readiness is reported to the worker", () => {
  const relay = startRelay();
  relay.adopt();
  assert.deepEqual(relay.page.ofKind("a"), ["demo"]);
  relay.page.say('s{"plugin":"demo","readiness":"unavailable","reason":"signed out"}');
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
  assert.deepEqual(relay.page.ofKind("x"), ["demo"]);
  relay.page.say('s{"plugin":"demo","readiness":"ready"}');
  assert.deepEqual(relay.drain(), []);
  relay.worker.die();
  assert.deepEqual(relay.drain()[0].plugins, []);
});

test("the readiness of an unknown plugin is ignored", () => {
  const relay = startRelay();
  relay.page.say('s{"plugin":"ghost","readiness":"ready"}');
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
    relay.page.say(`s${JSON.stringify({ plugin: "demo", readiness: "unavailable", reason })}`);
    const [{ state }] = relay.drain();
    assert.ok(state.reason.isWellFormed());
  }
});

test("a signed change of readiness makes the runtime check", () => {
  const relay = startRelay();
  relay.adopt();
  relay.post({ type: "opentabs:readiness-changed", plugin: "demo", nonce: relay.nonce() });
  assert.deepEqual(relay.page.ofKind("k"), ["demo"]);
});

/** A relay with a plugin, and a function that posts its logs. */
function startLogs() {
  const relay = startRelay();
  relay.adopt();
  relay.drain();
  /** @param {object[]} entries */
  const log = (...entries) =>
    relay.post({ type: "opentabs:plugin-logs", plugin: "demo", entries, nonce: relay.nonce() });
  return { ...relay, log };
}

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
  relay.page.say(`w${toolsText()}`);
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
  for (let id = 1; id <= 100; id++) relay.page.say(`w${toolsText(id)}`);
  assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6, 7, 8]);
  relay.elapse();
  assert.deepEqual(ids(), [100]);
  for (let turn = 0; turn < 20; turn++) relay.elapse();
  assert.deepEqual([ids(), relay.timers.length], [[], 0]);
});

test("a list of tools cannot name another document, and one that is too long or not JSON is ignored", () => {
  const relay = startRelay();
  relay.page.say(`w${JSON.stringify({ tools: [], leftOut: 0, documentId: "e".repeat(32) })}`);
  assert.equal(relay.drain()[0].params.documentId, relay.attached[0].documentId);
  relay.page.say(`w${JSON.stringify({ tools: ["x".repeat(MEBI)], leftOut: 0 })}`);
  relay.page.say("wnonsense");
  assert.deepEqual(relay.drain(), []);
});

// --- the channel ---

test("a message that is not on the channel's node is ignored", () => {
  const relay = startCall();
  const detail = `r${CALL}"FORGED"`;
  for (const name of ["up", "down", "opentabs:offer"]) {
    relay.target.dispatchEvent(new CustomEvent(name, { detail, cancelable: true }));
  }
  relay.result("real");
  assert.deepEqual(seqs(relay.drain()), ["tool.result"]);
});

test("the frame that provides the runtime's builtins is removed when the relay starts", () => {
  assert.ok(!startRelay().frame.isThere);
  assert.ok(!startRelay({ runtime: false }).frame.isThere);
});

for (const late of [false, true]) {
  test(`a relay that started ${late ? "late" : "in time"} offers no node to a page that claims to be ready`, () => {
    const relay = startRelay({ late });
    let offers = 0;
    relay.target.addEventListener("opentabs:offer", () => offers++);
    relay.target.dispatchEvent(new CustomEvent("opentabs:ready"));
    assert.equal(offers, 0);
  });
}

test("a runtime without a realm of its own is offered the node, and its channel is not protected", () => {
  const relay = startRelay({ runtime: false });
  const heard = [];
  relay.target.addEventListener("opentabs:offer", (/** @type {any} */ event) => {
    heard.push(channelEnd(event.relatedTarget, { hears: "down", says: "up" }).heard);
  });
  relay.target.dispatchEvent(new CustomEvent("opentabs:ready"));
  assert.equal(relay.attached[0].isProtected, false);
  assert.equal(heard.length, 1);
});

test("forged events of the back/forward cache end no call", () => {
  const relay = startCall();
  relay.fire("pageshow", { persisted: true, isTrusted: false });
  relay.fire("pagehide", { persisted: true, isTrusted: false });
  relay.result("real");
  assert.deepEqual(seqs(relay.drain()), ["tool.result"]);
});

test("messages of a page that called document.open() still arrive", () => {
  const relay = startLogs();
  relay.reopen();
  relay.log({ message: "heard" });
  assert.deepEqual(
    relay.drain().map(({ params }) => params.entries[0].message),
    ["heard"],
  );
});

for (const readyState of ["loading", "interactive"]) {
  test(`a page that called document.open() while ${readyState} is complete when it has loaded`, () => {
    const relay = startRelay({ document: { readyState } });
    relay.reopen();
    relay.fire("load");
    assert.deepEqual(relay.drain(), [{ type: "complete" }]);
  });
}

test("a page that called document.open() while loading is complete some time after it was parsed", () => {
  const relay = startRelay({ document: { readyState: "loading" } });
  relay.reopen();
  relay.target.dispatchEvent(new Event("DOMContentLoaded"));
  assert.equal(relay.timers.length, 1);
  relay.elapse();
  assert.deepEqual(relay.drain(), [{ type: "complete" }]);
});
