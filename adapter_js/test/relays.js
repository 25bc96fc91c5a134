// Relays in their isolated world, with a hand-written page and worker at the other ends.

import assert from "node:assert/strict";
import vm from "node:vm";
import { CALL, channelEnd, FocusEvent, fakeWorker, makeNode, makePage, source } from "./fakes.js";

const RELAY = ["channel", "chunks", "outbox", "logs", "pace", "tool_list", "relay"]
  .map((name) => source(`extension/content/${name}.js`))
  .join("\n");
export const MEBI = 1024 * 1024;

/**
 * @param {{runtime?: boolean, late?: boolean, document?: Record<string, unknown>}} [options]
 */
export function startRelay({ runtime = true, late = false, document: more = {} } = {}) {
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
  // The same document as the page's, by this world's own methods.
  const document = Object.assign(
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
  );
  const context = vm.createContext({
    document,
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
    for (const message of worker.drain()) {
      if (message.type === "attach") documentId = message.documentId;
      if (message.type === "resending") marks.push(message.epoch);
      else if (typeof message !== "string") messages.push(message);
      else if (!message.startsWith("~")) messages.push(JSON.parse(message));
      else {
        parts += message.slice(42);
        if (message[41] === ".") messages.push(JSON.parse(parts));
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
    /** The document has loaded, or its loading was stopped. */
    complete() {
      document.readyState = "complete";
      this.fire("readystatechange");
    },
    /** The page calls `document.open()`: every listener of its document and window is gone. */
    reopen() {
      for (const [type, listener] of onDocument.splice(0)) {
        removeEventListener.call(target, type, listener);
      }
      onWindow.clear();
      childrenChanged();
    },
    nonce: () => page.ofKind("nonce")[0],
    hold: (more = {}) => server("tool.dispatch", { plugin: "demo", tool: "t", input: {}, ...more }),
    start: () => worker.say({ type: "start", callId: CALL }),
    dispatch(more = {}) {
      this.hold(more);
      this.start();
    },
    ack: (/** @type {number} */ seq) => server("tool.ack", { seq }),
    settle: () => server("tool.settled", { callIds: [CALL] }),
    /** @param {unknown[]} reports */
    report: (...reports) =>
      page.say(
        "tool.progress",
        `${CALL}${reports.map((report) => JSON.stringify(report)).join(",")}`,
      ),
    result: (/** @type {unknown} */ value) =>
      page.say("tool.result", `${CALL}${JSON.stringify(value)}`),
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
export function startCall(more = {}) {
  const relay = startRelay();
  relay.resend();
  relay.dispatch(more);
  relay.drain();
  return relay;
}

/** @param {any[]} messages */
export function seqs(messages) {
  return messages.map(({ method, params }) =>
    method === "tool.progress" ? params.reports.map((/** @type {any} */ r) => r.seq) : method,
  );
}

/** @param {any[]} messages */
export function lengths(messages) {
  return seqs(messages).map((each) => (typeof each === "string" ? each : each.length));
}

/** A relay with a plugin, and a function that posts its logs. */
export function startLogs() {
  const relay = startRelay();
  relay.adopt();
  relay.drain();
  /** @param {object[]} entries */
  const log = (...entries) =>
    relay.post({ type: "opentabs:plugin-logs", plugin: "demo", entries, nonce: relay.nonce() });
  return { ...relay, log };
}
