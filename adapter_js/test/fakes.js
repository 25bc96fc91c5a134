// A page to load the runtime and the relay into, with hand-written fakes for the other ends.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import vm from "node:vm";

export const NAME = 32;
export const CALL = "c".repeat(NAME);

/** @param {string} path from the root of the repository */
export function source(path) {
  return readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
}

/**
 * Runs everything that is ready to run, until a condition holds. Fails after 1000 turns.
 * @param {() => unknown} condition
 * @param {string} what
 */
export async function until(condition, what) {
  for (let turn = 0; turn < 1000; turn++) {
    if (condition()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`${what} did not happen`);
}

/** Runs everything that is ready to run. */
export async function settled() {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * A subclass with its parent's members as its own, so that a page can patch it without patching Node's.
 * @param {any} parent
 * @param {string[]} members
 */
function ownCopy(parent, members) {
  const copy = class extends parent {};
  for (const member of members) {
    const descriptor = Object.getOwnPropertyDescriptor(parent.prototype, member);
    Object.defineProperty(copy.prototype, member, /** @type {PropertyDescriptor} */ (descriptor));
  }
  return copy;
}

/** An event with a node, which Node.js does not have. */
export class FocusEvent extends Event {
  #relatedTarget;
  /**
   * @param {string} type
   * @param {{relatedTarget?: EventTarget | null}} init
   */
  constructor(type, { relatedTarget = null } = {}) {
    super(type, { cancelable: true });
    this.#relatedTarget = relatedTarget;
  }
  get relatedTarget() {
    return this.#relatedTarget;
  }
}

/** A node to dispatch events on, outside any document. */
export function makeNode() {
  return Object.assign(new EventTarget(), { localName: "opentabs" });
}

/**
 * Classes of one realm that are not JavaScript's own; a page may patch them.
 * @param {{now: number}} clock
 */
function realmClasses(clock) {
  class Performance {
    timeOrigin = 0;
    now() {
      return clock.now;
    }
  }
  return {
    EventTarget: ownCopy(EventTarget, ["addEventListener", "removeEventListener", "dispatchEvent"]),
    Event: ownCopy(Event, ["defaultPrevented", "preventDefault", "stopImmediatePropagation"]),
    CustomEvent: ownCopy(CustomEvent, ["detail"]),
    FocusEvent: ownCopy(FocusEvent, ["relatedTarget"]),
    AbortController,
    DOMException,
    Performance,
    performance: new Performance(),
  };
}

/**
 * The globals of one document, with real events; time stands still until a test advances it. With a
 * node, the first of its frames has its own builtins and that node.
 * @param {EventTarget} [node]
 */
export function makePage(node) {
  const clock = { now: 1_000_000 };
  const classes = realmClasses(clock);
  const document = new classes.EventTarget();
  document.readyState = "complete";
  /** @type {{run: () => void, ms: number}[]} */
  const timers = [];
  /** @type {unknown[][]} */
  const warnings = [];
  /** @type {unknown[][]} */
  const notes = [];
  const context = vm.createContext({
    document,
    ...classes,
    console: {
      warn: (/** @type {unknown[]} */ ...args) => warnings.push(args),
      debug: (/** @type {unknown[]} */ ...args) => notes.push(args),
    },
    setTimeout: (/** @type {() => void} */ run, /** @type {number} */ ms) => {
      const timer = { run, ms };
      timers.push(timer);
      return timer;
    },
    clearTimeout: (/** @type {typeof timers[number]} */ timer) => {
      timers.splice(timers.indexOf(timer) >>> 0, 1);
    },
  });
  if (node !== undefined) {
    const inner = { documentElement: { lastChild: node } };
    const frame = vm.createContext({ document: inner, ...realmClasses(clock) });
    context[0] = vm.runInContext("globalThis", frame);
  }
  return {
    document,
    context,
    timers,
    warnings,
    notes,
    clock,
    /** @param {string} code */
    run: (code) => vm.runInContext(code, context),
  };
}

/**
 * One end of the channel, as the other sees it. It calls Node's own methods, as another world would.
 * @param {EventTarget} node
 * @param {{hears: "up" | "down", says: "up" | "down"}} directions
 */
export function channelEnd(node, { hears, says }) {
  const { addEventListener, dispatchEvent } = EventTarget.prototype;
  const { preventDefault } = Event.prototype;
  const detailOf = /** @type {() => string} */ (
    Object.getOwnPropertyDescriptor(CustomEvent.prototype, "detail")?.get
  );
  /** @type {{kind: string, text: string}[]} */
  const heard = [];
  addEventListener.call(node, hears, (event) => {
    preventDefault.call(event);
    const [kind = "", text = ""] = detailOf.call(event).split(/ (.*)/s);
    heard.push({ kind, text });
  });
  return {
    heard,
    /**
     * @param {string} kind
     * @param {string} text
     */
    say(kind, text) {
      const event = new CustomEvent(says, { detail: `${kind} ${text}`, cancelable: true });
      // Only a runtime confirms that it received something.
      if (dispatchEvent.call(node, event) && says === "down") {
        throw new Error("nobody received it");
      }
    },
    /** @param {string} kind */
    ofKind: (kind) =>
      heard.filter((message) => message.kind === kind).map((message) => message.text),
  };
}

/**
 * The service worker's end of the relay's Ports.
 */
export function fakeWorker() {
  /** @typedef {{sent: any[], listeners: Set<Function>, onGone: Set<Function>, open: boolean}} End */
  /** @type {End[]} */
  const ports = [];
  const runtime = {
    id: "extension",
    connect() {
      /** @type {End} */
      const end = { sent: [], listeners: new Set(), onGone: new Set(), open: true };
      ports.push(end);
      return {
        onMessage: {
          addListener: (/** @type {Function} */ listener) => end.listeners.add(listener),
        },
        onDisconnect: {
          addListener: (/** @type {Function} */ listener) => end.onGone.add(listener),
        },
        postMessage(/** @type {unknown} */ message) {
          if (!end.open) throw new Error("Attempting to use a disconnected port object");
          end.sent.push(structuredClone(message));
        },
        disconnect() {
          end.open = false;
        },
      };
    },
  };
  return {
    chrome: { runtime },
    ports,
    /** Returns what the relay has sent on its current Port since the last call. */
    drain: () => /** @type {End} */ (ports.at(-1)).sent.splice(0),
    /** @param {unknown} message */
    say(message) {
      for (const listener of /** @type {End} */ (ports.at(-1)).listeners) listener(message);
    },
    /** The worker dies: the Port closes, and connecting again wakes a new one. */
    die() {
      const end = /** @type {End} */ (ports.at(-1));
      end.open = false;
      for (const listener of end.onGone) listener();
    },
  };
}

/**
 * Replaces the server, and returns its end of the worker's current connection.
 */
export function fakeServer() {
  /** @type {any[]} what the worker has sent and nobody has looked at yet */
  const sent = [];
  /** @type {FakeSocket | undefined} */
  let socket;
  class FakeSocket {
    static OPEN = 1;
    readyState = FakeSocket.OPEN;
    constructor() {
      socket = this;
    }
    onopen() {}
    /** @param {{reason: string}} _event */
    onclose(_event) {}
    /** @param {{data: string}} event */
    onmessage({ data }) {
      assert.fail(`the worker does not listen to ${data}`);
    }
    close() {
      this.onclose({ reason: "" });
    }
    /** @param {string} text */
    send(text) {
      sent.push(JSON.parse(text));
    }
  }
  Object.assign(globalThis, {
    WebSocket: FakeSocket,
    fetch: async () => ({ json: async () => ({ server: "127.0.0.1:1", secret: "s" }) }),
  });
  return {
    sent,
    /** Accepts the connection that the worker is waiting for, if any. */
    async open() {
      await settled();
      socket?.onopen();
      await settled();
    },
    /** @param {string} data */
    say: (data) => socket?.onmessage({ data }),
    close: () => socket?.close(),
  };
}
