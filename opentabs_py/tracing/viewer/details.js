/**
 * The details of one call.
 */

/** @import {Call, Hop} from "./model.js" */
import { duration, fraction, icon, kindOf, make, PLACES, visible } from "./model.js";

const SHOWN = 200; // reports or records, until the reader asks for all
const CUT_OVER = 0.5; // of the whole; a hop longer than that gets that share of the axis

/**
 * @param {Call} call
 * @param {number} started of the trace, in seconds since the epoch
 * @param {{zoom(): void, close(): void}} actions
 */
export function describe(call, started, actions) {
  return [
    head(call, actions),
    call.error === null ? "" : errorBox(call.error),
    call.reachedText === null
      ? ""
      : section("Reached", [journey(call), make("p", "note", `${sentence(call.reachedText)}.`)]),
    section("Where the time went", [waterfall(call)]),
    call.left === null ? "" : section("Timers", timers(call.left, call.limits)),
    reportsOf(call),
    logsOf(call),
    linksOf(call),
    section("About", [facts(call, started)]),
    call.arguments === null ? "" : section("Arguments", [code(call.arguments)]),
    call.result === null ? "" : section("Result", [code(call.result)]),
  ].filter((part) => part !== "");
}

/** @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * @param {string} title
 * @param {(Node | string)[]} content
 */
function section(title, content) {
  return make("section", "", [make("h3", "", title), ...content]);
}

/**
 * @param {string} text
 * @param {string} label
 * @param {() => void} action
 */
export function button(text, label, action) {
  const element = make("button", "", text);
  element.setAttribute("type", "button");
  if (label !== "") {
    element.setAttribute("aria-label", label);
    element.title = label;
  }
  element.addEventListener("click", action);
  return element;
}

/**
 * @param {Call} call
 * @param {{zoom(): void, close(): void}} actions
 */
function head(call, actions) {
  const title = make("h2", "", [icon(call.outcome), make("span", "", call.name)]);
  const pill = make("span", `pill ${call.outcome}`, call.outcomeText);
  const close = button("×", "Close the details", actions.close);
  close.classList.add("close");
  const zoom = button("Zoom to call", "", actions.zoom);
  return make("div", "head", [
    make("div", "first", [title, close]),
    make("div", "second", [pill, make("strong", "", duration(call.ms)), zoom]),
  ]);
}

/** @param {NonNullable<Call["error"]>} error */
function errorBox(error) {
  const marks = [make("code", "", error.code)];
  if (error.category !== null) {
    marks.push(make("span", "tag", error.category));
  }
  if (error.retryable) {
    const after = error.retryAfterMs === null ? "" : ` after ${duration(error.retryAfterMs)}`;
    marks.push(make("span", "tag", `retryable${after}`));
  }
  const rows = [make("div", "badges", marks), make("p", "", visible(error.message))];
  if (error.stack !== null) {
    rows.push(scrollable(make("pre", "stack", visible(error.stack))));
  }
  return make("div", "error", rows);
}

/** @param {Call} call */
function journey(call) {
  const last = PLACES.findIndex(([place]) => place === call.reached);
  const steps = PLACES.map(([, name = ""], index) => {
    const state = index < last ? "done" : index === last ? "last" : "";
    const step = make("li", state, name);
    if (index === last) {
      step.setAttribute("aria-current", "step");
    }
    return step;
  });
  return make("ol", `journey ${call.outcome}`, steps);
}

// --- hops ---

/**
 * Where a time lies on the axis of one call, from 0 to 1: the longest hop is cut where it
 * would leave the others no room. The terminal's drawing does the same.
 * @param {readonly Hop[]} hops
 * @returns {{share: (at: number) => number, cut: Hop | null}}
 */
function axisOf(hops) {
  const whole = hops.reduce((end, { start, ms }) => Math.max(end, start + ms), 0);
  const longest = hops.reduce((most, hop) => (hop.ms > most.ms ? hop : most), hops[0] ?? NO_HOP);
  const rest = whole - longest.ms;
  if (whole <= 0) {
    return { share: () => 0, cut: null };
  }
  if (longest.ms <= CUT_OVER * whole || rest <= 0) {
    return { share: (at) => at / whole, cut: null };
  }
  const { start, ms } = longest;
  const share = (/** @type {number} */ at) => {
    const outside = Math.min(at, start) + Math.max(0, at - start - ms);
    const inside = Math.min(Math.max(at, start), start + ms) - start;
    return (outside / rest) * (1 - CUT_OVER) + (inside / ms) * CUT_OVER;
  };
  return { share, cut: longest };
}

/** @type {Hop} */
const NO_HOP = { hop: "", carrier: "", start: 0, ms: 0, unfinished: false };

/** @param {Call} call */
function waterfall(call) {
  if (call.hops.length === 0)
    return make("p", "note", "Not measured: no console or trace was open when the call began.");
  const { share, cut } = axisOf(call.hops);
  const percent = (/** @type {number} */ at) =>
    `${(Math.min(Math.max(share(at), 0), 1) * 100).toFixed(3)}%`;
  const rows = call.hops.map((hop) => {
    const kind = kindOf(hop);
    const bar = make("span", `hop ${kind}${hop === cut && !hop.unfinished ? " cut" : ""}`);
    bar.style.left = percent(hop.start);
    bar.style.width = `calc(${percent(hop.start + hop.ms)} - ${percent(hop.start)})`;
    const lane = make("td", "lane", [make("span", "axis", [bar])]);
    const name = hop.unfinished ? `${hop.hop} (ended here)` : hop.hop;
    return make("tr", "", [
      make("th", "", [make("span", `swatch ${kind}`), name]),
      make("td", "number", duration(hop.ms)),
      lane,
    ]);
  });
  for (const [name, marks, className] of /** @type {const} */ ([
    ["progress", call.progress, "mark report"],
    ["log", call.logs, "mark log"],
  ])) {
    if (marks.length > 0) {
      rows.push(markRow(name, marks, className, percent));
    }
  }
  const notes = [];
  if (cut !== null) {
    notes.push("The longest bar is shortened.");
  }
  if (call.adjusted > 0) {
    notes.push(`Corrected clocks that disagreed by ${duration(call.adjusted)}.`);
  }
  const table = make("table", "hops", rows);
  return make("div", "", notes.length > 0 ? [table, make("p", "note", notes.join(" "))] : [table]);
}

