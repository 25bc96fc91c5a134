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
  /** @type {{onmessage(): void}[]} ports with a message on its way */
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
        adoptNode: () => assert.ok(frame.isThere, "the frame took the node's listeners along"),
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

  /** @type {number[]} the links for which all was sent again, of the last look */
  let marks = [];

  /** What the worker received: frames of the wire, joined and parsed, and other messages. */
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

test("a document says who it is, and that its channel is protected", () => {
  const [attach] = startRelay().attached;
  assert.equal(attach.type, "attach");
  assert.match(attach.documentId, /^[0-9a-f]{32}$/);
  assert.deepEqual([attach.calls, attach.plugins, attach.isProtected], [[], [], true]);
});

test("a relay that came late says that its channel is not protected", () => {
  assert.equal(startRelay({ late: true }).attached[0].isProtected, false);
});

test("a second relay leaves the first at work", () => {
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

test("a page that never completes counts as complete a while after it was parsed", () => {
  const relay = startRelay({ document: { readyState: "interactive" } });
  assert.equal(relay.attached[0].complete, false);
  relay.timers[0]?.run();
  assert.deepEqual(relay.drain(), [{ type: "complete" }]);
});

test("a document whose worker died connects again and names its calls", () => {
  const relay = startCall();
  const before = relay.documentId();
  relay.worker.die();
  const [attach] = relay.drain();
  assert.deepEqual([attach.documentId, attach.calls], [before, [CALL]]);
});

test("a relay that connects again says which load of the extension answered it", () => {
  const relay = startRelay();
  assert.equal(relay.attached[0].loadId, null);
  relay.resend(1e6, 1, "first");
  relay.worker.die();
  assert.equal(relay.drain().find(({ type }) => type === "attach").loadId, "first");
});

test("a relay whose extension is gone does not connect again", () => {
  const relay = startRelay();
  relay.worker.chrome.runtime.id = /** @type {any} */ (undefined);
  relay.worker.die();
  assert.equal(relay.worker.ports.length, 1);
});

test("a relay whose extension was reloaded ends its calls and drops its plugins for the next", () => {
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

test("a document back from the cache is a new one, and its tools are notified to stop", () => {
  const relay = startCall();
  const before = relay.documentId();
  relay.fire("pageshow", { persisted: true });
  const [attach] = relay.drain();
  assert.notEqual(attach.documentId, before);
  assert.deepEqual(attach.calls, []);
  assert.equal(relay.page.ofKind("c").length, 1);
});

test("the old Port of a document back from the cache, closing late, changes nothing", () => {
  const relay = startRelay();
  const [old] = relay.worker.ports;
  relay.fire("pageshow", { persisted: true });
  for (const listener of old?.onGone ?? []) listener();
  assert.equal(relay.worker.ports.length, 2);
});

// --- calls ---

test("a dispatch reaches the page as it was sent", () => {
  const relay = startCall({ input: { n: 1 } });
  const [text] = relay.page.ofKind("d");
  assert.deepEqual(JSON.parse(String(text)).params.input, { n: 1 });
});

test("a call that came before is not started again", () => {
  const relay = startCall();
  relay.dispatch();
  assert.equal(relay.page.ofKind("d").length, 1);
});

test("a result is sent with the document, the call and the next number", () => {
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

test("an error is sent with its fields", () => {
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

test("where no script can run, a call fails at once and says so", () => {
  const relay = startRelay({ runtime: false });
  relay.dispatch();
  const [, { method, params }] = relay.drain();
  assert.deepEqual([method, params.error.code], ["tool.error", "PAGE_UNREACHABLE"]);
});

test("what is sent again goes behind a mark of the link it is for", () => {
  const relay = startCall();
  relay.report({ progress: 1 });
  relay.drain();
  relay.resend(undefined, 7);
  const said = relay.worker.drain();
  assert.deepEqual(said[0], { type: "resending", epoch: 7 });
  assert.match(said[1], /tool\.progress/);
});

test("the worker is notified that a call was received before the page is", () => {
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

test("a dispatch in parts that a lost link cut short does not mix with the next link's", () => {
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

test("the start of a traced call is reported at once, because its tool may never answer", () => {
  const relay = startCall({ trace: true });
  relay.page.say(`t${CALL}{"runtime.down":1}`);
  const [{ type, callId, stamps }] = relay.drain();
  assert.deepEqual([type, callId], ["began", CALL]);
  assert.deepEqual(Object.keys(stamps), ["relay.down", "runtime.down"]);
});

test("a traced call's result carries when it passed the relay and the runtime", () => {
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

test("the first report goes at once; those made before its receipt go together after it", () => {
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

test("few reports go before the result, receipt or not", () => {
  const relay = startCall();
  for (let i = 0; i < 3; i++) relay.report({ progress: i });
  relay.result("done");
  assert.deepEqual(seqs(relay.drain()), [[0], [1, 2], "tool.result"]);
});

test("of many reports two batches are in flight, after the end too, and the result is last", () => {
  const relay = startCall();
  relay.report({ progress: 0 });
  relay.report(...manyReports(200)); // six batches and a bit
  assert.deepEqual(lengths(relay.drain()), [1, 33, 33]);
  relay.ack(0);
  assert.deepEqual(lengths(relay.drain()), []);
  relay.ack(33);
  assert.deepEqual(lengths(relay.drain()), [33]);
  relay.result("done");
  assert.deepEqual(lengths(relay.drain()), [33]); // one more, were it the last
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

test("a document that goes sends all that it has, the result last", () => {
  const relay = startCall();
  relay.report({ progress: 0 });
  relay.report(...manyReports(200));
  relay.result("done");
  relay.drain();
  relay.fire("pagehide");
  assert.deepEqual(lengths(relay.drain()), [33, 33, 33, 2, "tool.result"]);
});

for (const kind of ["r", "e"]) {
  test(`an end (${kind}) waits for logs that were posted before it`, () => {
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

test("an end that waits for logs goes when the document goes", () => {
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

test("an end in a document that comes back waits for its own logs", () => {
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
  relay.arrive(1); // what was on its way when the document went
  assert.deepEqual(relay.drain(), []);
  relay.arrive();
  assert.deepEqual(
    relay.drain().map(({ params }) => params.value),
    ["new"],
  );
});

test("after a worker's death what was not acknowledged is sent again, as it was", () => {
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

test("after a worker's death a running call continues with one batch at a time", () => {
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

test("what is said while a Port is closing is not lost", () => {
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

test("past 8 MiB the oldest unsent reports are dropped, and their numbers are missing", () => {
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

test("of a report only what is of the right type is forwarded, and it still counts", () => {
  const relay = startCall();
  relay.report({ progress: "1", total: null, message: 5, extra: true }, 7, null, []);
  const [{ params }] = relay.drain();
  assert.deepEqual(params.reports, [{ seq: 0 }, { seq: 1 }, { seq: 2 }, { seq: 3 }]);
});

test("what is not JSON at all changes nothing", () => {
  const relay = startCall();
  relay.page.say(`p${CALL}{{{`);
  relay.result("done");
  assert.deepEqual(seqs(relay.drain()), ["tool.result"]);
});

// --- text and size ---

for (const [what, value, expected] of /** @type {[string, string, string][]} */ ([
  ["half a surrogate pair becomes a replacement character", "a\ud800b\udfff", "a\ufffdb\ufffd"],
  ["a whole pair stays", "\u{1f600}", "\u{1f600}"],
  ["a backslash before the letters ud800 stays", "\\ud800", "\\ud800"],
  ["half a pair behind a backslash becomes a replacement", "\\\ud800", "\\\ufffd"],
  ["two backslashes before the letters stay", "\\\\udc00 \\udder", "\\\\udc00 \\udder"],
  ["halves in the wrong order are two replacements", "\udc00\ud800", "\ufffd\ufffd"],
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

test("a report cut between the halves of a pair has no half left", () => {
  const relay = startCall();
  relay.report({ message: `${"x".repeat(4095)}\u{1f600}` });
  const [{ params }] = relay.drain();
  assert.ok(params.reports[0].message.isWellFormed());
});

test("a long row of backslashes is looked through in an instant", () => {
  const relay = startCall();
  const value = `${"\\".repeat(300_000)}\ud800`;
  relay.result(value);
  assert.equal(relay.drain()[0].params.value, `${"\\".repeat(300_000)}\ufffd`);
});

test("a long result goes in parts that never split a pair, and joins to what it was", () => {
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

test("two long results have two stream numbers", () => {
  const relay = startCall();
  relay.result("x".repeat(MEBI));
  relay.worker.drain();
  relay.worker.die();
  relay.worker.drain();
  relay.resend();
  const [, frame] = relay.worker.drain();
  assert.equal(frame.slice(33, 41), "00000001");
});

test("a result over the limit is an error that says how long it is", () => {
  const relay = startCall();
  relay.resend(1000);
  relay.result("x".repeat(1000));
  const [{ method, params }] = relay.drain();
  assert.deepEqual([method, params.error.code], ["tool.error", "RESULT_TOO_LARGE"]);
  assert.match(params.error.message, /takes 1002 characters as JSON; 1000 is the limit/);
});

test("an error over the limit still ends its call within it", () => {
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

test("a plugin that is dropped is taken from the page, and is heard no more", () => {
  const relay = startRelay();
  relay.adopt();
  relay.worker.say({ type: "drop", plugin: "demo" });
  assert.deepEqual(relay.page.ofKind("x"), ["demo"]);
  relay.page.say('s{"plugin":"demo","readiness":"ready"}');
  assert.deepEqual(relay.drain(), []);
  relay.worker.die();
  assert.deepEqual(relay.drain()[0].plugins, []);
});

test("readiness of a plugin that is not there is dropped", () => {
  const relay = startRelay();
  relay.page.say('s{"plugin":"ghost","readiness":"ready"}');
  assert.deepEqual(relay.drain(), []);
});

test("a hole in a page's log records is a record like any other", () => {
  const relay = startRelay();
  relay.adopt();
  // biome-ignore lint/suspicious/noSparseArray: a page may send one
  const entries = [, { level: "info", message: "kept" }];
  relay.post({ type: "opentabs:plugin-logs", plugin: "demo", entries, nonce: relay.nonce() });
  const { entries: sent } = relay.drain()[0].params;
  assert.equal(sent.length, 2);
  assert.ok(sent.every((/** @type {any} */ each) => typeof each?.message === "string"));
});

test("a reason with half a surrogate pair, or cut within a pair, is whole text", () => {
  for (const reason of ["\ud800", `${"x".repeat(999)}\u{1f600}`]) {
    const relay = startRelay();
    relay.adopt();
    relay.page.say(`s${JSON.stringify({ plugin: "demo", readiness: "unavailable", reason })}`);
    const [{ state }] = relay.drain();
    assert.ok(state.reason.isWellFormed());
  }
});

test("a signed change of readiness has the runtime ask", () => {
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

test("logs without the nonce, from another window, or of no plugin here are dropped", () => {
  const relay = startLogs();
  const sound = { type: "opentabs:plugin-logs", plugin: "demo", entries: [{ message: "m" }] };
  relay.post({ ...sound, nonce: "f".repeat(32) });
  relay.post(sound);
  relay.post({ ...sound, nonce: relay.nonce() }, {});
  relay.post({ ...sound, nonce: relay.nonce(), plugin: "ghost" });
  relay.post({ ...sound, nonce: relay.nonce(), entries: "many" });
  assert.deepEqual(relay.drain(), []);
});

test("logs over the rate are dropped and counted", () => {
  const relay = startLogs();
  relay.log(...Array.from({ length: 250 }, (_, i) => ({ message: `${i}` })));
  relay.log({ message: "one more" });
  relay.clock.now += 1000; // 50 more may go
  relay.log(...Array.from({ length: 60 }, (_, i) => ({ message: `${i}` })));
  const counts = relay.drain().map(({ params }) => [params.entries.length, params.dropped]);
  assert.deepEqual(counts, [
    [200, 50],
    [50, 11],
  ]);
});

test("logs are forwarded when the clock is set back", () => {
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
  ["a time that is infinite", { message: "m", ts: Infinity }],
  ["half a surrogate pair", { message: "\ud800", data: ["\udfff"] }],
  ["a text cut within a pair", { message: `${"x".repeat(7999)}\u{1f600}` }],
  ["data that JSON cannot say", { message: "m", data: [10n] }],
  ["a message that is not a string", { message: { toString: 1, valueOf: 1 } }],
  ["nothing", {}],
])) {
  test(`a log with ${what} is a sound message, and the next one arrives`, () => {
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

test("a list of the page's tools is sent with the document's id, and again on a new link", () => {
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

test("a page that changes its tools all the time sends the latest list from time to time", () => {
  const relay = startRelay();
  const ids = () => relay.drain().map(({ params }) => params.tools[0].id);
  for (let id = 1; id <= 100; id++) relay.page.say(`w${toolsText(id)}`);
  assert.deepEqual(ids(), [1, 2, 3, 4, 5, 6, 7, 8]);
  relay.elapse();
  assert.deepEqual(ids(), [100]);
  for (let turn = 0; turn < 20; turn++) relay.elapse();
  assert.deepEqual([ids(), relay.timers.length], [[], 0]);
});

test("a list that names another document, is too long or is not JSON changes nothing", () => {
  const relay = startRelay();
  relay.page.say(`w${JSON.stringify({ tools: [], leftOut: 0, documentId: "e".repeat(32) })}`);
  assert.equal(relay.drain()[0].params.documentId, relay.attached[0].documentId);
  relay.page.say(`w${JSON.stringify({ tools: ["x".repeat(MEBI)], leftOut: 0 })}`);
  relay.page.say("wnonsense");
  assert.deepEqual(relay.drain(), []);
});

// --- the channel ---

test("a message that is not on the channel's node changes nothing", () => {
  const relay = startCall();
  const detail = `r${CALL}"FORGED"`;
  for (const name of ["up", "down", "opentabs:offer"]) {
    relay.target.dispatchEvent(new CustomEvent(name, { detail, cancelable: true }));
  }
  relay.result("real");
  assert.deepEqual(seqs(relay.drain()), ["tool.result"]);
});

test("the frame that gave the runtime its builtins is gone once the relay is there", () => {
  assert.ok(!startRelay().frame.isThere);
  assert.ok(!startRelay({ runtime: false }).frame.isThere);
});

for (const late of [false, true]) {
  test(`a page that says it is ready is offered nothing, ${late ? "late" : "in time"}`, () => {
    const relay = startRelay({ late });
    let offers = 0;
    relay.target.addEventListener("opentabs:offer", () => offers++);
    relay.target.dispatchEvent(new CustomEvent("opentabs:ready"));
    assert.equal(offers, 0);
  });
}

test("a runtime that no realm reached is offered the node, and unprotected", () => {
  const relay = startRelay({ runtime: false });
  const heard = [];
  relay.target.addEventListener("opentabs:offer", (/** @type {any} */ event) => {
    heard.push(channelEnd(event.relatedTarget, { hears: "down", says: "up" }).heard);
  });
  relay.target.dispatchEvent(new CustomEvent("opentabs:ready"));
  assert.equal(relay.attached[0].isProtected, false);
  assert.equal(heard.length, 1);
});

test("a page that made the events of the back/forward cache ends no call", () => {
  const relay = startCall();
  relay.fire("pageshow", { persisted: true, isTrusted: false });
  relay.fire("pagehide", { persisted: true, isTrusted: false });
  relay.result("real");
  assert.deepEqual(seqs(relay.drain()), ["tool.result"]);
});

test("a page that called document.open() is listened to as before", () => {
  const relay = startLogs();
  relay.reopen();
  relay.log({ message: "heard" });
  assert.deepEqual(
    relay.drain().map(({ params }) => params.entries[0].message),
    ["heard"],
  );
});

for (const readyState of ["loading", "interactive"]) {
  test(`a page that called document.open() while ${readyState} completes when it has loaded`, () => {
    const relay = startRelay({ document: { readyState } });
    relay.reopen();
    relay.fire("load");
    assert.deepEqual(relay.drain(), [{ type: "complete" }]);
  });
}

test("a page that called document.open() while loading completes a while after it was parsed", () => {
  const relay = startRelay({ document: { readyState: "loading" } });
  relay.reopen();
  relay.target.dispatchEvent(new Event("DOMContentLoaded"));
  assert.equal(relay.timers.length, 1);
  relay.elapse();
  assert.deepEqual(relay.drain(), [{ type: "complete" }]);
});
