/**
 * `document.modelContext` for browsers that lack it (`--webmcp-polyfill`): what pages see of WebMCP,
 * as Chromium 156 has it behind `--enable-features=WebMCP`.
 *
 * Runs in the MAIN world before the page's scripts. It is the page's: a page can replace any of it,
 * as it can the browser's own, and nothing here knows of calls, plugins or the server.
 */
(() => {
  const NAME = /^[\w.-]{1,128}$/;
  const FORMS = "form[toolname][tooldescription]";
  const ATTRIBUTES = [
    ...["toolname", "tooltitle", "tooldescription", "toolparamdescription", "toolautosubmit"],
    ...["name", "type", "value", "min", "max", "step", "required", "disabled"],
  ];
  const FAILED =
    "Tool was executed but the invocation failed. For example, the script function threw an error";
  if ("modelContext" in Document.prototype || !isSecureContext) {
    return;
  }

  // What Chromium has as the formats of fields that are not JSON Schema's.
  const FORMATS = new Map([
    ["color", "^#[0-9a-zA-Z]{6}$"],
    ["time", "^([01][0-9]|2[0-3]):[0-5][0-9]$"],
    ["datetime-local", "^[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]$"],
    ["month", "^[0-9]{4}-(0[1-9]|1[0-2])$"],
    ["week", "^[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])$"],
  ]);

  /** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

  /** @type {WeakMap<Event, unknown>} the page's answers to submissions that a call has caused */
  const answers = new WeakMap();
  /** @type {Map<HTMLFormElement, (event: Event) => void>} forms that a call has filled in */
  const awaited = new Map();

  /**
   * @param {string} message
   * @param {string} [name]
   */
  const failure = (message, name = "UnknownError") => new DOMException(message, name);

  class ToolEvent extends Event {
    /** @type {string} */
    toolName;

    /**
     * @param {string} type
     * @param {EventInit & {toolName: string}} init
     */
    constructor(type, init) {
      super(type, init);
      this.toolName = init.toolName;
    }
  }
  class ToolActivatedEvent extends ToolEvent {}
  class ToolCancelEvent extends ToolEvent {}

  class ModelContext extends EventTarget {
    /** @type {Map<string, any>} */
    #tools = new Map();
    #forms = "[]";
    #isChanging = false;

    constructor() {
      super();
      for (const type of ["toolchange", "toolactivated", "toolcancel"]) {
        /** @type {any} */
        let handler = null;
        this.addEventListener(type, (event) => handler?.call(this, event));
        Object.defineProperty(this, `on${type}`, {
          get: () => handler,
          set: (value) => {
            handler = typeof value === "function" ? value : null;
          },
        });
      }
      const look = () => {
        const forms = JSON.stringify(listForms().map(([, tool]) => tool));
        if (forms !== this.#forms) {
          this.#forms = forms;
          this.#change();
        }
      };
      new MutationObserver(look).observe(document, {
        subtree: true,
        childList: true,
        attributeFilter: ATTRIBUTES,
      });
    }

    /**
     * @param {any} tool
     * @param {{signal?: AbortSignal}} [options]
     */
    async registerTool(tool, { signal } = {}) {
      for (const member of ["description", "execute", "name"]) {
        if (tool?.[member] === undefined) {
          throw new TypeError(`Failed to read the '${member}' property: it is required.`);
        }
      }
      const { name, execute, annotations } = tool;
      const inputSchema = copySchema(tool.inputSchema);
      signal?.throwIfAborted();
      if (!NAME.test(name)) {
        throw failure("Invalid tool name", "InvalidStateError");
      }
      if (`${tool.description}` === "") {
        throw failure("Description is required", "InvalidStateError");
      }
      if (this.#tools.has(name) || listForms().some(([, form]) => form.name === name)) {
        throw failure("Duplicate tool name", "InvalidStateError");
      }
      const { readOnlyHint = false, consequentialHint = false } = annotations ?? {};
      const { untrustedContentHint = false, debugging = false } = annotations ?? {};
      const hints = { readOnlyHint, consequentialHint, untrustedContentHint, debugging };
      const about = {
        name: `${name}`,
        title: `${tool.title ?? ""}`,
        description: `${tool.description}`,
        ...(inputSchema === undefined ? {} : { inputSchema }),
        ...(annotations === undefined ? {} : { annotations: hints }),
      };
      this.#tools.set(name, { about, execute });
      signal?.addEventListener("abort", () => {
        this.#tools.delete(name);
        this.#change();
      });
      this.#change();
    }

    async getTools() {
      const own = Array.from(this.#tools.values(), ({ about }) => structuredClone(about));
      const all = [...own, ...listForms().map(([, tool]) => tool)];
      all.sort((one, other) => (one.name < other.name ? -1 : 1));
      return all.map((tool) => ({ ...tool, origin: location.origin, window }));
    }

    /**
     * @param {any} tool
     * @param {any} [input]
     * @param {{signal?: AbortSignal}} [options]
     * @returns {Promise<string>}
     */
    async executeTool(tool, input = {}, { signal } = {}) {
      if (typeof input !== "object" || input === null) {
        throw new TypeError("invalid input object: value is not an object");
      }
      signal?.throwIfAborted();
      const known = this.#tools.get(tool.name);
      const form = listForms().find(([, { name }]) => name === tool.name)?.[0];
      if (known === undefined && form === undefined) {
        throw failure("There is no such tool.");
      }
      const toolName = tool.name;
      this.dispatchEvent(new ToolActivatedEvent("toolactivated", { toolName }));
      const controller = new AbortController();
      const aborted = Promise.withResolvers();
      const stop = () => {
        controller.abort();
        if (form === undefined) {
          this.dispatchEvent(new ToolCancelEvent("toolcancel", { toolName }));
        }
        aborted.reject(signal?.reason);
      };
      signal?.addEventListener("abort", stop);
      try {
        const run =
          form === undefined
            ? call(known.execute, JSON.parse(JSON.stringify(input)), controller.signal)
            : submit(form, input, controller.signal);
        return asText(await Promise.race([run, aborted.promise]));
      } finally {
        signal?.removeEventListener("abort", stop);
      }
    }

    #change() {
      if (!this.#isChanging) {
        this.#isChanging = true;
        queueMicrotask(() => {
          this.#isChanging = false;
          this.dispatchEvent(new Event("toolchange"));
        });
      }
    }
  }

  /** @param {unknown} schema */
  function copySchema(schema) {
    if (schema === undefined) {
      return undefined;
    }
    if (typeof schema !== "object" || schema === null) {
      throw new TypeError("Failed to read the 'inputSchema' property: it is not an object.");
    }
    const text = JSON.stringify(schema);
    if (text === undefined) {
      throw new TypeError("invalid input schema: toJSON() returns undefined");
    }
    return JSON.parse(text);
  }

  /** @param {unknown} value */
  function asText(value) {
    if (typeof value === "string" || (typeof value !== "object" && typeof value !== "function")) {
      return String(value);
    }
    try {
      return String(JSON.stringify(value));
    } catch {
      throw failure(FAILED);
    }
  }

  /**
   * @param {Function} execute
   * @param {object} input
   * @param {AbortSignal} signal
   */
  async function call(execute, input, signal) {
    try {
      return await execute(input, { signal });
    } catch {
      throw failure(FAILED);
    }
  }

  // --- forms ---

  /** @returns {[HTMLFormElement, any][]} the forms that are tools, and how they are listed */
  function listForms() {
    const forms = /** @type {HTMLFormElement[]} */ ([...document.querySelectorAll(FORMS)]);
    return forms.map((form) => [
      form,
      {
        name: form.getAttribute("toolname"),
        title: form.getAttribute("tooltitle") ?? "",
        description: form.getAttribute("tooldescription"),
        inputSchema: schemaOf(form),
      },
    ]);
  }

  /**
   * @param {HTMLFormElement} form
   * @returns {Map<string, Field[]>}
   */
  function fieldsOf(form) {
    const skipped = ["hidden", "submit", "button", "reset", "image", "file", "fieldset", "output"];
    /** @type {Map<string, Field[]>} */
    const fields = new Map();
    for (const element of form.elements) {
      const field = /** @type {Field} */ (element);
      const isFixed = field.disabled || /** @type {any} */ (field).readOnly === true;
      if (field.name && !isFixed && !skipped.includes(field.type)) {
        fields.set(field.name, [...(fields.get(field.name) ?? []), field]);
      }
    }
    return fields;
  }

  /** @param {HTMLFormElement} form */
  function schemaOf(form) {
    const properties = /** @type {Record<string, object>} */ ({});
    const required = [];
    for (const [name, fields] of fieldsOf(form)) {
      properties[name] = schemaOfField(fields);
      if (fields.some((field) => field.required)) {
        required.push(name);
      }
    }
    return { type: "object", properties, required };
  }

  /** @param {Field[]} fields of one name */
  function schemaOfField(fields) {
    const field = /** @type {any} */ (fields[0]);
    const isGroup = field.type === "radio" || fields.length > 1;
    const text = field.getAttribute("toolparamdescription") ?? (isGroup ? null : labelOf(field));
    const described = text === null ? {} : { description: text };
    if (field.type === "radio" || (field.type === "checkbox" && isGroup)) {
      const schema = schemaOfOptions(fields.map((each) => [each.value, labelOf(each)]));
      return { ...(field.type === "radio" ? schema : listOf(schema)), ...described };
    }
    if (field.type.startsWith("select")) {
      const options = Array.from(field.options, ({ value, text }) => [value, text]);
      const schema = schemaOfOptions(/** @type {[string, string][]} */ (options));
      return { ...(field.multiple ? listOf(schema) : schema), ...described };
    }
    if (field.type === "checkbox") {
      return { type: "boolean", ...described };
    }
    if (field.type === "number" || field.type === "range") {
      const isRange = field.type === "range";
      const bounds = [
        ["minimum", field.min || (isRange ? "0" : "")],
        ["maximum", field.max || (isRange ? "100" : "")],
        ["multipleOf", field.step === "any" ? "" : field.step || "1"],
      ].filter(([, text]) => text !== "");
      const numbers = Object.fromEntries(bounds.map(([key, text]) => [key, Number(text)]));
      return { type: "number", ...numbers, ...described };
    }
    if (field.type === "date") {
      const format = "Dates MUST be provided in 'YYYY-MM-DD' format.";
      return { type: "string", format: "date", description: text ?? format };
    }
    const format = FORMATS.get(field.type);
    const { pattern } = field;
    return {
      type: "string",
      ...(format === undefined ? {} : { format }),
      ...(pattern ? { pattern } : {}),
      ...described,
    };
  }

  /** @param {Field} field */
  function labelOf(field) {
    return field.labels?.[0]?.textContent?.trim() || null;
  }

  /** @param {[string, string | null][]} options values and their titles */
  function schemaOfOptions(options) {
    const anyOf = options.map(([value, title]) => ({
      type: "string",
      const: value,
      ...(title === null ? {} : { title }),
    }));
    return { type: "string", anyOf, enum: options.map(([value]) => value) };
  }

  /** @param {object} items */
  function listOf(items) {
    return { type: "array", items, uniqueItems: true };
  }

  /**
   * @param {HTMLFormElement} form
   * @param {Record<string, unknown>} input
   */
  function fill(form, input) {
    const fields = fieldsOf(form);
    const unknown = Object.keys(input).find((name) => !fields.has(name));
    if (unknown !== undefined) {
      throw failure(
        `Input contains a parameter "${unknown}" but there is no such parameter for the tool`,
      );
    }
    for (const [name, value] of Object.entries(input)) {
      for (const each of fields.get(name) ?? []) {
        const field = /** @type {any} */ (each);
        const chosen = Array.isArray(value) ? value : null;
        if (field.type === "checkbox") {
          field.checked = chosen === null ? value === true : chosen.includes(field.value);
        } else if (field.type === "select-multiple") {
          for (const option of field.options) {
            option.selected = chosen?.includes(option.value) === true;
          }
        } else if (field.type === "radio") {
          field.checked = field.value === String(value);
        } else {
          // The prototype's setter: frameworks replace that of the element.
          const { prototype } = field.constructor;
          Object.getOwnPropertyDescriptor(prototype, "value")?.set?.call(field, String(value));
        }
        field.dispatchEvent(new Event("input", { bubbles: true }));
        field.dispatchEvent(new Event("change", { bubbles: true }));
      }
    }
  }

  /**
   * Fills a form in, and waits until it was submitted: at once, or by the user.
   * @param {HTMLFormElement} form
   * @param {Record<string, unknown>} input
   * @param {AbortSignal} signal
   */
  async function submit(form, input, signal) {
    fill(form, input);
    const isAutomatic = form.hasAttribute("toolautosubmit");
    const button = /** @type {HTMLElement | null} */ (
      form.querySelector("button:not([type]), button[type=submit], input[type=submit]")
    );
    if (!isAutomatic && button === null) {
      throw failure(
        "No submit button was found, but for a form without `toolautosubmit`, there must be a submit button",
      );
    }
    const invalid = [...form.elements].flatMap((element) => {
      const { name, validity, validationMessage } = /** @type {Field} */ (element);
      return validity !== undefined && !validity.valid ? [`${name}: ${validationMessage}.`] : [];
    });
    if (invalid.length > 0) {
      throw failure(`Form validation failed: ${invalid.join(" ")} `);
    }
    const reset = Promise.withResolvers();
    const cancel = () => reset.reject(failure("Tool execution cancelled by a form reset"));
    const submitted = Promise.withResolvers();
    awaited.set(form, submitted.resolve);
    form.addEventListener("reset", cancel, { signal });
    try {
      if (isAutomatic) {
        form.requestSubmit();
      } else {
        button?.focus();
      }
      const event = await Promise.race([submitted.promise, reset.promise]);
      return await answerOf(/** @type {Event} */ (event));
    } finally {
      if (awaited.get(form) === submitted.resolve) {
        awaited.delete(form); // unless this call was cancelled, and another one waits by now
      }
      form.removeEventListener("reset", cancel);
    }
  }

  /** @param {Event} event */
  async function answerOf(event) {
    await new Promise((resolve) => setTimeout(resolve, 0)); // all its listeners have run
    try {
      return await answers.get(event);
    } catch {
      throw failure(FAILED);
    }
  }

  window.addEventListener(
    "submit",
    (event) => {
      const form = /** @type {HTMLFormElement} */ (event.target);
      const resolve = awaited.get(form);
      if (resolve !== undefined) {
        answers.set(event, undefined);
        resolve(event);
      }
    },
    { capture: true },
  );
  Object.defineProperties(SubmitEvent.prototype, {
    agentInvoked: {
      configurable: true,
      enumerable: true,
      get() {
        return answers.has(this);
      },
    },
    respondWith: {
      configurable: true,
      enumerable: true,
      writable: true,
      /** @type {(this: Event, answer: Promise<unknown>) => void} */
      value(answer) {
        if (!answers.has(this)) {
          throw failure("The submission was not invoked by an agent.", "InvalidStateError");
        }
        answers.set(this, Promise.resolve(answer));
      },
    },
  });

  const context = new ModelContext();
  Object.defineProperty(Document.prototype, "modelContext", {
    configurable: true,
    enumerable: true,
    get() {
      return this === document ? context : undefined;
    },
  });
  Object.assign(globalThis, { ModelContext, ToolActivatedEvent, ToolCancelEvent });
})();
