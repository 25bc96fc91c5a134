/**
 * Try a tool: find it, fill in a form from its schema, and run it.
 */

/** @import {Console, View} from "./main.js" */
/** @import {Schema} from "./schema.js" */
/** @import {ToolInShort} from "./tool_list.js" */

import { copyAs } from "./copies.js";
import {
  emptyState,
  focusOn,
  h,
  matches,
  pluginPath,
  searchField,
  shownOf,
  switcher,
  wordsOf,
  write,
} from "./dom.js";
import { glyph, toolIcon } from "./icons.js";
import { Refusal, whyFailed } from "./link.js";
import { runOf } from "./run.js";
import { schemaForm } from "./schema_form.js";
import { PERMISSIONS, toolList } from "./tool_list.js";
import { FieldError, readJson } from "./values.js";

const FOUND = 60; // tools that the picker shows

/**
 * @typedef {ToolInShort & {description: string, inputSchema: Schema, outputSchema: Schema | null,
 *     annotations: Record<string, unknown> | null, needsTab: boolean, isRemote: boolean}} Tool
 *
 * @typedef {object} Bench where a tool is tried
 * @property {HTMLElement} element
 * @property {(tool: Tool) => void} renew shows the tool as it is now
 */

/**
 * @param {Console} console_
 * @returns {View}
 */
export function tryView(console_) {
  const { store, link, go } = console_;
  const query = searchField("Find a tool", "Find a tool", () =>
    opened === "" ? pick() : go("try"),
  );
  const count = h("span", { class: "quiet count" });
  const content = h("div", { class: "scroll-area" });
  const element = h(
    "div",
    { class: "view try" },
    h("header", {}, h("h1", {}, "Try it"), count, h("div", { class: "filters" }, query)),
    content,
  );
  let opened = "";
  /** @type {ToolInShort[] | null} */
  let tools = null;
  let revision = -1; // that was read
  let hasChanged = false; // while it was being read
  let requests = 0; // for the list
  let hasFailed = false; // to reach the server
  /** @type {Map<string, Bench & {revision: number}>} what was written stays while one looks at other tools */
  const benches = new Map();

  /** @param {string} [left] the tool that was open and had the focus */
  async function pick(left = "") {
    hasFailed = false;
    if (tools === null || store.toolsRevision !== revision) {
      revision = store.toolsRevision;
      hasChanged = false;
      const request = ++requests;
      try {
        const answer = await link.get("/tools");
        if (request !== requests) return; // it is read again
        tools = answer;
      } catch (error) {
        if (request !== requests) return;
        tools = null;
        revision = -1;
        if (hasChanged) return pick(left);
        if (opened === "") showProblem(error);
        return;
      }
    }
    if (opened !== "") return;
    const words = wordsOf(query.value);
    const found = (tools ?? []).filter((each) =>
      matches(words, `${each.name} ${each.title} ${each.summary} ${each.owner}`),
    );
    write(count, shownOf(found.length, tools?.length ?? 0, "tool"));
    if (found.length === 0) {
      const serve = store.isEndpoint
        ? "Start a worker: opentabs worker"
        : "Serve a plugin: opentabs serve";
      content.replaceChildren(
        tools?.length === 0
          ? emptyState("No tool is served", `${serve} --plugin DIR`)
          : emptyState("No tool matches.", "Search for other words."),
      );
      return;
    }
    content.replaceChildren(
      toolList(found.slice(0, FOUND)),
      ...(found.length > FOUND
        ? [
            h(
              "p",
              { class: "quiet none" },
              `${found.length - FOUND} more: search for words in their names.`,
            ),
          ]
        : []),
    );
    if (left !== "") focusOn(content, `tool ${left}`);
  }

  /** @param {string} name */
  function open(name) {
    write(count, "");
    const known = benches.get(name);
    if (known === undefined)
      content.replaceChildren(h("p", { class: "quiet none" }, "Loading the tool"));
    else put(known);
    read(name);
  }

  /** @param {Bench} bench */
  function put({ element }) {
    content.replaceChildren(element);
    // The link that opened it is gone; the keyboard goes on here.
    if (document.activeElement === document.body) element.focus({ preventScroll: true });
  }

  /**
   * Read a tool, unless what is known of it is the newest.
   * @param {string} name
   */
  async function read(name) {
    const asked = store.toolsRevision;
    hasFailed = false;
    if (benches.get(name)?.revision === asked) return;
    try {
      const tool = /** @type {Tool} */ (await link.get(`/tools/${encodeURIComponent(name)}`));
      if (asked !== store.toolsRevision) return; // it is read again
      const known = benches.get(name);
      known?.renew(tool);
      const bench = { ...(known ?? benchOf(tool, console_)), revision: asked };
      benches.set(name, bench);
      if (opened === name && known === undefined) put(bench);
    } catch (error) {
      if (opened === name && !benches.has(name)) showProblem(error, back());
    }
  }

  /**
   * @param {unknown} error
   * @param {...Node} before
   */
  function showProblem(error, ...before) {
    hasFailed = !(error instanceof Refusal);
    content.replaceChildren(...before, h("div", { class: "empty" }, h("p", {}, whyFailed(error))));
  }

  return {
    element,
    search: query,
    show([name = ""]) {
      const left = content.contains(document.activeElement) ? opened : "";
      opened = name;
      if (name === "") pick(left);
      else open(name);
    },
    update(changed) {
      if (changed.has("plugins")) hasChanged = true;
      else if (!hasFailed) return;
      if (opened !== "") read(opened);
      else if (store.toolsRevision !== revision) pick();
    },
    leave: () => go("try"),
  };
}

