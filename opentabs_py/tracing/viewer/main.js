/**
 * The reader's actions: filter, zoom, choose, switch between light and dark.
 */

/** @import {Call} from "./model.js" */
import { button, describe } from "./details.js";
import { byId, icon, make, OUTCOMES, readData, select } from "./model.js";
import { Timeline } from "./timeline.js";

(() => {
  const data = readData();
  const outcomes = new Set(OUTCOMES.map(([outcome]) => outcome));
  const query = /** @type {HTMLInputElement} */ (byId("query"));
  const details = byId("details");
  const rows = byId("rows");
  const dialog = /** @type {HTMLDialogElement} */ (byId("keys"));
  const timeline = new Timeline(data.calls, showDetails);

  // --- filtering ---

  function filter() {
    const calls = select(data.calls, query.value, outcomes);
    timeline.show(calls);
    const all = calls.length === data.calls.length;
    byId("count").textContent = all ? "" : `${calls.length} of ${data.calls.length} shown`;
  }

  function addOutcomes() {
    for (const [outcome, text] of OUTCOMES) {
      const count = data.calls.filter((call) => call.outcome === outcome).length;
      if (count === 0) {
        continue;
      }
      const chip = button("", "", () => {
        if (!outcomes.delete(outcome)) {
          outcomes.add(outcome);
        }
        chip.setAttribute("aria-pressed", String(outcomes.has(outcome)));
        filter();
      });
      chip.append(icon(outcome), make("span", "", text), make("span", "count", String(count)));
      chip.className = "chip";
      chip.setAttribute("aria-pressed", "true");
      byId("outcomes").append(chip);
    }
  }

  // --- details ---

  /**
   * @param {Call} call
   * @param {boolean} asked
   */
  function showDetails(call, asked) {
    const actions = { zoom: () => timeline.zoomTo(call), close: hideDetails };
    details.replaceChildren(...describe(call, data.started, actions));
    details.scrollTop = 0;
    if (asked) {
      document.body.classList.add("open");
    }
  }

  function hideDetails() {
    document.body.classList.remove("open");
    rows.focus();
  }

  // --- keyboard ---

  /** @type {Record<string, () => void>} */
  const rowKeys = {
    ArrowDown: () => timeline.step(1),
    ArrowUp: () => timeline.step(-1),
    PageDown: () => timeline.step(timeline.page),
    PageUp: () => timeline.step(-timeline.page),
    Home: () => timeline.step(-data.calls.length),
    End: () => timeline.step(data.calls.length),
    ArrowLeft: () => timeline.move(-0.15),
    ArrowRight: () => timeline.move(0.15),
    Enter: () => timeline.selected !== null && timeline.zoomTo(timeline.selected),
  };
  /** @type {Record<string, () => void>} */
  const keys = {
    "+": () => timeline.zoom(1.5),
    "=": () => timeline.zoom(1.5),
    "-": () => timeline.zoom(1 / 1.5),
    0: () => timeline.fit(),
    "/": () => query.focus(),
    t: switchTheme,
    "?": () => dialog.showModal(),
    Escape: hideDetails,
  };

  addEventListener("keydown", (event) => {
    const typing = event.target === query;
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) {
      return;
    }
    if (typing) {
      if (event.key === "Escape" || event.key === "Enter" || event.key === "ArrowDown") {
        rows.focus();
      }
      return;
    }
    const onRows = document.activeElement === rows || document.activeElement === document.body;
    const action = (onRows ? rowKeys[event.key] : undefined) ?? keys[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  });

  // --- light and dark ---

  function switchTheme() {
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const now = root.dataset.theme ?? system;
    root.dataset.theme = now === "dark" ? "light" : "dark";
    timeline.draw();
  }

  // --- the start ---

  function summary() {
    const failed = data.calls.filter(({ outcome }) => outcome !== "succeeded").length;
    const calls = data.calls.length === 1 ? "1 call" : `${data.calls.length} calls`;
    const parts = [new Date(data.started * 1000).toLocaleString(), calls];
    if (failed > 0) {
      parts.push(`${failed} without a value`);
    }
    if (data.cut > 0) {
      parts.push("its writer was killed, or its disk was full: what ended last may be missing");
    }
    return parts.join(" · ");
  }

  byId("file").textContent = data.title;
  byId("summary").textContent = data.calls.length === 0 ? "no calls" : summary();
  addOutcomes();
  query.addEventListener("input", filter);
  byId("in").addEventListener("click", () => timeline.zoom(1.5));
  byId("out").addEventListener("click", () => timeline.zoom(1 / 1.5));
  byId("fit").addEventListener("click", () => timeline.fit());
  byId("theme").addEventListener("click", switchTheme);
  byId("help").addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("click", () => dialog.close());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.draw());
  filter();
  timeline.fit();
  const first = data.calls.find(({ outcome }) => outcome !== "succeeded") ?? data.calls[0];
  if (first !== undefined) {
    timeline.choose(first, false);
  }
})();
