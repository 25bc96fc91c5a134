/**
 * The log of the server and its plugins.
 */

/** @import {Console, View} from "./main.js" */
/** @import {LogRow} from "./store.js" */

import {
  clock,
  copyButton,
  emptyState,
  h,
  matches,
  offerNames,
  searchField,
  shownOf,
  wordsOf,
  write,
} from "./dom.js";
import { List } from "./list.js";
import { visible } from "./viewer/model.js";

const LEVELS = ["debug", "info", "warning", "error", "critical"];

/**
 * @param {Console} console_
 * @returns {View}
 */
export function logsView({ store }) {
  const query = searchField("Filter logs", "Filter by text", () => show());
  const level = h(
    "select",
    { "aria-label": "Minimum level", onchange: () => show() },
    h("option", { value: "debug" }, "All levels"),
    h("option", { value: "info" }, "Info and above"),
    h("option", { value: "warning" }, "Warnings and errors"),
    h("option", { value: "error" }, "Errors"),
  );
  const source = h("select", { "aria-label": "Source", onchange: () => show() });
  const follow = h("input", {
    type: "checkbox",
    checked: true,
    onchange: () => follow.checked && list.scrollToEnd(),
  });
  const count = h("span", { class: "quiet count" });
  /** @type {List<LogRow>} */
  const list = new List({
    label: "Logs",
    key: (/** @type {LogRow} */ entry) => String(entry.id),
    height: () => 27,
    render: (/** @type {LogRow} */ entry) =>
      h(
        "div",
        { class: `log ${entry.level}` },
        h("span", { class: "quiet when" }, clock(entry.time)),
        h("span", { class: `level ${entry.level}` }, entry.level),
        h("span", { class: "quiet source" }, entry.plugin ?? entry.source),
        h("span", { class: "text" }, visible(firstLine(entry.text))),
      ),
    name: (/** @type {LogRow} */ entry) =>
      `${entry.level}, ${entry.plugin ?? entry.source}: ${entry.text}`.slice(0, 200),
    onChoose: open,
    onLeave: () => open(null),
  });
  const empty = h("div", {});
  const whole = h("section", { class: "whole", "aria-label": "The selected entry", hidden: true });
  const element = h(
    "div",
    { class: "view logs" },
    h(
      "header",
      {},
      h("h1", {}, "Logs"),
      count,
      h(
        "div",
        { class: "filters" },
        query,
        source,
        level,
        h("label", { class: "check" }, follow, "Follow"),
      ),
    ),
    h("section", { class: "column" }, list.element, empty),
    whole,
  );
  list.element.addEventListener("scroll", () => {
    if (
      !list.isAtEnd &&
      element.isConnected &&
      list.element.matches(":hover, :focus-within, :focus")
    )
      follow.checked = false;
  });

  /** @param {LogRow | null} entry */
  function open(entry) {
    const hadFocus = whole.contains(document.activeElement);
    whole.hidden = entry === null;
    if (entry === null) {
      if (hadFocus) list.element.focus();
      return list.mark("");
    }
    whole.replaceChildren(
      h(
        "div",
        { class: "bar-of" },
        h("span", { class: `level ${entry.level}` }, entry.level),
        h(
          "span",
          { class: "quiet" },
          `${new Date(entry.time * 1000).toLocaleString()} · ${entry.plugin ?? entry.source}`,
        ),
        copyButton(() => entry.text, "Copy"),
        h(
          "button",
          { type: "button", "aria-label": "Close the entry", onclick: () => open(null) },
          "×",
        ),
      ),
      h("pre", { tabindex: "0" }, visible(entry.text)),
    );
  }

  function show() {
    const words = wordsOf(query.value);
    const least = LEVELS.indexOf(level.value);
    const all = [...store.rows("logs").values()];
    offerNames(
      source,
      [
        ["", "All sources"],
        [" ", "The server"],
      ],
      all.map((entry) => entry.plugin),
    );
    const shown = all.filter(
      (entry) =>
        LEVELS.indexOf(entry.level) >= least &&
        (source.value === "" || (entry.plugin ?? " ") === source.value) &&
        matches(words, `${entry.text} ${entry.source}`),
    );
    write(count, shownOf(shown.length, all.length, "entry", "entries"));
    list.element.hidden = shown.length === 0;
    empty.hidden = shown.length > 0;
    empty.replaceChildren(
      all.length === 0
        ? emptyState("Nothing was logged yet", "What the server and the plugins log appears here.")
        : emptyState("No entry matches.", "Change the filter above."),
    );
    list.show(shown);
    if (follow.checked) list.scrollToEnd();
  }

  return {
    element,
    search: query,
    show,
    update(changed) {
      if (changed.has("logs")) show();
    },
  };
}

/** @param {string} text */
function firstLine(text) {
  const [first = "", ...more] = text.trimEnd().split("\n");
  return more.length > 0 ? `${first} …` : first;
}