function back() {
  return h("a", { class: "back", href: "#/try" }, glyph("back"), "All tools");
}

/**
 * @param {Tool} given
 * @param {Console} console_
 * @returns {Bench}
 */
function benchOf(given, { store, link }) {
  let tool = given;
  let { schema, hasTab } = withoutTab(tool);
  const tab = h("select", { "aria-label": "Tab", onchange: () => change("form") });
  const json = h("textarea", {
    class: "json",
    rows: 10,
    "aria-label": "The arguments, as JSON",
    spellcheck: "false",
    hidden: true,
    oninput: () => change("json"),
  });
  const wrong = h("p", { class: "wrong", role: "alert", hidden: true });
  const run = h("button", { type: "submit", class: "primary" }, glyph("try"), h("span", {}, "Run"));
  const cancel = h("button", { type: "button", hidden: true }, "Cancel");
  const outcome = h("section", { class: "outcome", "aria-label": "What happens" });
  const copies = h("div", { class: "copies" });
  /** @type {"form" | "json"} */
  let written = "form"; // where the arguments were changed last
  /** @type {"form" | "json"} */
  let shown = "form";
  let runs = false;
  let form = schemaForm(schema, () => change("form"));
  const modes = switcher(
    "How to write the arguments",
    [
      ["form", "Form"],
      ["json", "JSON"],
    ],
    (mode) => show(/** @type {"form" | "json"} */ (mode)),
  );
  const tabField = h(
    "div",
    { class: "field", hidden: !hasTab },
    h("div", { class: "field-label" }, h("span", { class: "field-name" }, "Tab")),
    tab,
  );
  const formPlace = h("div", { class: "form-place" }, tabField, form.element);
  const head = h("section", { class: "tool-head" }, ...headOf(tool));
  const element = h(
    "form",
    { class: "bench", novalidate: true, tabindex: "-1" },
    back(),
    head,
    h(
      "div",
      { class: "halves" },
      h(
        "section",
        { class: "arguments", "aria-label": "Arguments" },
        h("div", { class: "head-of" }, h("h3", {}, "Arguments"), modes.element),
        formPlace,
        json,
        wrong,
        h("div", { class: "actions" }, run, cancel),
        copies,
      ),
      outcome,
    ),
  );
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    start();
  });
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      start();
    }
  });
  outcome.append(
    h(
      "div",
      { class: "empty" },
      h("p", { class: "quiet" }, "Run the tool to see its progress, logs and result here."),
    ),
  );
  copies.append(copyAs(link, tool.name, read));
  showTabs();
  store.subscribe((changed) => {
    if ((changed.has("tabs") || changed.has("plugins")) && element.isConnected) showTabs();
  });

  /**
   * Show the tool as it is now. What was written stays if its schema is the same; a run goes on.
   * @param {Tool} now
   */
  function renew(now) {
    if (JSON.stringify(now) === JSON.stringify(tool)) return;
    const wanted = withoutTab(now);
    const isSame = JSON.stringify(wanted) === JSON.stringify({ schema, hasTab });
    tool = now;
    head.replaceChildren(...headOf(tool));
    if (isSame) return;
    ({ schema, hasTab } = wanted);
    const before = form.element;
    form = schemaForm(schema, () => change("form"));
    before.replaceWith(form.element);
    tabField.hidden = !hasTab;
  }

  function showTabs() {
    const tabs = [...store.rows("tabs").values()].filter((each) =>
      each.plugins.some(({ name }) => name === tool.owner),
    );
    const isRemote = store.rows("plugins").get(tool.owner)?.kind === "remote"; // tabs are not known
    const isClosed = tabs.length === 0 && !isRemote;
    const chosen = tab.value;
    tab.replaceChildren(
      h("option", { value: "" }, isClosed ? "No tab of this plugin is open" : "Best match"),
      ...tabs.map((each) =>
        h("option", { value: each.id }, `${each.id}: ${(each.title || each.url).slice(0, 80)}`),
      ),
    );
    if (chosen !== "" && !tabs.some((each) => String(each.id) === chosen))
      tab.append(h("option", { value: chosen }, `${chosen}: closed`));
    tab.value = chosen;
  }

  /** @returns {Record<string, unknown>} */
  function read() {
    if (written === "json") {
      const value = readJson(json.value, "Arguments");
      if (typeof value !== "object" || value === null || Array.isArray(value))
        throw new FieldError("Write a JSON object.");
      return value;
    }
    const value = /** @type {Record<string, unknown>} */ (form.get());
    return hasTab && tab.value !== "" ? { ...value, tabId: Number(tab.value) } : value;
  }

  /** @param {"form" | "json"} where */
  function change(where) {
    written = where;
    complain("");
  }

  /** @param {string} text */
  function complain(text) {
    wrong.hidden = text === "";
    write(wrong, text);
  }

  /** @param {"form" | "json"} mode */
  function show(mode) {
    if (mode === shown) return;
    try {
      const value = read();
      if (mode === "json") {
        json.value = JSON.stringify(value, null, 2);
        json.rows = Math.min(24, Math.max(6, json.value.split("\n").length + 1));
      } else {
        const { tabId, ...more } = value;
        form.set(hasTab ? more : value);
        if (hasTab) {
          tab.value = "";
          if (tabId !== undefined) {
            if (![...tab.options].some((each) => each.value === String(tabId)))
              tab.append(h("option", { value: String(tabId) }, String(tabId)));
            tab.value = String(tabId);
          }
        }
      }
    } catch (error) {
      modes.mark(shown);
      return complain(/** @type {Error} */ (error).message);
    }
    complain("");
    written = shown = mode;
    json.hidden = mode === "form";
    formPlace.hidden = mode === "json";
  }

  async function start() {
    if (runs) return;
    /** @type {Record<string, unknown>} */
    let value;
    try {
      value = read();
    } catch (error) {
      return complain(/** @type {Error} */ (error).message);
    }
    complain("");
    const abort = new AbortController();
    const stop = () => abort.abort();
    const watch = runOf();
    const hadFocus = document.activeElement === run; // which it loses while it is disabled
    runs = true;
    run.disabled = true;
    cancel.hidden = false;
    cancel.addEventListener("click", stop, { once: true });
    outcome.replaceChildren(watch.element);
    try {
      await link.lines("/call", { tool: tool.name, arguments: value }, watch.handle, abort.signal);
      watch.end(null);
    } catch (error) {
      if (abort.signal.aborted) watch.end("You cancelled this call.");
      else
        watch.end(
          error instanceof Refusal
            ? error.message
            : "The connection to the server ended during the call. It may have run.",
        );
    } finally {
      runs = false;
      run.disabled = false;
      if (hadFocus && [document.body, cancel].includes(/** @type {any} */ (document.activeElement)))
        run.focus({ preventScroll: true });
      cancel.hidden = true;
      cancel.removeEventListener("click", stop);
      write(/** @type {Element} */ (run.lastElementChild), "Run again");
    }
  }

  return { element, renew };
}

