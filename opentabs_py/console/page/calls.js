/**
 * The calls, live: a list, and the details of the chosen one.
 */

/** @import {Call} from "./viewer/model.js" */
/** @import {Console, View} from "./main.js" */
/** @import {CallRow} from "./store.js" */

import {
  clock,
  emptyState,
  h,
  matches,
  offerNames,
  searchField,
  shownOf,
  site,
  swap,
  terms,
  wordsOf,
  write,
} from "./dom.js";
import { whyFailed } from "./link.js";
import { List } from "./list.js";
import { describe } from "./viewer/details.js";
import { duration, icon, visible } from "./viewer/model.js";

const LOOK_AGAIN = 400; // ms; how often a running call is read that is open

/** @type {[string, string][]} */
const STATES = [
  ["", "All outcomes"],
  ["running", "Running"],
  ["waiting", "Waiting for you"],
  ["unsuccessful", "Unsuccessful"],
  ["succeeded", "Succeeded"],
  ["failed", "Failed"],
  ["timed_out", "Timed out"],
  ["lost", "Lost"],
  ["refused", "Refused"],
  ["cancelled", "Cancelled"],
];

const WAITING = "waiting for you"; // the state of a call that a question is about

/**
 * Where a call that runs is, by the place it has reached.
 * @type {Record<string, string>}
 */
const SO_FAR = {
  server: "the server: nothing has been sent to the browser yet",
  websocket: "the WebSocket: the service worker has not confirmed it yet",
  "service worker": "the service worker: the page's relay has not confirmed it yet",
  relay: "the relay in the page: the tool has not started yet",
  page: "the page: the tool is running",
};

/** @typedef {{started: number, running: boolean, calls: Call[]}} Details */

/**
 * @param {Console} console_
 * @returns {View}
 */
