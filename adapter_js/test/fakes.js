// A page to load the runtime and the relay into, and hand-written other ends for both.

import { readFileSync } from "node:fs";
import vm from "node:vm";

export const NAME = 32;
export const CALL = "c".repeat(NAME);

/** @param {string} path from the root of the repository */
export function source(path) {
  return readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
}

export function randomName() {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(NAME / 2))).toString("hex");
}

/**
 * Lets all that is ready to run, run; then looks again, a bounded number of times.
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

/** Lets all that is ready to run, run. */
export async function settled() {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * A subclass with its parent's members as its own: a page may patch it and leave Node's alone.
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

/** The globals of one document, with real events; time stands still until a test moves it. */
export function makePage() {
  const PageTarget = ownCopy(EventTarget, [
    "addEventListener",
    "removeEventListener",
    "dispatchEvent",
  ]);
  const document = new PageTarget();
  document.readyState = "complete";
  /** @type {{run: () => void, ms: number}[]} */
  const timers = [];
  /** @type {unknown[][]} */
  const warnings = [];
  const clock = { now: 1_000_000 };
  const context = vm.createContext({
    document,
    EventTarget: PageTarget,
    Event: ownCopy(Event, ["preventDefault", "stopImmediatePropagation"]),
    CustomEvent: ownCopy(CustomEvent, ["detail"]),
    AbortController,
    DOMException,
    Crypto,
    crypto,
    Performance,
    performance,
    console: { warn: (/** @type {unknown[]} */ ...args) => warnings.push(args), debug() {} },
    setTimeout: (/** @type {() => void} */ run, /** @type {number} */ ms) =>
      timers.push({ run, ms }),
  });
  return {
    document,
    context,
    timers,
    warnings,
    clock,
    /** @param {string} code */
    run: (code) => vm.runInContext(code, context),
  };
}

/**
 * What one end of the channel is to the other: it speaks and hears by events whose names are
 * used once. It calls Node's own methods, as another world would.
 * @param {EventTarget} document
 */
export function channelEnd(document) {
  const { addEventListener, dispatchEvent } = EventTarget.prototype;
  const { preventDefault } = Event.prototype;
  const detailOf = /** @type {() => string} */ (
    Object.getOwnPropertyDescriptor(CustomEvent.prototype, "detail")?.get
  );
  /** @type {string[]} */
  const heard = [];
  /** @type {Set<string>} */
  const names = new Set();
  let speaksOn = "";

  /** @param {string} name */
  function listen(name) {
    names.add(name);
    addEventListener.call(document, name, take, { once: true });
  }

  /** @param {Event} event */
  function take(event) {
    preventDefault.call(event);
    const detail = detailOf.call(event);
    listen(detail.slice(0, NAME));
    heard.push(detail.slice(NAME));
  }

  return {
    heard,
    names,
    listen,
    /** @param {string} name */
    speakOn(name) {
      speaksOn = name;
      names.add(name);
    },
    /**
     * @param {string} text
     * @returns {string} the name that was used for it
     */
    say(text) {
      const used = speaksOn;
      const next = randomName();
      const event = new CustomEvent(used, { detail: next + text, cancelable: true });
      if (dispatchEvent.call(document, event)) {
        throw new Error("nobody took it");
      }
      this.speakOn(next);
      return used;
    },
    /** @param {string} kind */
    ofKind: (kind) => heard.filter((text) => text[0] === kind).map((text) => text.slice(1)),
  };
}

/**
 * The service worker's end of the relay's Ports.
 */
export function fakeWorker() {
  /** @typedef {{said: any[], listeners: Set<Function>, onGone: Set<Function>, open: boolean}} End */
  /** @type {End[]} */
  const ports = [];
  const runtime = {
    id: "extension",
    connect() {
      /** @type {End} */
      const end = { said: [], listeners: new Set(), onGone: new Set(), open: true };
      ports.push(end);
      return {
        onMessage: { addListener: (/** @type {Function} */ take) => end.listeners.add(take) },
        onDisconnect: { addListener: (/** @type {Function} */ take) => end.onGone.add(take) },
        postMessage(/** @type {unknown} */ message) {
          if (!end.open) throw new Error("Attempting to use a disconnected port object");
          end.said.push(structuredClone(message));
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
    /** What the relay said on its present Port and nobody has looked at yet. */
    take: () => /** @type {End} */ (ports.at(-1)).said.splice(0),
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