/** @param {Tool} tool */
function headOf(tool) {
  return [
    toolIcon(tool.icon),
    h(
      "div",
      { class: "what" },
      h("h2", {}, tool.title || tool.name),
      h("p", { class: "badges" }, h("code", { class: "quiet" }, tool.name), ...marks(tool)),
      h("p", { class: "description" }, tool.description),
      tool.permission !== null &&
        h("p", { class: "quiet" }, `${PERMISSIONS[tool.permission]}, because ${tool.because}.`),
    ),
  ];
}

/** @param {Tool} tool */
function withoutTab(tool) {
  const { properties = {} } = tool.inputSchema;
  if (!tool.needsTab || !Object.hasOwn(properties, "tabId"))
    return { schema: tool.inputSchema, hasTab: false };
  const { tabId: _tab, ...rest } = properties;
  return {
    schema: {
      ...tool.inputSchema,
      properties: rest,
      additionalProperties: tool.inputSchema.additionalProperties ?? false,
    },
    hasTab: true,
  };
}

/** @param {Tool} tool */
function marks(tool) {
  const hints = tool.annotations ?? {};
  return [
    hints.readOnlyHint === true && h("span", { class: "badge" }, "only reads"),
    hints.destructiveHint === true && h("span", { class: "badge warn" }, "may destroy"),
    !tool.needsTab &&
      h("span", { class: "badge" }, `runs in ${tool.isRemote ? "a worker" : "the server"}`),
    h("a", { class: "badge", href: pluginPath(tool.owner) }, tool.owner),
  ];
}
