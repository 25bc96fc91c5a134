/**
 * The runtime: runs in the page (MAIN world), keeps the plugins' adapters, and runs their tools.
 *
 * Pages are hostile. Although this script runs before the page's own, a page may have patched the
 * builtins of this world through the Window that it opened. So all builtins come from a realm that
 * the relay created and no page has touched, and none is looked up again: no method call on a
 * value, no iteration, no property that may be missing, because each can run the page's code.
 * Messages are events on a node that only relay and runtime have a reference to. Tool code starts
 * after an `await`, when `window.event` no longer shows our event.
 *
 * The values that tools receive (input, context, signal) belong to the page's own realm, as tools
 * expect.
 */
(() => {
  // Error.prepareStackTrace gives pages each sloppy function on the stack, and so its arguments.
  // biome-ignore lint/suspicious/noRedundantUseStrict: Chrome runs this as a classic script
  "use strict";
  // @ts-expect-error a script's `this` is the Window, which no page can redefine here
  const page = /** @type {any} */ (this);
  const ID = 32; // hex digits of a call id
  const MESSAGE_MAX = 4096; // characters of a progress message
  const READY = "ready";
  const PAGE_TOOLS = "@page"; // stands for the page's own tools, where plugins have a name
  const STACK_MAX = 8000; // characters
  const CAUSES_MAX = 5; // of one error
  const SHOWN_MAX = 1000; // characters of an object that was thrown
  const PATH_MAX = 500; // characters of a path within a result
  const TYPE_MAX = 100; // characters of a type's name
  const LISTED_WITHIN = 1000; // ms; in which the server's list follows a page's own tools
  const FIRST_PROBE = 1000; // ms; doubled before each further readiness check, until LAST_PROBE
  const LAST_PROBE = 30_000;
  const ANSWER_WITHIN = 6000; // ms that calls wait for isReady(); many plugins poll for 5 s
  const SLOW = 50; // ms; an answer that takes longer is cached instead of asked for at each call
  const TRUSTED = 10_000; // ms for which such an answer is cached

  const { realm, given } = findRealm();
  const { apply, getPrototypeOf } = realm.Reflect;
  const { parse, stringify } = realm.JSON;
  const { defineProperty, freeze, hasOwn, keys: keysOf } = realm.Object;
  const { toString: toTag } = realm.Object.prototype;
  const { isArray } = realm.Array;
  const { isFinite: isFiniteNumber } = realm.Number;
  const MapConstructor = realm.Map;
  const {
    get: mapGet,
    set: mapSet,
    delete: mapDelete,
    clear: mapClear,
    has: mapHas,
    forEach: mapForEach,
  } = realm.Map.prototype;
  const { forEach: setForEach } = realm.Set.prototype;
  const { indexOf, slice: stringSlice } = realm.String.prototype;
  const { addEventListener, removeEventListener, dispatchEvent } = realm.EventTarget.prototype;
  const { preventDefault } = realm.Event.prototype;
  const isPreventedOf = getter(realm.Event.prototype, "defaultPrevented");
  const EventConstructor = realm.CustomEvent;
  const detailOf = getter(realm.CustomEvent.prototype, "detail");
  const relatedTargetOf = getter(realm.FocusEvent.prototype, "relatedTarget");
  const { abort } = realm.AbortController.prototype;
  const signalOf = getter(realm.AbortController.prototype, "signal");
  const { now: performanceNow } = realm.Performance.prototype;
  const { performance: clock } = realm;
  const { timeOrigin } = clock;

  const objectPrototype = /** @type {object} */ (getPrototypeOf({}));
  const arrayPrototype = /** @type {object} */ (getPrototypeOf([]));
  // The page's own constructors, for values that tools see. Each may be missing, or throw.
  const PageAbortController = attempt(() => page.AbortController);
  const PageException = attempt(() => page.DOMException);
  const mapPrototype = attempt(() => page.Map.prototype);
  const setPrototype = attempt(() => page.Set.prototype);
  const pageSetTimeout = attempt(() => page.setTimeout);
  const pageClearTimeout = attempt(() => page.clearTimeout);
  const pageConsole = attempt(() => page.console);
  const warn = attempt(() => pageConsole.warn);
  const debug = attempt(() => pageConsole.debug);
  const doc = page.document;

  /**
   * @param {object} prototype
   * @param {string} name
   * @returns {(this: object) => any}
   */
  function getter(prototype, name) {
    return /** @type {any} */ (realm.Object.getOwnPropertyDescriptor(prototype, name)).get;
  }

  /**
   * The realm that the relay created in a frame of this document, and the node in it. Without a
   * frame, the realm is the page's own, and the channel is not protected.
   * @returns {{realm: typeof globalThis, given: EventTarget | null}}
   */
  function findRealm() {
    for (let i = 0; page[i] !== undefined; i++) {
      try {
        const node = page[i].document.documentElement.lastChild;
        if (node.localName === "opentabs") {
          return { realm: page[i], given: node };
        }
      } catch {
        // A frame of another origin, in a document that was open before the extension was loaded.
      }
    }
    return { realm: page, given: null };
  }

  /**
   * @typedef {object} Plugin
   * @property {(tool: string) => Tool | undefined} find
   * @property {any} adapter
   * @property {boolean} isAsked whether a call of isReady() is pending
   * @property {Map<object, () => void>} waiting callbacks for its answer, or for its timeout
   * @property {boolean} isSlow whether the last answer was slow
   * @property {number} asked when isReady() was last called, in ms
   * @property {number} answered when it last answered, in ms
   * @property {boolean} timed whether the next readiness check is scheduled
   * @property {number} wait ms until the next readiness check
   * @property {string} state READY, or the reason it is not ready, as last reported; at first empty
   * @property {boolean} isDue whether its next answer is reported even if it is the same
   */

  /**
   * @typedef {object} Tool
   * @property {any} tool
   * @property {Function} handle
   * @property {boolean} deliversLogs whether its result is sent only after its logs have arrived
   * @property {(value: unknown) => string} [toJson] how its result is sent, if not as a plugin's
   * @property {string} [name] its name for users, if not the one on the wire
   */

  /**
   * @typedef {object} Call
   * @property {any} controller undefined until its tool starts
   * @property {string} name of its tool, for developers
   * @property {boolean} trace
   * @property {boolean} hasEnded whether its result or error was sent
   * @property {boolean} hasWarnedOfInvalid whether an invalid report of it was noted
   * @property {boolean} hasWarnedOfLate whether a report after its end was noted
   */

  /** @type {Map<string, Plugin>} */
  const plugins = new MapConstructor();
  /** @type {Map<string, Call>} by their ids */
  const running = new MapConstructor();

  /** The page's own tools; undefined if they are not served. See `extension/content/page_tools.js`. */
  const pageTools = takePageTools();

  /** @returns {{find(tool: string): Tool | undefined, start(): void, isReady(): any} | undefined} */
  function takePageTools() {
    const place = /** @type {any} */ (given ?? page);
    const install = attempt(() => place.openTabsPageTools);
    if (typeof install === "function") {
      attempt(() => delete place.openTabsPageTools); // a page may have locked it
    }
    return attempt(() => install(freeze({ __proto__: null, realm, send, getter, attempt })));
  }

  /** @type {EventTarget} the node that only relay and runtime have a reference to */
  let node;

  // --- the channel ---

  /** @param {EventTarget} shared */
  function join(shared) {
    node = shared;
    apply(addEventListener, node, ["down", handleDown]);
  }

  /** @param {FocusEvent} event the relay's offer of the node, if it could not create a realm */
  function accept(event) {
    apply(removeEventListener, doc, ["opentabs:offer", accept]);
    join(apply(relatedTargetOf, event, []));
  }

  /** @param {CustomEvent} event */
  function handleDown(event) {
    if (apply(isPreventedOf, event, [])) {
      return; // another runtime received it: overlapping lists of plugins may inject two
    }
    apply(preventDefault, event, []); // signals that it was received
    const detail = apply(detailOf, event, []);
    const end = apply(indexOf, detail, [" "]);
    handleMessage(slice(detail, 0, end), slice(detail, end + 1));
  }

  /**
   * @param {string} kind see "Between relay and page" in docs/protocol.md
   * @param {string} text
   */
  function send(kind, text) {
    const init = /** @type {any} */ ({ __proto__: null, detail: `${kind} ${text}` });
    apply(dispatchEvent, node, [new EventConstructor("up", init)]);
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

  /**
   * @param {string} kind
   * @param {string} text
   */
  async function handleMessage(kind, text) {
    await null;
    switch (kind) {
      case "tool.dispatch":
        run(parse(text).params);
        break;
      case "tool.cancel":
        cancel(slice(text, 0, ID), slice(text, ID));
        break;
      case "adopt":
        adopt(text);
        break;
      case "drop": // its running calls continue
        apply(mapDelete, plugins, [text]);
        break;
      case "check":
        probe(text);
        break;
      case "ask":
        answerWith(text);
        break;
      case "nonce":
        prepare(text);
        break;
    }
  }

  // --- calls ---

  /** @param {{callId: string, plugin: string, tool: string, input: object, trace: boolean}} params */
  async function run(params) {
    const { callId, plugin, tool, input, trace } = params;
    if (trace) {
      send("tool.stamps", `${callId}{"runtime.down":${now()}}`); // now: a tool may hang and never answer
    }
    const known = apply(mapGet, plugins, [plugin]);
    const entry = known?.find(tool);
    if (entry === undefined && plugin === PAGE_TOOLS && known !== undefined) {
      const message =
        "The page was left or reloaded, or no longer offers this tool, so it did not run. Call again in a second, in case it offers it then.";
      refuse(callId, "PAGE_TOOL_GONE", message, true, LISTED_WITHIN);
      return;
    }
    if (entry === undefined) {
      const what = known === undefined ? `plugin ${plugin}` : `tool ${tool} of plugin ${plugin}`;
      const message = `The page has no ${what}. Reload it, and rebuild the plugin if that does not help.`;
      refuse(callId, "PLUGIN_NOT_LOADED", message);
      return;
    }
    const name = `${plugin} ${entry.name ?? tool}`;
    /** @type {Call} */
    const call = {
      controller: undefined,
      name,
      trace,
      hasEnded: false,
      hasWarnedOfInvalid: false,
      hasWarnedOfLate: false,
    };
    apply(mapSet, running, [callId, call]);
    const isReady = await isReadyNow(plugin, known);
    if (apply(mapGet, plugins, [plugin]) !== known) {
      // removed or replaced in the meantime
      if (apply(mapDelete, running, [callId])) {
        run(params);
      }
      return;
    }
    if (!isReady) {
      if (apply(mapDelete, running, [callId])) {
        const ask = "Ask the user to sign in there, and call again when they have.";
        const message = `The plugin ${plugin} is not ready in this page: ${known.state}. ${ask}`;
        refuse(callId, "TAB_NOT_READY", message, false);
      }
      return;
    }
    if (!apply(mapHas, running, [callId])) {
      return; // cancelled in the meantime
    }
    let kind = "tool.result";
    let answer;
    let thrown;
    try {
      call.controller = new PageAbortController();
      const context = freeze({
        reportProgress: reporter(callId, call),
        signal: apply(signalOf, call.controller, []),
      });
      const args = [realm === page ? input : toPageRealm(input), context];
      const value = await apply(entry.handle, entry.tool, args);
      answer = (entry.toJson ?? toJson)(value);
    } catch (error) {
      kind = "tool.error";
      answer = describe(error);
      thrown = error;
    }
    // No caller waits for the result of a cancelled call.
    if (apply(mapDelete, running, [callId])) {
      call.hasEnded = true;
      flush();
      if (trace) {
        send("tool.stamps", `${callId}{"runtime.up":${now()}}`);
      }
      if (!entry.deliversLogs) {
        send("logged", callId);
      }
      send(kind, `${callId}${answer}`);
    } else {
      if (trace) {
        note("OpenTabs: stopped after its cancellation:", name);
      }
      sendStopped(callId, true, kind === "tool.error" ? (stackOf(thrown) ?? "") : undefined);
    }
  }

  /**
   * Sends how a tool ended whose call was cancelled.
   * @param {string} callId
   * @param {boolean} started
   * @param {string} [stack] of what it threw; undefined if it returned
   */
  function sendStopped(callId, started, stack) {
    send("tool.stopped", `${callId}${stringify({ __proto__: null, started, stack })}`);
  }

  /**
   * Writes to the page's console, for the test kit, that a tool was cancelled or has stopped.
   * @param {string} what
   * @param {string} name
   */
  function note(what, name) {
    attempt(() => apply(debug, pageConsole, [what, name]));
  }

  /**
   * Ends a call whose tool has not been started.
   * @param {string} callId
   * @param {string} code
   * @param {string} message
   * @param {boolean} [retryable]
   * @param {number | null} [retryAfterMs]
   */
  function refuse(callId, code, message, retryable = true, retryAfterMs = null) {
    const error = {
      __proto__: null,
      code,
      message,
      category: "tab",
      retryable,
      retryAfterMs,
      started: false,
    };
    send("tool.error", `${callId}${stringify(error)}`);
  }

  /**
   * @param {string} callId
   * @param {string} reason
   */
  function cancel(callId, reason) {
    const call = apply(mapGet, running, [callId]);
    if (call !== undefined) {
      apply(mapDelete, running, [callId]);
      if (call.controller === undefined) {
        sendStopped(callId, false);
        return;
      }
      if (call.trace) {
        note("OpenTabs: cancelled while it ran:", call.name);
      }
      // In a page that broke DOMException, the tool is aborted without this reason.
      const why = attempt(() => new PageException(reason, "AbortError"));
      apply(abort, call.controller, [why]);
    }
  }

  /**
   * Copies a JSON value into objects of the page's own realm. Each object is first spread, and then
   * only existing properties are set, so no setter of the page is called.
   * @param {any} value
   * @returns {any}
   */
  function toPageRealm(value) {
    if (typeof value !== "object" || value === null) {
      return value;
    }
    const copy = isArray(value) ? [...value] : { ...value };
    const keys = keysOf(value);
    for (let i = 0; i < keys.length; i++) {
      const key = /** @type {string} */ (keys[i]);
      if (typeof copy[key] === "object") {
        copy[key] = toPageRealm(copy[key]);
      }
    }
    return copy;
  }

  // --- results ---

  const replaceInError = replacer((_problem, value) => value);
  const replaceInResult = replacer((problem) => {
    throw { __proto__: null, message: `it holds a value that is ${problem}` };
  });

  /**
   * Converts a result to JSON. Unlike JSON.stringify, it converts `undefined` to null, a Map to an
   * object and a Set to an array, and refuses what would lose its content: objects of the platform
   * that would become `{}`, and Maps with keys that are not names.
   * @param {unknown} value
   * @returns {string}
   */
  function toJson(value) {
    try {
      return stringify(value, replaceInResult) ?? "null";
    } catch (error) {
      const why = attempt(() => locate(value)) ?? text(() => /** @type {Error} */ (error).message);
      throw {
        __proto__: null,
        code: "RESULT_NOT_SERIALIZABLE",
        message: `The tool's result cannot be sent as JSON: ${why}. Return plain objects, arrays, strings, numbers, booleans and null.`,
      };
    }
  }

  /**
   * Finds the first value in a result that JSON cannot represent, and says where it is. It reads the
   * result again: keeping track of the path is too slow for all results.
   * @param {unknown} value
   * @returns {string | undefined} undefined if there is none
   */
  function locate(value) {
    /** @type {Map<number, unknown>} the objects around a value, by their depth */
    const above = new MapConstructor();
    /** @type {Map<number, string>} their paths */
    const paths = new MapConstructor();
    let depth = 0;
    let path = "";
    let found;
    const replace = replacer((problem) => {
      found = `${slice(path, 0, PATH_MAX)} is ${problem}`;
      throw null;
    });
    /**
     * @this {any}
     * @param {string} key
     * @param {unknown} given
     */
    function follow(key, given) {
      while (depth > 0 && apply(mapGet, above, [depth]) !== this) {
        depth--;
      }
      const step = isArray(this) ? `[${key}]` : `.${key}`;
      path = depth === 0 ? "$" : `${apply(mapGet, paths, [depth])}${step}`;
      const replaced = apply(replace, this, [key, given]);
      depth++;
      apply(mapSet, above, [depth, replaced]);
      apply(mapSet, paths, [depth, path]);
      return replaced;
    }
    attempt(() => stringify(value, follow));
    return found;
  }

  /**
   * @param {string} type
   * @param {any} value
   */
  function adviceOn(type, value) {
    switch (type) {
      case "Promise":
        return "; await it";
      case "Response":
      case "Request":
        return "; return await its json() or text()";
      case "Blob":
      case "File":
        return "; return await its text()";
      case "Headers":
      case "FormData":
      case "URLSearchParams":
        return "; return Object.fromEntries() of it";
      case "Error":
      case "DOMException":
        return "; throw it, or return its message";
    }
    return "nodeType" in value ? "; return its text or attributes" : "";
  }

  /**
   * @param {(problem: string, value: unknown) => unknown} onProblem called with what a value is, for
   *     one that JSON cannot represent; returns what to put in its place
   */
  function replacer(onProblem) {
    /**
     * @this {any} the object or array that holds the value
     * @param {string} key
     * @param {unknown} given the value, or the result of its toJSON()
     */
    return function replace(key, given) {
      const value = isPatched() && !hasToJson(this[key]) ? this[key] : given;
      if (typeof value === "bigint") {
        return onProblem("a BigInt; return a number or a string", value);
      }
      if (typeof value !== "object" || value === null) {
        return value;
      }
      const prototype = getPrototypeOf(value);
      if (prototype === objectPrototype || prototype === arrayPrototype) {
        return value;
      }
      if (inherits(prototype, mapPrototype)) {
        const object = /** @type {any} */ ({ __proto__: null });
        let problem = "";
        apply(mapForEach, value, [
          (/** @type {unknown} */ item, /** @type {any} */ name) => {
            const kind = name === null ? "null" : typeof name;
            if (kind === "object" || kind === "function" || kind === "symbol") {
              problem = "a key that is not a string or a number";
            } else if (hasOwn(object, name)) {
              problem = `two keys "${slice(`${name}`, 0, TYPE_MAX)}"`;
            } else {
              object[name] = item;
            }
          },
        ]);
        return problem === ""
          ? object
          : onProblem(`a Map with ${problem}; return an array of its entries`, value);
      }
      if (inherits(prototype, setPrototype)) {
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
      const type = emptyType(value);
      if (type === undefined) {
        return value;
      }
      const what = `of type ${slice(type, 0, TYPE_MAX)}, which JSON turns into {}`;
      return onProblem(`${what}${adviceOn(type, value)}`, value);
    };
  }

  /**
   * Returns the type of an object of the platform that has no members for JSON, such as a Response.
   * Not of an empty list or dictionary, nor of an instance of a page's class, unless that has a tag
   * (`Symbol.toStringTag`): those may be empty.
   * @param {object} value
   * @returns {string | undefined} undefined for any other object
   */
  function emptyType(value) {
    if (keysOf(value).length > 0 || ("length" in value && !("nodeType" in value))) {
      return undefined;
    }
    const type = slice(apply(toTag, value, []), 8, -1); // of "[object Response]"
    switch (type) {
      case "Object":
      case "Number":
      case "Boolean":
      case "DOMStringMap":
        return undefined;
    }
    return type;
  }

  /**
   * @param {any} prototype of a value
   * @param {object | undefined} wanted
   */
  function inherits(prototype, wanted) {
    for (let each = prototype; each !== null; each = getPrototypeOf(each)) {
      if (each === wanted) {
        return true;
      }
    }
    return false;
  }

  /** Whether the page has defined a toJSON() that every object inherits. */
  function isPatched() {
    return hasOwn(objectPrototype, "toJSON") || hasOwn(arrayPrototype, "toJSON");
  }

  /**
   * Whether a value or its class has its own toJSON().
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

  // --- errors ---

  /**
   * Converts a thrown value to the fields of a `ToolError`. Anything can be thrown, including
   * getters and proxies.
   * @param {unknown} thrown
   * @returns {string}
   */
  function describe(thrown) {
    const error = /** @type {any} */ (
      (typeof thrown === "object" && thrown !== null) || typeof thrown === "function" ? thrown : {}
    );
    const code = attempt(() => error.code);
    const message = attempt(() => error.message);
    const isToolError = typeof code === "string" && code !== "";
    const category = isToolError ? attempt(() => error.category) : undefined;
    const retryAfterMs = isToolError ? attempt(() => error.retryAfterMs) : undefined;
    const instead =
      (message === "" ? causeOf(error) : undefined) ?? thrown ?? `${thrown} was thrown`;
    return stringify({
      __proto__: null,
      code: isToolError ? slice(code, 0, 256) : "INTERNAL_ERROR",
      stack: stackOf(error),
      message: typeof message === "string" && message !== "" ? message : show(instead),
      category:
        typeof category === "string" && category !== "" ? slice(category, 0, 256) : undefined,
      retryable: isToolError && attempt(() => error.retryable) === true,
      retryAfterMs:
        isFiniteNumber(retryAfterMs) && /** @type {number} */ (retryAfterMs) >= 0
          ? retryAfterMs
          : undefined,
    });
  }

  /**
   * Returns the stack of an error, then those of its causes. It is for developers; a cause may hold
   * what the error's author did not mean to tell its caller.
   * @param {any} error
   * @returns {string | undefined} undefined if it has neither
   */
  function stackOf(error) {
    const own = attempt(() => error.stack);
    let stack = typeof own === "string" ? slice(own, 0, STACK_MAX) : "";
    const seen = new MapConstructor();
    for (let i = 0, each = error; i < CAUSES_MAX && stack.length < STACK_MAX; i++) {
      apply(mapSet, seen, [each, true]);
      each = causeOf(each);
      if (each === undefined || apply(mapHas, seen, [each])) {
        break;
      }
      stack += `${stack === "" ? "" : "\n"}[cause]: ${showCause(each)}`;
    }
    return stack === "" ? undefined : slice(stack, 0, STACK_MAX);
  }

  /** @param {any} error */
  function causeOf(error) {
    return attempt(() => error.cause);
  }

  /** @param {any} cause */
  function showCause(cause) {
    const stack = attempt(() => cause.stack);
    return slice(typeof stack === "string" && stack !== "" ? stack : show(cause), 0, STACK_MAX);
  }

  /**
   * Shows a value that has no message, such as the body of a response that a site's code throws.
   * @param {unknown} thrown
   */
  function show(thrown) {
    const shown = text(() => `${thrown}`);
    const json =
      shown === "[object Object]" ? attempt(() => stringify(thrown, replaceInError)) : "{}";
    return typeof json === "string" && json !== "{}" ? slice(json, 0, SHOWN_MAX) : shown;
  }

  /**
   * @param {() => any} run
   * @returns {any} undefined if it throws
   */
  function attempt(run) {
    try {
      return run();
    } catch {
      return undefined;
    }
  }

  /** @param {() => string} get */
  function text(get) {
    const value = attempt(get);
    return typeof value === "string" ? value : "a value that cannot be shown was thrown";
  }

  // --- progress ---

  // Reports of one call that wait for the end of the page's current job. The first is sent at once;
  // later ones from a loop that never yields are sent together.
  let queuedCall = "";
  let queuedReports = "";
  let isFlushDue = false;

  /**
   * @param {string} callId
   * @param {Call} call
   */
  function reporter(callId, call) {
    /** @param {any} [options] */
    return function reportProgress(options) {
      try {
        if (!apply(mapHas, running, [callId])) {
          if (call.hasEnded && !call.hasWarnedOfLate) {
            call.hasWarnedOfLate = true;
            apply(warn, pageConsole, ["OpenTabs: reported progress after its end:", call.name]);
          }
          return;
        }
        const report = toReport(options, call);
        if (!isFlushDue) {
          send("tool.progress", `${callId}${report}`);
          isFlushDue = true;
          flushSoon();
        } else if (queuedCall === callId) {
          queuedReports += `,${report}`;
        } else {
          flush();
          queuedCall = callId;
          queuedReports = report;
        }
      } catch {
        // Fire and forget: no error of a report may reach the tool.
      }
    };
  }

  async function flushSoon() {
    await null;
    flush();
    isFlushDue = false;
  }

  function flush() {
    if (queuedCall !== "") {
      const text = `${queuedCall}${queuedReports}`;
      queuedCall = "";
      queuedReports = "";
      send("tool.progress", text);
    }
  }

  /**
   * @param {any} options whatever a tool passed; its getters may throw
   * @param {Call} call
   * @returns {string} JSON without invalid members; even an empty report counts as a sign of life
   */
  function toReport(options, call) {
    const given = options ?? nothing;
    const progress = attempt(() => given.progress);
    const total = attempt(() => given.total);
    const message = attempt(() => given.message);
    const isObject = typeof given === "object";
    const hasProgress = isFiniteNumber(progress);
    const hasTotal = isFiniteNumber(total);
    const hasMessage = typeof message === "string";
    const isValid =
      isObject &&
      (hasProgress || progress === undefined) &&
      (hasTotal || total === undefined) &&
      (hasMessage ? message.length <= MESSAGE_MAX : message === undefined);
    if (!isValid && !call.hasWarnedOfInvalid) {
      call.hasWarnedOfInvalid = true;
      apply(warn, pageConsole, [
        `OpenTabs: reported progress that is not valid: ${call.name}\nreportProgress() takes {progress?: number, total?: number, message?: string of at most ${MESSAGE_MAX} characters}, not`,
        options,
      ]);
    }
    // The relay parses these with clean builtins, and handles missing values.
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

  // --- adapters ---

  /** @param {string} nonce with which plugins sign their logs and readiness changes */
  function prepare(nonce) {
    pageTools?.start();
    try {
      page.__openTabs ??= {};
      page.__openTabs.adapters ??= {};
      page.__openTabs._logNonce = nonce;
      page.__openTabs._readinessNonce = nonce;
    } catch {
      // Frozen by an earlier adapter, which has its own copy.
    }
  }

  /**
   * An adapter's file has run: looks up the adapter and keeps it, because the next file may replace
   * the whole registry.
   * @param {string} name
   */
  function adopt(name) {
    const adapter = name === PAGE_TOOLS ? pageTools : attempt(() => page.__openTabs.adapters[name]);
    const find = name === PAGE_TOOLS ? pageTools?.find : attempt(() => collect(adapter));
    if (find === undefined) {
      apply(mapDelete, plugins, [name]);
      reportMissing(name);
      return;
    }
    /** @type {Plugin} */
    const plugin = {
      find,
      adapter,
      isAsked: false,
      waiting: new MapConstructor(),
      isSlow: false,
      asked: 0,
      answered: 0,
      timed: false,
      wait: FIRST_PROBE,
      state: "",
      isDue: false,
    };
    apply(mapSet, plugins, [name, plugin]);
    probe(name);
  }

  /**
   * @param {any} adapter
   * @returns {(tool: string) => Tool | undefined}
   */
  function collect(adapter) {
    /** @type {Map<string, Tool>} */
    const tools = new MapConstructor();
    const list = adapter.tools;
    const deliversLogs = adapter.deliversLogs === true;
    for (let i = 0; i < list.length; i++) {
      const tool = list[i];
      // Without a prototype: the page could add a `toJson` to that of all objects.
      const entry = { __proto__: null, tool, handle: tool.handle, deliversLogs };
      apply(mapSet, tools, [tool.name, entry]);
    }
    return (tool) => apply(mapGet, tools, [tool]);
  }

  // --- readiness ---

  /**
   * Whether a plugin is ready: its answer now or, if that takes too long, its last answer.
   * @param {string} name
   * @param {Plugin} plugin
   */
  async function isReadyNow(name, plugin) {
    if (!plugin.isSlow || now() - plugin.answered > TRUSTED) {
      probe(name);
      await {
        __proto__: null,
        // biome-ignore lint/suspicious/noThenProperty: the page may have patched promises
        then(/** @type {() => void} */ resolve) {
          if (plugin.isAsked && now() - plugin.asked < ANSWER_WITHIN) {
            apply(mapSet, plugin.waiting, [resolve, resolve]);
          } else {
            resolve();
          }
        },
      };
    }
    return plugin.state === READY || plugin.state === "";
  }

  /**
   * Reports a plugin's answer, even if it is the same as before.
   * @param {string} name
   */
  function answerWith(name) {
    const plugin = apply(mapGet, plugins, [name]);
    if (plugin === undefined) {
      reportMissing(name);
    } else {
      plugin.isDue = true;
      probe(name);
    }
  }

  /**
   * Asks a plugin whether it is ready, and again after a while, because users sign in and out. A
   * plugin that never answers is not asked twice.
   * @param {string} name
   */
  async function probe(name) {
    const plugin = apply(mapGet, plugins, [name]);
    if (plugin === undefined || plugin.isAsked) {
      return;
    }
    plugin.isAsked = true;
    plugin.asked = now();
    const timer = attempt(() =>
      apply(pageSetTimeout, page, [() => resumeWaiting(plugin), ANSWER_WITHIN]),
    );
    let isReady = false;
    let reason = "isReady() is not true";
    try {
      isReady = (await plugin.adapter.isReady()) === true;
    } catch (error) {
      reason = text(() => `isReady() threw: ${error}`);
    }
    plugin.isAsked = false;
    plugin.answered = now();
    plugin.isSlow = plugin.answered - plugin.asked > SLOW;
    handleAnswer(name, plugin, isReady ? READY : reason);
    resumeWaiting(plugin);
    attempt(() => apply(pageClearTimeout, page, [timer]));
  }

  /**
   * Lets the calls that wait for an answer continue.
   * @param {Plugin} plugin
   */
  function resumeWaiting({ waiting }) {
    apply(mapForEach, waiting, [(/** @type {() => void} */ resolve) => resolve()]);
    apply(mapClear, waiting, []);
  }

  /**
   * @param {string} name
   * @param {Plugin} plugin
   * @param {string} state READY, or the reason it is not ready
   */
  function handleAnswer(name, plugin, state) {
    if (apply(mapGet, plugins, [name]) !== plugin) {
      return; // a newer adapter replaced it
    }
    const isReady = state === READY;
    if (state !== plugin.state || plugin.isDue) {
      plugin.state = state;
      plugin.isDue = false;
      reportReadiness(name, isReady ? "ready" : "unavailable", isReady ? undefined : state);
    }
    plugin.wait = isReady || plugin.wait * 2 > LAST_PROBE ? LAST_PROBE : plugin.wait * 2;
    if (!plugin.timed) {
      plugin.timed = true;
      const probeAgain = () => {
        plugin.timed = false;
        probe(name);
      };
      attempt(() => apply(pageSetTimeout, page, [probeAgain, plugin.wait]));
    }
  }

  /** @param {string} name of a plugin that the page does not have */
  function reportMissing(name) {
    reportReadiness(name, "missing", "its adapter did not register itself in the page");
  }

  /**
   * @param {string} plugin
   * @param {"ready" | "unavailable" | "missing"} readiness
   * @param {string | undefined} reason
   */
  function reportReadiness(plugin, readiness, reason) {
    send("readiness", stringify({ __proto__: null, plugin, readiness, reason }));
  }

  function now() {
    return timeOrigin + apply(performanceNow, clock, []);
  }

  if (given !== null) {
    join(given);
  } else {
    apply(addEventListener, doc, ["opentabs:offer", accept]);
    apply(dispatchEvent, doc, [new EventConstructor("opentabs:ready")]); // for an earlier relay
  }
})();