/**
 * @param {string} name
 * @param {readonly {at: number}[]} marks
 * @param {string} className
 * @param {(at: number) => string} percent
 */
function markRow(name, marks, className, percent) {
  const places = new Set(marks.map(({ at }) => percent(at)));
  const elements = [...places].map((left) => {
    const mark = make("span", className);
    mark.style.left = left;
    return mark;
  });
  return make("tr", "marks", [
    make("th", "", name),
    make("td", "number", String(marks.length)),
    make("td", "lane", [make("span", "axis", elements)]),
  ]);
}

// --- timers, reports, logs ---

/**
 * @param {{idle: number, ceiling: number}} left
 * @param {{idle: number, ceiling: number}} limits
 */
function timers(left, limits) {
  return /** @type {const} */ (["idle", "ceiling"]).map((name) => {
    const used = make("span", "used");
    const share = 1 - left[name] / limits[name];
    used.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
    const gauge = make("span", `gauge${left[name] <= 0 ? " spent" : ""}`, [used]);
    const text = `${left[name].toFixed(1)} of ${limits[name]} s left`;
    return make("div", "timer", [make("span", "", name), gauge, make("span", "number", text)]);
  });
}

/** @param {Call} call */
function reportsOf(call) {
  if (call.reports === 0 && call.dropped === 0) {
    return call.left === null ? "" : section("Progress", [make("p", "note", "No report came.")]);
  }
  const rows = call.progress.map((report) =>
    make("tr", "", [
      make("td", "number", duration(report.at)),
      make("td", "number", fraction(report.progress, report.total)),
      make("td", "text", visible(report.message ?? "")),
    ]),
  );
  const dropped = call.dropped > 0 ? `${call.dropped} more did not arrive. ` : "";
  return section(`Progress (${call.reports})`, listing(rows, call.reports, dropped));
}

/** @param {Call} call */
function logsOf(call) {
  if (call.logCount === 0) {
    return "";
  }
  const rows = call.logs.map((log) =>
    make("tr", "", [
      make("td", "number", duration(log.at)),
      make("td", "", [make("span", `level ${log.level}`, log.level)]),
      make("td", "text", visible(log.message)),
    ]),
  );
  return section(`Log (${call.logCount})`, listing(rows, call.logCount, ""));
}

/** @param {Call} call */
function linksOf(call) {
  if (call.links.length < 2) {
    return "";
  }
  const rows = call.links
    .slice(1)
    .map((link) =>
      make("tr", "", [
        make("td", "number", duration(link.at)),
        make("td", "text", `${link.text}${link.boot === null ? "" : ` (boot ${link.boot})`}`),
      ]),
    );
  const restarts = call.restarts === 1 ? "once" : `${call.restarts} times`;
  const note = call.restarts > 0 ? `The service worker was restarted ${restarts}.` : "";
  return section("Connection", listing(rows, rows.length, note));
}

/**
 * A table of the first rows, with a button for the rest.
 * @param {HTMLElement[]} rows
 * @param {number} count how many there were; more than rows when the middle was not kept
 * @param {string} note
 */
function listing(rows, count, note) {
  const table = make("table", "list", rows.slice(0, SHOWN));
  /** @type {(Node | string)[]} */
  const parts = rows.length > 0 ? [scrollable(make("div", "scroll", [table]))] : [];
  if (rows.length > SHOWN) {
    const more = button(`Show all ${rows.length}`, "", () => {
      table.append(...rows.slice(SHOWN));
      more.remove();
    });
    parts.push(more);
  }
  const missing = count > rows.length ? `The middle ${count - rows.length} were not kept.` : "";
  if (note !== "" || missing !== "") {
    parts.push(make("p", "note", `${note}${missing}`));
  }
  return parts;
}

// --- the rest ---

/**
 * @param {Call} call
 * @param {number} started
 */
function facts(call, started) {
  const time = new Date(started * 1000 + call.at).toLocaleString();
  const after = call.at > 0 ? ` (${duration(call.at)} after the first call)` : "";
  /** @type {[string, string | null][]} */
  const rows = [
    ["Started", time + after],
    ["Call", call.id],
    ["Plugin", call.plugin],
    ["Page", call.url],
    ["Tab", call.tab === null ? null : String(call.tab)],
    ["Sent", call.attempts > 1 ? `${call.attempts} times: pages left just before` : null],
  ];
  const list = make("dl", "facts");
  for (const [name, value] of rows) {
    if (value !== null) {
      list.append(make("dt", "", name), make("dd", "", value));
    }
  }
  return list;
}

/** @param {string} text JSON, or the beginning of it */
function code(text) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It was cut to a bound.
  }
  return scrollable(make("pre", "", visible(shown)));
}

/**
 * Let the keyboard scroll it.
 * @param {HTMLElement} block
 */
function scrollable(block) {
  block.tabIndex = 0;
  return block;
}
