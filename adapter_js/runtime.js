/**
 * The runtime: in the page (MAIN world), it holds the plugins' adapters and runs their tools.
 *
 * A page is hostile. This script runs before the page's own, takes the builtins it needs
 * then, and never looks one up again: no method call on a value, no iteration, no property
 * that may be missing, because each can end in the page's code. What comes and goes does so
 * by events on `document` whose names are 128 random bits and used once; each message names
 * the next. Tool code starts after an `await`, when `window.event` no longer shows ours.
 */
(() => {
  const page = globalThis;
  const NAME = 32;
  const MESSAGE_MAX = 4096;
  const FIRST_PROBE = 1000; // ms between two questions whether a plugin is ready
  const LAST_PROBE = 30_000;

  const { apply, getPrototypeOf } = Reflect;
  const { parse, stringify } = JSON;
  const { defineProperty, freeze, hasOwn } = Object;
  const { isFinite: isFiniteNumber } = Number;
  const arrayPrototype = Array.prototype;
  const objectPrototype = Object.prototype;
  const MapConstructor = Map;
  const SetConstructor = Set;
  const {
    get: mapGet,
    set: mapSet,
    delete: mapDelete,
    has: mapHas,
    forEach: mapForEach,
  } = Map.prototype;
  const { forEach: setForEach } = Set.prototype;
  const { slice: stringSlice } = String.prototype;
  const { addEventListener, removeEventListener, dispatchEvent } = EventTarget.prototype;
  const { preventDefault, stopImmediatePropagation } = Event.prototype;
  const EventConstructor = CustomEvent;
  const detailOf = getter(CustomEvent.prototype, "detail");
  const AbortControllerConstructor = AbortController;
  const { abort } = AbortController.prototype;
  const signalOf = getter(AbortController.prototype, "signal");
  const ExceptionConstructor = DOMException;
  const { getRandomValues } = Crypto.prototype;
  const randomSource = page.crypto;
  const Bytes = Uint8Array;
  const later = page.setTimeout;
  const { timeOrigin } = performance;
  const { now: performanceNow } = Performance.prototype;
  const clock = performance;
  const { warn } = console;
  const doc = page.document;

  /**
   * @param {object} prototype
   * @param {string} name
   * @returns {(this: object) => any}
   */
  function getter(prototype, name) {
    return /** @type {any} */ (Object.getOwnPropertyDescriptor(prototype, name)).get;
  }

  /**
   * @typedef {object} Plugin
   * @property {Map<string, {tool: any, handle: Function}>} tools
   * @property {any} adapter
   * @property {boolean} probing whether a question waits for its answer
   * @property {boolean} timed whether the next question is set
   * @property {number} wait ms until it
   * @property {string} state as it was told last
   */

  /** @type {Map<string, Plugin>} */
  const plugins = new MapConstructor();
  /** @type {Map<string, {controller: AbortController, invalid: boolean}>} */
  const running = new MapConstructor();

  let down = "";
  let up = "";

  // --- the channel -------------------------------------------------------------------------

  /**
   * @param {string} name
   * @param {(event: CustomEvent) => void} listener
   */
  function listen(name, listener) {
    apply(addEventListener, doc, [name, listener]);
  }

  /**
   * @param {string} name
   * @param {string} detail
   * @returns {boolean} whether somebody took it
   */
  function emit(name, detail) {
    const init = /** @type {any} */ ({ __proto__: null, detail, cancelable: true });
    return !apply(dispatchEvent, doc, [new EventConstructor(name, init)]);
  }

  /**
   * @param {string} text
   * @param {number} start
   * @param {number} [end]
   * @returns {string}
   */
  function slice(text, start, end) {
    return apply(stringSlice, text, [start, end]);
  }

  function randomName() {
    const bytes = new Bytes(NAME / 2);
    apply(getRandomValues, randomSource, [bytes]);
    let name = "";
    for (let i = 0; i < NAME / 2; i++) {
      const byte = /** @type {number} */ (bytes[i]);
      name += "0123456789abcdef"[byte >> 4];
      name += "0123456789abcdef"[byte & 15];
    }
    return name;
  }

  /** @param {CustomEvent} event the relay's one offer of the first two names and the nonce */
  function accept(event) {
    apply(preventDefault, event, []);
    apply(stopImmediatePropagation, event, []);
    apply(removeEventListener, doc, ["opentabs:offer", accept]);
    const detail = apply(detailOf, event, []);
    down = slice(detail, 0, NAME);
    up = slice(detail, NAME, 2 * NAME);
    listen(down, hear);
    prepare(slice(detail, 2 * NAME));
  }

  /** @param {CustomEvent} event */
  function hear(event) {
    apply(preventDefault, event, []);
    apply(stopImmediatePropagation, event, []);
    apply(removeEventListener, doc, [down, hear]);
    const detail = apply(detailOf, event, []);
    down = slice(detail, 0, NAME);
    listen(down, hear);
    take(slice(detail, NAME, NAME + 1), slice(detail, NAME + 1));
  }

  /** @param {string} text */
  function tell(text) {
    const next = randomName();
    if (emit(up, next + text)) {
      up = next;
    }
  }

  /**
   * @param {string} kind
   * @param {string} text
   */
  async function take(kind, text) {
    await null;
    switch (kind) {
      case "d":
        run(parse(text).params);
        break;
      case "c":
        cancel(slice(text, 0, NAME), slice(text, NAME));
        break;
      case "a":
        adopt(text);
        break;
      case "x": // its calls under way go on
        apply(mapDelete, plugins, [text]);
        break;
      case "r":
        probe(text);
        break;
    }
  }

  // --- calls -------------------------------------------------------------------------------

  /** @param {{callId: string, plugin: string, tool: string, input: object, trace: boolean}} params */
  async function run({ callId, plugin, tool, input, trace }) {
    if (trace) {
      tell(`t${callId}{"runtime.down":${now()}}`); // now: a tool may hang and never answer
    }
    const known = apply(mapGet, plugins, [plugin]);
    const entry = known === undefined ? undefined : apply(mapGet, known.tools, [tool]);
    if (entry === undefined) {
      const what = known === undefined ? `plugin ${plugin}` : `tool ${tool} of plugin ${plugin}`;
      const message = `The page has no ${what}. Reload it, and rebuild the plugin if that does not help.`;
      tell(
        `e${callId}${stringify({ __proto__: null, code: "PLUGIN_NOT_LOADED", message, retryable: true })}`,
      );
      return;
    }
    const controller = new AbortControllerConstructor();
    const call = { controller, invalid: false, answered: false, late: false };
    apply(mapSet, running, [callId, call]);
    const context = freeze({
      reportProgress: reporter(callId, call, `${plugin} ${tool}`),
      signal: apply(signalOf, controller, []),
    });
    let answer;
    try {
      answer = `r${callId}${toJson(await apply(entry.handle, entry.tool, [input, context]))}`;
    } catch (error) {
      answer = `e${callId}${describe(error)}`;
    }
    // A call that was cancelled has no one to answer.
    if (apply(mapDelete, running, [callId])) {
      call.answered = true;
      flush();
      if (trace) {
        tell(`t${callId}{"runtime.up":${now()}}`);
      }
      tell(answer);
    }
  }

  /**
   * @param {string} callId
   * @param {string} reason
   */
  function cancel(callId, reason) {
    const call = apply(mapGet, running, [callId]);
    if (call !== undefined) {
      apply(mapDelete, running, [callId]);
      apply(abort, call.controller, [new ExceptionConstructor(reason, "AbortError")]);
    }
  }

  /**
   * A value as JSON. Beyond JSON.stringify: `undefined` is null, a Map is an object, a Set an
   * array.
   * @param {unknown} value
   * @returns {string}
   */
  function toJson(value) {
    try {
      return stringify(value, replace) ?? "null";
    } catch (error) {
      const why = text(() => /** @type {Error} */ (error).message);
      throw {
        __proto__: null,
        code: "RESULT_NOT_SERIALISABLE",
        message: `The tool's result cannot be sent as JSON: ${why}. Return plain objects, arrays, strings, numbers, booleans and null.`,
      };
    }
  }

  /**
   * @this {any} the object or array that holds the value
   * @param {string} key
   * @param {unknown} given the value, or what its toJSON() made of it
   */
  function replace(key, given) {
    const value = isPatched() && !hasToJson(this[key]) ? this[key] : given;
    if (typeof value !== "object" || value === null) {
      return value;
    }
    const prototype = getPrototypeOf(value);
    if (prototype === objectPrototype || prototype === arrayPrototype) {
      return value;
    }
    if (value instanceof MapConstructor) {
      const object = /** @type {any} */ ({ __proto__: null });
      apply(mapForEach, value, [
        (/** @type {unknown} */ item, /** @type {any} */ name) => {
          object[name] = item;
        },
      ]);
      return object;
    }
    if (value instanceof SetConstructor) {
      /** @type {unknown[]} */
      const list = [];
      apply(setForEach, value, [
        (/** @type {unknown} */ item) => {
          const own = { __proto__: null, value: item, enumerable: true };
          defineProperty(list, list.length, /** @type {any} */ (own));
        },
      ]);
      return list;
    }
    return value;
  }

  /** Whether the page has put a toJSON() where every object inherits it. */
  function isPatched() {
    return hasOwn(objectPrototype, "toJSON") || hasOwn(arrayPrototype, "toJSON");
  }

  /**
   * Whether a value or its class brings a toJSON() of its own.
   * @param {unknown} value
   */
  function hasToJson(value) {
    let holder = typeof value === "object" ? value : null;
    while (holder !== null && holder !== objectPrototype && holder !== arrayPrototype) {
      if (hasOwn(holder, "toJSON")) {
        return true;
      }
      holder = getPrototypeOf(holder);
    }
    return false;
  }

  /**
   * What was thrown, as a `ToolError` crosses the wire. Anything can be thrown, getters and
   * proxies included.
   * @param {unknown} thrown
   * @returns {string}
   */
  function describe(thrown) {
    const error = /** @type {any} */ (
      (typeof thrown === "object" && thrown !== null) || typeof thrown === "function" ? thrown : {}
    );
    const code = read(() => error.code);
    const message = read(() => error.message);
    const isToolError = typeof code === "string" && code !== "";
    const category = isToolError ? read(() => error.category) : undefined;
    const retryAfterMs = isToolError ? read(() => error.retryAfterMs) : undefined;
    return stringify({
      __proto__: null,
      code: isToolError ? slice(code, 0, 256) : "INTERNAL_ERROR",
      message: typeof message === "string" && message !== "" ? message : text(() => `${thrown}`),
      category: typeof category === "string" ? slice(category, 0, 256) : undefined,
      retryable: isToolError && read(() => error.retryable) === true,
      retryAfterMs:
        isFiniteNumber(retryAfterMs) && /** @type {number} */ (retryAfterMs) >= 0
          ? retryAfterMs
          : undefined,
    });
  }

  /**
   * @param {() => unknown} get
   * @returns {unknown} undefined when it throws
   */
  function read(get) {
    try {
      return get();
    } catch {
      return undefined;
    }
  }

  /** @param {() => string} get */
  function text(get) {
    const value = read(get);
    return typeof value === "string" ? value : "something that cannot be shown was thrown";
  }

  // --- progress ----------------------------------------------------------------------------

  // Reports of one call that wait for the end of the page's current job. The first goes at
  // once; those that a loop makes after it, without ever yielding, go together.
  let waitingFor = "";
  let waiting = "";
  let scheduled = false;

  /**
   * @param {string} callId
   * @param {{invalid: boolean, answered: boolean, late: boolean}} call
   * @param {string} name
   */
  function reporter(callId, call, name) {
    /** @param {any} [options] */
    return function reportProgress(options) {
      try {
        if (!apply(mapHas, running, [callId])) {
          if (call.answered && !call.late) {
            call.late = true;
            apply(warn, console, ["OpenTabs: reported progress after its end:", name]);
          }
          return;
        }
        const report = toReport(options, call);
        if (!scheduled) {
          tell(`p${callId}${report}`);
          scheduled = true;
          flushSoon();
        } else if (waitingFor === callId) {
          waiting += `,${report}`;
        } else {
          flush();
          waitingFor = callId;
          waiting = report;
        }
      } catch {
        // Fire and forget: no fault of a report may reach the tool.
      }
    };
  }

  async function flushSoon() {
    await null;
    flush();
    scheduled = false;
  }

  function flush() {
    if (waitingFor !== "") {
      const text = `p${waitingFor}${waiting}`;
      waitingFor = "";
      waiting = "";
      tell(text);
    }
  }

  /**
   * @param {any} options whatever a tool passed: a getter of it may throw
   * @param {{invalid: boolean}} call
   * @returns {string} JSON; what is not valid is left out, and still proves life
   */
  function toReport(options, call) {
    const given = options ?? nothing;
    const progress = read(() => given.progress);
    const total = read(() => given.total);
    const message = read(() => given.message);
    const isObject = typeof given === "object";
    const hasProgress = isFiniteNumber(progress);
    const hasTotal = isFiniteNumber(total);
    const hasMessage = typeof message === "string";
    const isValid =
      isObject &&
      (hasProgress || progress === undefined) &&
      (hasTotal || total === undefined) &&
      (hasMessage ? message.length <= MESSAGE_MAX : message === undefined);
    if (!isValid && !call.invalid) {
      call.invalid = true;
      apply(warn, console, [
        "OpenTabs: reportProgress() takes {progress?: number, total?: number, message?: string of 4096 characters at most}, not",
        options,
      ]);
    }
    // The relay reads these with clean builtins; a missing value is left to it.
    return `{"progress":${hasProgress ? progress : null},"total":${hasTotal ? total : null},"message":${
      hasMessage ? stringify(slice(message, 0, MESSAGE_MAX)) : null
    }}`;
  }

  const nothing = freeze({
    __proto__: null,
    progress: undefined,
    total: undefined,
    message: undefined,
  });

  // --- adapters ----------------------------------------------------------------------------

  /** @param {string} nonce with which plugins sign their logs and readiness changes */
  function prepare(nonce) {
    const global = /** @type {any} */ (page);
    try {
      global.__openTabs ??= {};
      global.__openTabs.adapters ??= {};
      global.__openTabs._logNonce = nonce;
      global.__openTabs._readinessNonce = nonce;
    } catch {
      // Frozen by an earlier adapter, which brings its own copy along.
    }
  }

  /**
   * An adapter's file has run: look it up, for the next file may replace the whole registry,
   * and keep the adapter itself.
   * @param {string} name
   */
  function adopt(name) {
    const adapter = read(() => /** @type {any} */ (page).__openTabs.adapters[name]);
    const tools = read(() => collect(adapter));
    if (tools === undefined) {
      apply(mapDelete, plugins, [name]);
      tellReadiness(name, "unavailable", "its adapter did not register itself in the page");
      return;
    }
    const plugin = { tools, adapter, probing: false, timed: false, wait: FIRST_PROBE, state: "" };
    apply(mapSet, plugins, [name, plugin]);
    probe(name);
  }

  /** @param {any} adapter */
  function collect(adapter) {
    /** @type {Map<string, {tool: any, handle: Function}>} */
    const tools = new MapConstructor();
    const list = adapter.tools;
    for (let i = 0; i < list.length; i++) {
      const tool = list[i];
      apply(mapSet, tools, [tool.name, { tool, handle: tool.handle }]);
    }
    return tools;
  }

  /**
   * Asks a plugin whether it is ready, and again after a while: it may sign in or out. One that
   * never answers is not asked twice, and holds up nobody.
   * @param {string} name
   */
  async function probe(name) {
    const plugin = apply(mapGet, plugins, [name]);
    if (plugin === undefined || plugin.probing) {
      return;
    }
    plugin.probing = true;
    let isReady = false;
    let reason = "isReady() is not true";
    try {
      isReady = (await plugin.adapter.isReady()) === true;
    } catch (error) {
      reason = text(() => `isReady() threw: ${error}`);
    }
    plugin.probing = false;
    if (apply(mapGet, plugins, [name]) !== plugin) {
      return; // a newer adapter took its place
    }
    const state = isReady ? "ready" : reason;
    if (state !== plugin.state) {
      plugin.state = state;
      tellReadiness(name, isReady ? "ready" : "unavailable", isReady ? undefined : reason);
    }
    plugin.wait = isReady || plugin.wait * 2 > LAST_PROBE ? LAST_PROBE : plugin.wait * 2;
    if (!plugin.timed) {
      plugin.timed = true;
      apply(later, page, [
        () => {
          plugin.timed = false;
          probe(name);
        },
        plugin.wait,
      ]);
    }
  }

  /**
   * @param {string} plugin
   * @param {"ready" | "unavailable"} readiness
   * @param {string | undefined} reason
   */
  function tellReadiness(plugin, readiness, reason) {
    tell(`s${stringify({ __proto__: null, plugin, readiness, reason })}`);
  }

  function now() {
    return timeOrigin + apply(performanceNow, clock, []);
  }

  listen("opentabs:offer", accept);
  emit("opentabs:ready", "");
})();
