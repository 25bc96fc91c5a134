// What a page has and Node does not, and timers that a test advances.

import { getEventListeners } from "node:events";
import { settled } from "../fakes.js";

/** @import { TestContext } from "node:test" */

/**
 * Sets globals for one test.
 * @param {TestContext} t
 * @param {Record<string, unknown>} globals
 */
export function withGlobals(t, globals) {
  for (const [name, value] of Object.entries(globals)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    t.after(() => {
      if (before === undefined) {
        Reflect.deleteProperty(globalThis, name);
      } else {
        Object.defineProperty(globalThis, name, before);
      }
    });
  }
}

/**
 * Timers that stand still until a test advances them.
 * @param {TestContext} t
 * @param {(ms: number) => boolean} isFaked the others are real
 */
export function fakeTimers(t, isFaked = () => true) {
  const real = { setTimeout, clearTimeout };
  /** @type {Map<number, {at: number, run: () => void, every?: number}>} */
  const pending = new Map();
  let now = 0;
  let last = 0;
  /**
   * @param {() => void} run
   * @param {number} [ms]
   */
  const start = (run, ms = 0) => {
    if (!isFaked(ms)) {
      return real.setTimeout(run, ms);
    }
    pending.set(++last, { at: now + ms, run });
    return last;
  };
  /**
   * @param {() => void} run
   * @param {number} every
   */
  const startInterval = (run, every) => {
    pending.set(++last, { at: now + every, run, every });
    return last;
  };
  const clear = (/** @type {number} */ id) => {
    if (!pending.delete(id)) {
      real.clearTimeout(id);
    }
  };
  withGlobals(t, {
    setTimeout: start,
    setInterval: startInterval,
    clearTimeout: clear,
    clearInterval: clear,
  });
  return {
    /** How many timers are running. */
    count: () => pending.size,
    /** How much longer they run, in ms. */
    left: () => [...pending.values()].map(({ at }) => at - now),
    /** @param {number} ms through which all timers run in order, and what follows from them */
    async advance(ms) {
      const end = now + ms;
      await settled();
      for (;;) {
        const due = [...pending]
          .filter(([, { at }]) => at <= end)
          .sort((a, b) => a[1].at - b[1].at);
        if (due[0] === undefined) {
          break;
        }
        const [id, timer] = due[0];
        now = timer.at;
        if (timer.every === undefined) {
          pending.delete(id);
        } else {
          timer.at += timer.every;
        }
        timer.run();
        await settled();
      }
      now = end;
    },
  };
}

/** @param {AbortSignal} signal */
export function listeners(signal) {
  return getEventListeners(signal, "abort").length;
}

/**
 * The state of a promise, after everything that is ready to run has run.
 * @param {Promise<unknown>} promise
 * @returns {Promise<{state: "pending" | "fulfilled" | "rejected", value?: any}>}
 */
export async function stateOf(promise) {
  /** @type {{state: "pending" | "fulfilled" | "rejected", value?: any}} */
  let state = { state: "pending" };
  promise.then(
    (value) => {
      state = { state: "fulfilled", value };
    },
    (value) => {
      state = { state: "rejected", value };
    },
  );
  await settled();
  return state;
}

/**
 * A window that receives messages, with the nonces that a host sets.
 * @param {TestContext} t
 * @param {{hasHost?: boolean, openTabs?: object}} [options]
 */
export function openPage(t, { hasHost = true, openTabs = {} } = {}) {
  /** @type {any[]} */
  const posted = [];
  const window = Object.assign(new EventTarget(), {
    postMessage(/** @type {unknown} */ message, /** @type {string} */ origin) {
      posted.push({ ...structuredClone(/** @type {object} */ (message)), origin });
    },
    location: { href: "https://shop.example/" },
    /** @type {object} */
    navigation: new EventTarget(),
  });
  const nonces = hasHost ? { _logNonce: "log", _readinessNonce: "ready" } : {};
  /** @type {[string, unknown[]][]} */
  const printed = [];
  const print =
    (/** @type {string} */ level) =>
    (/** @type {unknown[]} */ ...args) => {
      printed.push([level, args]);
    };
  const console = {
    debug: print("debug"),
    info: print("info"),
    warn: print("warn"),
    error: print("error"),
  };
  withGlobals(t, { window, console, __openTabs: { ...openTabs, ...nonces } });
  return {
    posted,
    printed,
    window,
    /** @param {string} url where the page goes without a new document */
    go(url) {
      window.location.href = url;
      if (window.navigation instanceof EventTarget) {
        window.navigation.dispatchEvent(new Event("currententrychange"));
      }
    },
    /** @returns {any} the registry as it is now */
    openTabs: () => /** @type {any} */ (globalThis).__openTabs,
    /** All log records that were posted. */
    records: () => posted.flatMap(({ entries = [] }) => entries),
  };
}

/** Makes modules that are imported later seem bundled into the plugin `shop`. */
export function bundleAs(/** @type {string} */ plugin) {
  Reflect.set(globalThis, "__OPENTABS_PLUGIN__", plugin);
}
