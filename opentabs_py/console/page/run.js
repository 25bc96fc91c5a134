/**
 * One run of a tool: its progress and logs as they come, and its result.
 */

import { copyButton, h, switcher, write } from "./dom.js";
import { tree } from "./tree.js";
import { parseExactly, writeExactly } from "./values.js";
import { duration, fraction, visible } from "./viewer/model.js";

const LOGS = 200; // records that are shown

export function runOf() {
  const began = performance.now();
  const state = h("span", { class: "badge", role: "status" }, "Running");
  const took = h("span", { class: "quiet" });
  const open = h("a", { hidden: true }, "Where its time went");
  const bar = h("progress", { class: "bar", "aria-label": "Progress" });
  const status = h("p", { class: "quiet message", "aria-live": "polite" });
  const logs = h("ul", { class: "run-logs", "aria-label": "Logs" });
  const notes = h("div", { class: "notes" });
  const result = h("div", { class: "result" });
  const element = h(
    "div",
    { class: "run" },
    h("div", { class: "head-of" }, h("h3", {}, "Result"), state, took, open),
    bar,
    status,
    notes,
    logs,
    result,
  );
  const ticking = setInterval(() => {
    if (element.isConnected) write(took, duration(performance.now() - began));
  }, 100);
  let ended = false;

  /** @param {any} document */
  function handle(document) {
    if (document.callId !== undefined) {
      open.href = `#/calls/${document.callId}`;
      open.hidden = false;
    } else if (document.progress !== undefined) {
      const { progress, total, message } = document.progress;
      if (progress !== null && total !== null && total > 0) {
        bar.max = total;
        bar.value = progress;
      }
      const text = [fraction(progress, total), message].filter(Boolean).join("  ");
      write(status, visible(text));
    } else if (document.log !== undefined) {
      const { level, message } = document.log;
      if (logs.childElementCount < LOGS)
        logs.append(
          h(
            "li",
            {},
            h("span", { class: `level ${level}` }, level),
            h("span", { class: "text" }, visible(message)),
          ),
        );
    } else if (document.warning !== undefined) {
      notes.append(h("p", { class: "notice" }, document.warning));
    } else if (document.outcome !== undefined) {
      showOutcome(document.outcome);
    }
  }

  /** @param {any} value */
  function showOutcome(value) {
    ended = true;
    write(state, value.isError ? "Failed" : "Succeeded");
    state.className = `badge ${value.isError ? "failed" : "ready"}`;
    write(took, duration(value.seconds * 1000));
    if (value.isError) result.append(errorOf(value));
    else result.append(...shownValue(value));
  }

  /** @param {string | null} why it ended without an outcome */
  function end(why) {
    clearInterval(ticking);
    bar.hidden = true;
    if (ended && why === null) return;
    write(state, why?.startsWith("You") ? "Cancelled" : "Failed");
    state.className = "badge failed";
    result.append(
      h("p", { class: "notice" }, why ?? "The server ended the call without a result."),
    );
  }

  return { element, handle, end };
}

/** @param {any} value */
function errorOf(value) {
  const { code, message, category, retryable } = value.error ?? {};
  return h(
    "div",
    { class: "error-box", role: "alert" },
    h(
      "div",
      { class: "badges" },
      h("code", {}, code ?? "Error"),
      category && h("span", { class: "badge" }, category),
      retryable === true && h("span", { class: "badge" }, "retryable"),
    ),
    h("p", {}, visible(message ?? value.content?.[0]?.text ?? "The tool failed.")),
    value.content?.length > 1 &&
      !value.error &&
      h(
        "pre",
        {},
        visible(value.content.map((/** @type {any} */ each) => each.text ?? "").join("\n")),
      ),
  );
}

/** @param {any} value */
function shownValue(value) {
  const texts = value.content
    .filter((/** @type {any} */ each) => each.type === "text")
    .map((/** @type {any} */ each) => each.text);
  const others = value.content.filter((/** @type {any} */ each) => each.type !== "text");
  const text = texts.join("\n");
  let parsed = value.structuredContent;
  if (parsed === null || parsed === undefined) {
    try {
      parsed = parseExactly(text);
    } catch {
      parsed = text;
    }
  }
  const asText = typeof parsed === "string" ? parsed : writeExactly(parsed);
  const treePlace = h(
    "div",
    { class: "tree", tabindex: "0", role: "region", "aria-label": "The result as a tree" },
    tree(parsed),
  );
  const textPlace = h(
    "pre",
    { tabindex: "0", hidden: true, "aria-label": "The result as text" },
    visible(asText),
  );
  const modes = switcher(
    "How to show the result",
    [
      ["tree", "Tree"],
      ["text", "Text"],
    ],
    (mode) => {
      treePlace.hidden = mode !== "tree";
      textPlace.hidden = mode !== "text";
    },
  );
  const images = others.map((/** @type {any} */ each) =>
    each.type === "image"
      ? h(
          "p",
          { class: "quiet" },
          `An image (${each.mimeType}), ${each.data.length} characters of base64`,
        )
      : h("pre", {}, writeExactly(each)),
  );
  return [
    h(
      "div",
      { class: "head-of" },
      modes.element,
      copyButton(() => asText, "Copy"),
    ),
    treePlace,
    textPlace,
    ...images,
  ];
}