export function callsView({ store, link, go }) {
  const narrow = matchMedia("(max-width: 900px)");
  const query = searchField("Filter calls", "Filter by tool, page, error or id", () => show());
  const state = h(
    "select",
    { "aria-label": "Outcome", onchange: () => show() },
    ...STATES.map(([value, text]) => h("option", { value }, text)),
  );
  const plugin = h("select", { "aria-label": "Plugin", onchange: () => show() });
  const count = h("span", { class: "quiet count" });
  /** @type {List<CallRow>} */
  const list = new List({
    label: "Calls",
    key: (call) => call.id,
    height: () => (narrow.matches ? 58 : 38),
    render: row,
    name: (call) => `${call.name}, ${stateOf(call)}, ${timeText(call)}`,
    onChoose: (call, asked) => {
      if (asked || !narrow.matches) go(`calls/${call.id}`, !asked);
    },
    onLeave: () => go("calls"),
    growsAtTop: true,
  });
  const empty = h("div", {});
  const earlier = new Earlier(
    link,
    () => store.rows("calls"),
    () => show(),
  );
  const details = h("aside", {
    class: "details",
    "aria-label": "The selected call",
    tabindex: "-1",
  });
  const element = h(
    "div",
    { class: "view calls" },
    h(
      "header",
      {},
      h("h1", {}, "Calls"),
      count,
      h("div", { class: "filters" }, query, plugin, state),
    ),
    h(
      "div",
      { class: "split" },
      h("section", { class: "column" }, list.element, empty, earlier.element),
      details,
    ),
  );
  let opened = "";
  let shownAs = ""; // what the details were drawn from
  /** @type {Details | null} */
  let known = null; // of the call that is open
  let looking = 0;
  /** @type {ReadonlySet<string | null>} */
  let asking = new Set(); // the calls that wait for an answer

  /** @param {CallRow} call */
  function isWaiting(call) {
    return call.state === "running" && asking.has(call.id);
  }

  /** @param {CallRow} call */
  function stateOf(call) {
    return isWaiting(call) ? WAITING : stateText(call);
  }

  /** @param {CallRow} call */
  function said(call) {
    if (isWaiting(call)) return "Waiting for your answer";
    if (call.state === "running") return call.message;
    return call.error?.message ?? call.message;
  }

  /** @param {CallRow} call */
  function row(call) {
    const bar = h("progress", { class: "bar", max: call.total ?? 1, "aria-label": "Progress" });
    if (call.total !== null && call.progress !== null) bar.value = call.progress;
    const running = call.state === "running";
    const waiting = isWaiting(call);
    return h(
      "div",
      { class: `call ${call.state} ${waiting ? "waiting" : ""}` },
      h(
        "span",
        { class: "sign" },
        call.state === "running" ? h("span", { class: "pulse" }) : icon(call.state),
      ),
      h("span", { class: "name" }, call.name),
      h(
        "span",
        { class: "said" },
        running &&
          !waiting &&
          (call.reports > 0 ? bar : h("progress", { class: "bar", "aria-label": "Progress" })),
        h("span", { class: "text" }, visible(said(call) ?? "")),
      ),
      h("span", { class: "client quiet" }, call.client ?? ""),
      h("span", { class: "where quiet" }, site(call.url)),
      h("span", { class: "when quiet" }, clock(call.started)),
      h("span", { class: "took" }, timeText(call)),
    );
  }

  /** @param {CallRow} call */
  function timeText(call) {
    const running = call.state === "running";
    return duration(1000 * (running ? Math.max(0, store.now() - call.started) : call.seconds));
  }

  function show() {
    const words = wordsOf(query.value);
    const all = [...store.rows("calls").values(), ...earlier.others()];
    offerNames(
      plugin,
      [["", "All plugins"]],
      all.map((call) => call.plugin),
    );
    asking = new Set([...store.rows("questions").values()].map((question) => question.call));
    const shown = all.filter(
      (call) =>
        (state.value === "waiting" ? isWaiting(call) : isOf(call, state.value)) &&
        (plugin.value === "" || call.plugin === plugin.value) &&
        matches(
          words,
          `${call.name} ${call.id} ${call.url ?? ""} ${stateOf(call)} ${call.error?.code ?? ""} ${call.error?.message ?? ""} ${call.message ?? ""} ${call.client ?? ""}`,
        ),
    );
    shown.sort((a, b) => b.started - a.started);
    const isKnown = store.isFilled || all.length > 0;
    write(count, isKnown ? shownOf(shown.length, all.length, "call") : "");
    list.element.hidden = shown.length === 0;
    empty.hidden = shown.length > 0;
    if (shown.length === 0) empty.replaceChildren(...(isKnown ? [nothing(all.length)] : []));
    list.show(shown);
  }

  // --- the chosen call ---

  async function look() {
    clearTimeout(looking);
    const id = opened;
    if (id === "") return;
    const kept = earlier.get(id);
    const call = store.rows("calls").get(id);
    if (call === undefined && kept !== undefined) {
      fillRow(kept, "From the audit, which does not record hops.");
      return;
    }
    const version = JSON.stringify([call, asking.has(id)]);
    if (version !== shownAs || call?.state === "running") {
      try {
        const data = await link.get(`/calls/${id}`);
        if (id !== opened) return;
        shownAs = version;
        known = data;
        fill(data);
      } catch (error) {
        if (id !== opened) return;
        shownAs = version;
        if (known !== null) {
          fill(call === undefined ? known : withEnd(known, call)); // all that will ever be known
          return;
        }
        const why = whyFailed(error);
        if (call !== undefined) {
          fillRow({ ...call, arguments: null, result: null }, why);
          return;
        }
        details.replaceChildren(
          h(
            "div",
            { class: "empty" },
            h("p", {}, why),
            h("button", { type: "button", onclick: () => go("calls") }, "Close"),
          ),
        );
      }
    }
    if (call?.state === "running") looking = window.setTimeout(look, LOOK_AGAIN);
  }

  /** @param {Details} data */
  function fill({ started, running, calls: [recorded] }) {
    if (recorded === undefined) return;
    const waiting = running && asking.has(recorded.id);
    const call = running ? asRunning(recorded, waiting) : recorded;
    const place = h("div", { class: "call-details", "data-call": call.id });
    place.append(...describe(call, started, { zoom: () => {}, close: () => go("calls") }));
    if (running) {
      const state = waiting ? "waiting" : "running";
      place.querySelector("h2 .icon")?.replaceWith(h("span", { class: `pulse ${state}` }));
      for (const part of place.querySelectorAll(".pill, .journey"))
        part.classList.replace(call.outcome, state);
    }
    const buttons = place.querySelector(".second");
    buttons?.querySelector("button")?.remove(); // there is no axis to zoom
    if (running) {
      const cancel = h("button", { type: "button", class: "cancel" }, "Cancel");
      cancel.addEventListener("click", () => {
        cancel.disabled = true;
        link.post("/cancel", { call: call.id }).catch(() => {
          cancel.disabled = false;
        });
      });
      buttons?.append(cancel);
    }
    buttons?.append(
      waiting ? h("a", { class: "button", href: "#/approvals" }, "Answer") : tryLink(call.name),
    );
    const row = store.rows("calls").get(call.id);
    const more = terms([
      ["Client", row?.client],
      ["Allowed", row?.allowed],
    ]);
    place.querySelector(".facts")?.append(...more);
    const focused = details.contains(document.activeElement);
    const { scrollTop } = details;
    const shown = details.firstElementChild;
    if (shown?.getAttribute("data-call") === call.id) renew(shown, place);
    else details.replaceChildren(place);
    details.scrollTop = scrollTop;
    if (focused && !details.contains(document.activeElement)) details.focus();
  }

  /**
   * Show what is known of a call without its record.
   * @param {Omit<EarlierCall, "number">} call
   * @param {string} why there is no record
   */
  function fillRow(call, why) {
    const facts = terms([
      ["When", `${new Date(1000 * call.started).toLocaleString()}, for ${timeText(call)}`],
      [
        "Error",
        call.error && visible([call.error.code, call.error.message].filter(Boolean).join(": ")),
      ],
      ["Site", call.url && site(call.url)],
      ["Tab", call.tab?.toString()],
      ["Client", call.client],
      ["Allowed", call.allowed],
    ]);
    const values = [
      ["Arguments", call.arguments],
      ["Result", call.result],
    ].flatMap(([name, text]) => (text ? [h("h3", {}, name), h("pre", {}, visible(text))] : []));
    const close = h("button", { type: "button", onclick: () => go("calls") }, "Close");
    details.replaceChildren(
      h(
        "div",
        { class: "call-details earlier-call" },
        h("h2", {}, call.name, " ", h("span", { class: `pill ${call.state}` }, stateText(call))),
        h("p", { class: "quiet" }, why),
        h("div", { class: "buttons" }, tryLink(call.name), close),
        h("dl", { class: "facts" }, ...facts),
        ...values,
      ),
    );
  }

  /** @param {string} id */
  function open(id) {
    if (id === opened) return;
    opened = id;
    shownAs = "";
    known = null;
    element.classList.toggle("opened", id !== "");
    list.mark(id);
    if (id === "") {
      const hadFocus = details.contains(document.activeElement);
      details.replaceChildren();
      if (hadFocus) list.element.focus();
      return;
    }
    look();
    if (narrow.matches) details.focus();
  }

  narrow.addEventListener("change", () => list.refresh());
  setInterval(() => {
    const anyRuns = [...store.rows("calls").values()].some((call) => call.state === "running");
    if (element.isConnected && anyRuns) list.refresh();
  }, 500);
  return {
    element,
    search: query,
    show([id = ""]) {
      show();
      open(id);
    },
    update(changed) {
      if (!changed.has("calls") && !changed.has("questions")) return;
      show();
      look();
    },
    leave: () => go("calls"),
  };
}

