/**
 * The tools that a page registers itself (WebMCP), as tools of the runtime.
 *
 * Runs in the MAIN world before the runtime, which calls `install`. From then on it keeps what the
 * page passes to `registerTool`, so that calls run that function itself: with progress, and with its
 * real errors, neither of which `executeTool` has. Forms, and tools that were registered before this
 * script ran, are called by `executeTool`.
 *
 * The page is hostile here too, but all it can do is lie about its own tools: nothing of another
 * call, plugin or page passes through this file. What it may cost is bounded.
 */
(() => {
  // biome-ignore lint/suspicious/noRedundantUseStrict: a classic script; see runtime.js
  "use strict";
  // @ts-expect-error a script's `this` is the Window, which no page can redefine here
  const page = /** @type {any} */ (this);
  const MOST = 100; // tools of a page; see PageToolsParams in opentabs_py/core/protocol.py
  const MOST_KEPT = 1000; // registrations
  const LONGEST_NAME = 128;
  const LONGEST_TITLE = 200;
  const LONGEST_TEXT = 4000;
  const LONGEST_SCHEMA = 16 * 1024; // characters of JSON
  const LONGEST_LIST = 256 * 1024;
  const DEEPEST = 64; // levels of a schema; the server reads no more than a few hundred
  const NONE = '{"tools":[],"leftOut":0}';

  /**
   * @typedef {object} Entry a tool, as the runtime calls it
   * @property {undefined} tool its `this`
   * @property {Function} handle
   * @property {boolean} deliversLogs
   * @property {(value: unknown) => string} toJson
   * @property {string} name
   */
  /** @typedef {{id: number, execute: Function, signal: any}} Registration */

  /**
   * @typedef {object} Host the runtime's side
   * @property {typeof globalThis} realm
   * @property {(kind: string, text: string) => void} send
   * @property {(prototype: object, name: string) => (this: object) => any} getter
   * @property {(run: () => any) => any} attempt returns undefined if it throws
   */

  /** @param {Host} host */
  function install({ realm, send, getter, attempt }) {
    const { apply, getPrototypeOf } = realm.Reflect;
    const { parse, stringify } = realm.JSON;
    const { defineProperty, getOwnPropertyDescriptor } = realm.Object;
    const ProxyConstructor = realm.Proxy;
    const MapConstructor = realm.Map;
    const { get, set, delete: remove, has } = realm.Map.prototype;
    const sizeOf = getter(realm.Map.prototype, "size");
    const { slice, charCodeAt } = realm.String.prototype;
    const { addEventListener, dispatchEvent } = realm.EventTarget.prototype;
    const abortedOf = getter(realm.AbortSignal.prototype, "aborted");
    const isFiniteNumber = realm.Number.isFinite;

    const context = attempt(() => page.document.modelContext);
    /** @type {Map<string, Registration>} what the page registered, by name */
    const registered = new MapConstructor();
    /** @type {Map<string, {id: number}>} tools without a function, by name */
    let declared = new MapConstructor();
    /** @type {Map<string, Entry>} what is listed, by id and name */
    let listed = new MapConstructor();
    /** @type {Map<string, unknown>} the last errors of forms, by their tools */
    const formErrors = new MapConstructor();
    let count = 0;
    let sent = "";
    let started = false;
    let reading = false;
    let stale = false;
    let loaded = false;

    if (typeof context !== "object" || context === null) {
      return { find: () => undefined, start: () => undefined, isReady: sendEmptyList };
    }
    const prototype = /** @type {any} */ (getPrototypeOf(context));
    const { getTools, executeTool } = prototype;
    const ActivatedEvent = attempt(() => page.ToolActivatedEvent);
    const CancelEvent = attempt(() => page.ToolCancelEvent);

    /**
     * @param {unknown} text
     * @param {number} most
     */
    function cut(text, most) {
      return typeof text === "string" ? apply(slice, text, [0, most]) : "";
    }

    /**
     * Whether JSON has too many levels; brackets in its texts count, too.
     * @param {string} json
     */
    function isDeep(json) {
      let depth = 0;
      for (let i = 0; i < json.length && depth <= DEEPEST; i++) {
        const code = apply(charCodeAt, json, [i]);
        if (code === 0x7b || code === 0x5b) {
          depth++;
        } else if (code === 0x7d || code === 0x5d) {
          depth--;
        }
      }
      return depth > DEEPEST;
    }

    /**
     * Replaces a function of the page's with one that calls it, and then `also` with its arguments
     * and its result. It looks like the original.
     * @param {any} holder
     * @param {string} name
     * @param {(self: any, args: any[], result: any) => void} also
     */
    function tap(holder, name, also) {
      const descriptor = getOwnPropertyDescriptor(holder, name);
      if (typeof descriptor?.value !== "function" || descriptor.configurable !== true) {
        return;
      }
      const value = new ProxyConstructor(descriptor.value, {
        // @ts-expect-error the page's Object.prototype must not add traps
        __proto__: null,
        apply(target, self, args) {
          const result = apply(target, self, args);
          also(self, args, result);
          return result;
        },
      });
      defineProperty(holder, name, {
        // @ts-expect-error nor attributes
        __proto__: null,
        value,
        writable: true,
        enumerable: descriptor.enumerable === true,
        configurable: true,
      });
    }

    // --- what is registered ---

    /**
     * @param {any} tool
     * @param {any} options
     * @param {Promise<unknown>} result
     */
    async function keep(tool, options, result) {
      const name = attempt(() => `${tool.name}`);
      const execute = attempt(() => tool.execute);
      if (name === undefined || typeof execute !== "function") {
        return;
      }
      const registration = { id: ++count, execute, signal: attempt(() => options.signal) };
      if (findRegistered(name) === undefined && apply(sizeOf, registered, []) < MOST_KEPT) {
        apply(set, registered, [name, registration]);
      }
      try {
        await result;
      } catch {
        if (apply(get, registered, [name]) === registration) {
          apply(remove, registered, [name]);
        }
        return;
      }
      if (apply(has, registered, [name]) || apply(sizeOf, registered, []) < MOST_KEPT) {
        apply(set, registered, [name, registration]);
      }
      refresh();
    }

    /**
     * @param {string} name
     * @returns {Registration | undefined} undefined also if the page has taken it away again
     */
    function findRegistered(name) {
      const registration = apply(get, registered, [name]);
      if (registration === undefined) {
        return undefined;
      }
      const isGone = attempt(() => apply(abortedOf, registration.signal, [])) === true;
      if (isGone) {
        apply(remove, registered, [name]);
      }
      return isGone ? undefined : registration;
    }

    /**
     * A form's own error, which `executeTool` does not pass on.
     * @param {any} event
     * @param {any} answer
     */
    async function keepFormError(event, answer) {
      const name = attempt(() => `${event.target.getAttribute("toolname")}`);
      try {
        await answer;
      } catch (error) {
        if (name !== undefined && apply(sizeOf, formErrors, []) < MOST) {
          apply(set, formErrors, [name, { error }]);
        }
      }
    }

    // --- the list ---

    /** Reads the list until it stays the same; each reading waits for the browser. */
    async function refresh() {
      stale = true;
      if (reading || !started) {
        return;
      }
      reading = true;
      while (stale) {
        stale = false;
        try {
          report(await apply(getTools, context, []));
        } catch {
          // The page replaced something that the browser needs. It has no tools then.
        }
      }
      reading = false;
    }

    /** @param {any[]} tools */
    function report(tools) {
      /** @type {typeof listed} */
      const next = new MapConstructor();
      /** @type {typeof declared} */
      const withoutFunction = new MapConstructor();
      let text = "";
      let leftOut = 0;
      for (let i = 0; i < tools.length; i++) {
        const tool = tools[i];
        if (tool.window !== page) {
          continue; // of a frame
        }
        const { name } = tool;
        const schema = attempt(() => stringify(tool.inputSchema)) ?? "{}";
        if (
          apply(sizeOf, next, []) === MOST ||
          name === "" ||
          name.length > LONGEST_NAME ||
          schema.length > LONGEST_SCHEMA ||
          schema[0] !== "{" ||
          isDeep(schema) ||
          text.length + schema.length > LONGEST_LIST
        ) {
          leftOut++;
          continue;
        }
        const registration = findRegistered(name);
        const known = registration ?? apply(get, declared, [name]) ?? { id: ++count };
        if (registration === undefined) {
          apply(set, withoutFunction, [name, known]);
        }
        const entry =
          registration === undefined ? asForm(tool, name) : asFunction(registration, name);
        apply(set, next, [`${known.id} ${name}`, entry]);
        const hints = tool.annotations ?? nothing;
        const about = stringify({
          __proto__: null,
          id: known.id,
          name,
          title: cut(tool.title, LONGEST_TITLE),
          description: cut(tool.description, LONGEST_TEXT),
          readOnly: hints.readOnlyHint === true,
          consequential: hints.consequentialHint === true,
          untrustedContent: hints.untrustedContentHint === true,
        });
        text += `${text === "" ? "" : ","}${apply(slice, about, [0, -1])},"inputSchema":${schema}}`;
      }
      declared = withoutFunction;
      listed = next;
      sendList(`{"tools":[${text}],"leftOut":${leftOut}}`);
    }

    const nothing = realm.Object.freeze({
      __proto__: null,
      readOnlyHint: false,
      consequentialHint: false,
      untrustedContentHint: false,
    });

    /** @param {string} text */
    function sendList(text) {
      // A page that is loading has most likely not registered its tools yet.
      if (text !== sent && (text !== NONE || sent !== "" || loaded)) {
        sent = text;
        send("page.tools", text);
      }
    }

    /** The page has loaded, and no list can be read. What was read before still counts. */
    function sendEmptyList() {
      loaded = true;
      if (sent === "") {
        sendList(NONE);
      }
      return true;
    }

    // --- calls ---

    /**
     * @param {Registration} registration
     * @param {string} name
     * @returns {Entry}
     */
    function asFunction(registration, name) {
      /**
       * @param {object} input
       * @param {{signal: AbortSignal}} toolContext
       */
      function handle(input, toolContext) {
        notify(ActivatedEvent, "toolactivated", name);
        const notifyCancelled = () => notify(CancelEvent, "toolcancel", name);
        apply(addEventListener, toolContext.signal, ["abort", notifyCancelled]);
        return apply(registration.execute, undefined, [input, toolContext]);
      }
      return { tool: undefined, handle, deliversLogs: true, toJson, name };
    }

    /**
     * @param {any} tool
     * @param {string} name
     * @returns {Entry}
     */
    function asForm(tool, name) {
      /**
       * @param {object} input
       * @param {{signal: AbortSignal}} toolContext
       */
      async function handle(input, { signal }) {
        apply(remove, formErrors, [name]);
        let text;
        try {
          text = await apply(executeTool, context, [tool, input, { __proto__: null, signal }]);
        } catch (error) {
          const formError = apply(get, formErrors, [name]);
          throw formError === undefined ? error : formError.error;
        }
        // A string comes as it is, everything else as JSON.
        const value = attempt(() => parse(text));
        return typeof value === "object" && value !== null ? value : text;
      }
      return { tool: undefined, handle, deliversLogs: true, toJson, name };
    }

    /**
     * The events that the browser fires when it runs a tool itself.
     * @param {any} Constructor
     * @param {string} type
     * @param {string} toolName
     */
    function notify(Constructor, type, toolName) {
      attempt(() => {
        const init = { __proto__: null, toolName };
        apply(dispatchEvent, context, [new Constructor(type, init)]);
      });
    }

    /**
     * Converts a result to JSON as Chromium converts it to text: objects as `JSON.stringify` writes
     * them, everything else as a string that says what it is.
     * @param {unknown} value
     */
    function toJson(value) {
      if (value === null || typeof value === "boolean" || isFiniteNumber(value)) {
        return `${value}`;
      }
      if (typeof value === "string") {
        return stringify(value);
      }
      if (typeof value !== "object" && typeof value !== "function") {
        return stringify(realm.String(value));
      }
      let text;
      try {
        text = stringify(value);
      } catch (error) {
        throw {
          __proto__: null,
          code: "RESULT_NOT_SERIALIZABLE",
          message: `The tool's result cannot be sent as JSON: ${attempt(() => /** @type {any} */ (error).message)}`,
        };
      }
      return text ?? '"undefined"';
    }

    tap(prototype, "registerTool", (self, args, result) => {
      if (self === context) {
        keep(args[0], args[1], result);
      }
    });
    const submit = attempt(() => page.SubmitEvent.prototype);
    if (submit !== undefined) {
      tap(submit, "respondWith", (self, args) => keepFormError(self, args[0]));
    }
    apply(addEventListener, context, ["toolchange", refresh]);

    return {
      /**
       * @param {string} tool its id and name
       * @returns {Entry | undefined} undefined if it is gone
       */
      find(tool) {
        const found = apply(get, listed, [tool]);
        if (found === undefined) {
          return undefined;
        }
        // Between an unregistration and the next list, perhaps with another registration of the
        // name; forms stay until that.
        const now = findRegistered(found.name) ?? apply(get, declared, [found.name]);
        return now !== undefined && `${now.id} ${found.name}` === tool ? found : undefined;
      },

      /** The page has loaded; the list is then sent, even if it is empty. */
      async isReady() {
        if (!loaded) {
          loaded = true;
          try {
            report(await apply(getTools, context, []));
          } catch {
            sendEmptyList();
          }
        }
        return true;
      },

      /** A relay is there: it receives the list, now and at each change. */
      start() {
        started = true;
        if (sent !== "") {
          send("page.tools", sent);
        }
        refresh();
      },
    };
  }

  /** The node in the frame that the relay's first script created; see `realm.js`. */
  function findNode() {
    for (let i = 0; page[i] !== undefined; i++) {
      try {
        const node = page[i].document.documentElement.lastChild;
        if (node.localName === "opentabs") {
          return node;
        }
      } catch {
        // A frame of another origin.
      }
    }
    return null;
  }

  // In a document that was open before the extension was loaded, the page can see this.
  (findNode() ?? page).openTabsPageTools = install;
})();
