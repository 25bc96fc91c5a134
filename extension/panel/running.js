/**
 * The calls that run, with their progress, and a button to end each.
 */

/** @import {Console} from "./console/main.js" */
/** @import {CallRow} from "./console/store.js" */

import { h, plural, site, write } from "./console/dom.js";
import { whyFailed } from "./console/link.js";
import { duration } from "./console/viewer/model.js";

const MOST = 30; // calls that are shown
const SHOWN_AFTER = 5; // s; how a call ended stays so long

/**
 * @typedef {object} Item one call on the page, which keeps its elements, so that a focus in it stays
 * @property {HTMLElement} element
 * @property {(call: CallRow) => void} show
 */

/**
 * @param {Console} console_
 * @param {() => string | null} profile the id of this browser
 */
export function runningCalls({ store, link }, profile) {
  const title = h("h2", {});
  const list = h("ul", { class: "runs", "aria-label": "Running calls" });
  const more = h("a", { href: "#/calls", hidden: true });
  const element = h("section", { "aria-label": "Running", hidden: true }, title, list, more);
  /** @type {Map<string, Item>} */
  const items = new Map();

  function show() {
    const running = [...store.rows("calls").values()].filter(({ state }) => state === "running");
    running.sort(inOrder);
    const ending = [...items.keys()].flatMap((id) => {
      const call = store.rows("calls").get(id);
      return call !== undefined && call.state !== "running" && isRecent(call) ? [call] : [];
    });
    const shown = [...running.slice(0, MOST), ...ending].sort(inOrder);
    const ids = new Set(shown.map(({ id }) => id));
    for (const [id, item] of items) {
      if (ids.has(id)) continue;
      items.delete(id);
      item.element.remove();
    }
    for (const [index, call] of shown.entries()) {
      const item = items.get(call.id) ?? itemOf(call);
      items.set(call.id, item);
      item.show(call);
      const there = list.children[index] ?? null;
      if (there !== item.element) list.insertBefore(item.element, there);
    }
    element.hidden = shown.length === 0;
    write(title, running.length > 0 ? `${plural(running.length, "call")} running` : "Just ended");
    more.hidden = running.length <= MOST;
    write(more, `${running.length - MOST} more`);
  }

  /**
   * This browser's calls first, the oldest first.
   * @param {CallRow} a
   * @param {CallRow} b
   */
  function inOrder(a, b) {
    return Number(isElsewhere(a)) - Number(isElsewhere(b)) || a.started - b.started;
  }

  /** @param {CallRow} call */
  function isRecent(call) {
    return store.now() - call.started - call.seconds < SHOWN_AFTER;
  }

  /** @param {CallRow} call */
  function browserOf(call) {
    const { tab } = call;
    if (tab === null) return undefined;
    return [...store.rows("browsers").values()]
      .filter(({ firstTab }) => firstTab <= tab)
      .sort((a, b) => b.firstTab - a.firstTab)[0];
  }

  /** @param {CallRow} call */
  function isElsewhere(call) {
    const browser = browserOf(call);
    return browser !== undefined && browser.profile !== profile();
  }

  /**
   * @param {CallRow} first
   * @returns {Item}
   */
  function itemOf({ id, name }) {
    const took = h("span", { class: "took quiet" });
    const bar = h("progress", { class: "bar", "aria-label": `Progress of ${name}` });
    const status = h("p", { class: "said quiet" });
    const cancel = h("button", { type: "button", "aria-label": `Cancel ${name}` }, "Cancel");
    let problem = "";
    cancel.addEventListener("click", async () => {
      cancel.disabled = true;
      try {
        await link.post("/cancel", { call: id });
      } catch (error) {
        problem = whyFailed(error);
        cancel.disabled = false;
        show();
      }
    });
    const item = h(
      "li",
      { "data-call": id },
      h(
        "span",
        { class: "title" },
        h("a", { href: `#/calls/${encodeURIComponent(id)}` }, name),
        took,
      ),
      cancel,
      bar,
      status,
    );
    return {
      element: item,
      show(call) {
        const runs = call.state === "running";
        item.className = call.state;
        cancel.hidden = !runs;
        bar.hidden = !runs || waits(call);
        if (call.total !== null && call.total > 0 && call.progress !== null) {
          bar.max = call.total;
          bar.value = Math.min(call.progress, call.total);
        } else bar.removeAttribute("value");
        const seconds = runs ? Math.max(0, store.now() - call.started) : call.seconds;
        write(took, duration(1000 * seconds));
        write(status, problem || (runs ? aboutRunning(call) : aboutEnd(call)));
      },
    };
  }

  /** @param {CallRow} call */
  function waits(call) {
    return [...store.rows("questions").values()].some((question) => question.call === call.id);
  }

  /** @param {CallRow} call */
  function aboutRunning(call) {
    const browser = isElsewhere(call) ? `in ${browserOf(call)?.name}` : "";
    const about = [call.client ? `for ${call.client}` : "", site(call.url), browser];
    return [waits(call) ? "Waiting for your answer" : (call.message ?? ""), ...about]
      .filter(Boolean)
      .join(" · ");
  }

  /** @param {CallRow} call */
  function aboutEnd(call) {
    const state = call.state.replace("_", " ");
    const status = state.charAt(0).toUpperCase() + state.slice(1);
    return call.error === null ? status : `${status}: ${call.error.message}`;
  }

  setInterval(() => items.size > 0 && element.isConnected && show(), 500);
  return { element, show };
}