/** @param {number} all how many calls there are, if none is shown */
function nothing(all) {
  if (all > 0) return emptyState("No call matches.", "Change the filter above.");
  const link = h("a", { href: "#/try" }, "Try a tool");
  return emptyState("No calls yet", "Calls of every client appear here as they begin. ", link, ".");
}

/**
 * A call that runs; its record so far describes it as if it ended now.
 * @param {Call} call
 * @param {boolean} waiting whether it waits for an answer
 * @returns {Call}
 */
function asRunning(call, waiting) {
  // What its worker knows of it is not known here yet, so its text stays as it is.
  const isInFleet = call.reached === "server" && call.hops.at(-1)?.carrier === "fleet";
  const soFar = isInFleet ? undefined : SO_FAR[call.reached];
  return {
    ...call,
    outcomeText: waiting ? WAITING : "running",
    reachedText: call.reachedText && (soFar ?? call.reachedText),
    hops: call.hops.map((hop) => ({ ...hop, unfinished: false })),
  };
}

/**
 * What was known of a call, with the end that the list shows.
 * @param {Details} known
 * @param {CallRow} row
 * @returns {Details}
 */
function withEnd(known, row) {
  if (!known.running || row.state === "running") return known;
  const { state: outcome, error } = row;
  const detail = { category: null, retryable: false, retryAfterMs: null, stack: null };
  const calls = known.calls.map((call) => ({
    ...call,
    outcome,
    outcomeText: stateText(row),
    error: error && { ...detail, ...error },
  }));
  return { ...known, running: false, calls };
}

/** @param {string} tool */
function tryLink(tool) {
  return h("a", { class: "button", href: `#/try/${encodeURIComponent(tool)}` }, "Try it");
}

/**
 * Draw a call again, and leave its buttons where they are: a button that is replaced between the press of a mouse
 * and its release gets no click, and loses the focus.
 * @param {Element} shown
 * @param {Element} now
 */
function renew(shown, now) {
  for (const part of ["h2", ".pill", ".second strong", ".second a"])
    swap(shown.querySelector(part), now.querySelector(part));
  if (now.querySelector(".cancel") === null) shown.querySelector(".cancel")?.remove();
  const [, ...before] = shown.children; // without the head
  const [, ...sections] = now.children;
  for (const [at, section] of sections.entries()) {
    const old = before[at];
    if (old === undefined) shown.append(section);
    else swap(old, section);
  }
  for (const old of before.slice(sections.length)) old.remove();
}

/** @typedef {CallRow & {number: number, arguments: string | null, result: string | null}} EarlierCall */

/** The calls of the audit that have been asked for, and the button that asks for more. */
class Earlier {
  /** @type {Map<string, EarlierCall>} */
  #calls = new Map();
  /** @type {number | null} */
  #before = null;
  #link;
  #live;
  #onChange;

  /**
   * @param {Console["link"]} link
   * @param {() => ReadonlyMap<string, unknown>} live the calls that are listed without it
   * @param {() => void} onChange
   */
  constructor(link, live, onChange) {
    this.#link = link;
    this.#live = live;
    this.#onChange = onChange;
    this.button = h("button", { type: "button" }, "Show earlier calls");
    this.text = h("span", { class: "quiet", role: "status" });
    this.element = h("div", { class: "earlier" }, this.button, this.text);
    this.button.addEventListener("click", () => this.#read());
  }

  /** @param {string} id */
  get(id) {
    return this.#calls.get(id);
  }

  /** Those that are not live. */
  others() {
    const live = this.#live();
    return [...this.#calls.values()].filter((call) => !live.has(call.id));
  }

  /** Read until there is one more to show; the newest ones of the audit are those that are live. */
  async #read() {
    this.button.disabled = true;
    const shown = this.others().length;
    try {
      while (this.others().length === shown && !this.button.hidden) await this.#readPage();
      write(this.text, this.others().length === 0 ? "There are no earlier calls." : "");
    } catch (error) {
      write(this.text, whyFailed(error));
    }
    this.button.disabled = false;
    this.#onChange();
  }

  async #readPage() {
    const page = await this.#link.get(
      this.#before === null ? "/history" : `/history?before=${this.#before}`,
    );
    for (const call of page.calls) this.#calls.set(call.id, call);
    this.#before = page.calls.at(-1)?.number ?? this.#before;
    this.button.hidden = !page.more;
  }
}

/**
 * @param {CallRow} call
 * @param {string} state
 */
function isOf(call, state) {
  if (state === "") return true;
  if (state === "unsuccessful") return call.state !== "running" && call.state !== "succeeded";
  return call.state === state;
}

/** @param {CallRow} call */
function stateText(call) {
  return call.state.replace("_", " ");
}
