/**
 * The page's model, read from its data; time formats; the filter of calls.
 * Whatever a page on the web wrote is text here and is only ever set as text.
 *
 * @typedef {"succeeded" | "failed" | "refused" | "timed_out" | "cancelled" | "lost"} Outcome
 * @typedef {{hop: string, carrier: string, start: number, ms: number, unfinished: boolean}} Hop
 * @typedef {{at: number, progress: number | null, total: number | null, message: string | null}}
 *     ProgressReport
 * @typedef {{at: number, level: string, message: string}} Log
 * @typedef {{at: number, boot: string | null, text: string}} Link
 *
 * @typedef {object} Call times in ms: `at` since the trace began, those of its parts since `at`
 * @property {string} id
 * @property {string} name
 * @property {string | null} plugin
 * @property {string | null} tool
 * @property {number} at
 * @property {number} ms
 * @property {Outcome} outcome
 * @property {string} outcomeText
 * @property {string} reached
 * @property {string | null} reachedText how far it got on its way to a page; null if in the server, or unknown
 * @property {{code: string, message: string, category: string | null, retryable: boolean,
 *     retryAfterMs: number | null, stack: string | null} | null} error
 * @property {number | null} tab
 * @property {string | null} url
 * @property {number} attempts
 * @property {Hop[]} hops
 * @property {number} adjusted
 * @property {number} reports
 * @property {ProgressReport[]} progress
 * @property {number} dropped
 * @property {number} logCount
 * @property {Log[]} logs
 * @property {Link[]} links
 * @property {number} restarts
 * @property {{idle: number, ceiling: number}} limits
 * @property {{idle: number, ceiling: number} | null} left
 * @property {string | null} arguments
 * @property {string | null} result
 *
 * @typedef {{title: string, started: number, cut: number, calls: Call[]}} TraceData
 */

/** @type {readonly (readonly [Outcome, string])[]} */
export const OUTCOMES = [
  ["succeeded", "succeeded"],
  ["failed", "failed"],
  ["timed_out", "timed out"],
  ["lost", "lost"],
  ["refused", "refused"],
  ["cancelled", "cancelled"],
];

/** The places of a call's way, as `reached` names them. */
export const PLACES = [
  ["server", "Server"],
  ["websocket", "WebSocket"],
  ["service worker", "Service worker"],
  ["relay", "Relay"],
  ["page", "Page"],
  ["answer", "Answer"],
];

/**
 * What a hop is drawn as: who carries the call there, or that the call ended there.
 * @param {Hop} hop
 */
export function kindOf(hop) {
  return hop.unfinished ? "unfinished" : hop.carrier;
}

// Control and format characters, which reverse text or are not seen, but not what ends a line, tabs, and the two
// joiners that some languages and emojis need.
const UNSEEN = /(?![\n\r\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/**
 * An untrusted text with what would not be seen in it, or would change its order, as JSON's escapes.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(UNSEEN, (found) =>
    found.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}

/** @returns {TraceData} */
export function readData() {
  return JSON.parse(byId("data").textContent ?? "");
}

/** @param {string} id */
export function byId(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/**
 * Makes an element; text is set as text.
 * @param {string} tag
 * @param {string} [className]
 * @param {string | (Node | string)[]} [content]
 */
export function make(tag, className = "", content = []) {
  const element = document.createElement(tag);
  if (className !== "") {
    element.className = className;
  }
  element.append(...(typeof content === "string" ? [content] : content));
  return element;
}

/**
 * The same text as the terminal's: `0.38 ms`, `12.3 ms`, `1.52 s`, `4 min 05 s`.
 * @param {number} ms
 */
export function duration(ms) {
  if (ms < 99.5) {
    return `${ms.toFixed(ms < 9.95 ? 2 : 1)} ms`;
  }
  if (ms < 999.5) {
    return `${ms.toFixed(0)} ms`;
  }
  if (ms < 59_995) {
    return `${(ms / 1000).toFixed(2)} s`;
  }
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
}

/**
 * A point on the axis, with as many digits as tell it from its neighbour.
 * @param {number} ms
 * @param {number} step to that neighbour
 */
export function axisTime(ms, step) {
  const digits = (/** @type {number} */ unit) =>
    Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9)));
  if (step < 1) {
    return `${ms.toFixed(digits(1))} ms`;
  }
  if (step < 1000 && Math.abs(ms) < 10_000) {
    return `${ms.toFixed(0)} ms`;
  }
  if (step < 60_000 && Math.abs(ms) < 600_000) {
    return `${(ms / 1000).toFixed(digits(1000))} s`;
  }
  const minutes = Math.floor(ms / 60_000);
  const seconds = (ms - minutes * 60_000) / 1000;
  const rest = seconds.toFixed(digits(1000));
  return `${minutes}:${Number(rest) < 10 ? "0" : ""}${rest}`;
}

/**
 * A round step, so that neither too many nor too few fit.
 * @param {number} span ms
 * @param {number} count about how many are wanted
 */
export function roundStep(span, count) {
  const rough = span / Math.max(1, count);
  const minutes = [60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000];
  if (rough > 30_000) {
    return minutes.find((step) => step >= rough) ?? Math.ceil(rough / 3_600_000) * 3_600_000;
  }
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((each) => each * power >= rough) ?? 10;
  return Math.min(factor * power, 60_000);
}

/**
 * @param {number | null} progress
 * @param {number | null} total
 */
export function fraction(progress, total) {
  if (progress === null) {
    return "";
  }
  const short = (/** @type {number} */ value) => String(Number(value.toPrecision(6)));
  return total === null ? short(progress) : `${short(progress)} / ${short(total)}`;
}

/**
 * @param {readonly Call[]} calls
 * @param {string} query words, all of which must occur
 * @param {ReadonlySet<Outcome>} outcomes
 */
export function select(calls, query, outcomes) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return calls.filter((call) => {
    if (!outcomes.has(call.outcome)) {
      return false;
    }
    const { code = "", message = "" } = call.error ?? {};
    const text = `${call.name} ${call.id} ${call.url ?? ""} ${call.outcomeText} ${code} ${message}`;
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  });
}

const ICONS = {
  succeeded: "M3.5 8.5l3 3 6-7",
  failed: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  timed_out: "M8 4.5V8l2.5 1.5M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2",
  lost: "M6.5 4.5H5a3.5 3.5 0 0 0 0 7h1.5M9.5 4.5H11a3.5 3.5 0 0 1 0 7H9.5M8 2v2M8 12v2",
  refused: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M5 8h6",
  cancelled: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M4 4l8 8",
};

/** @param {Outcome} outcome */
export function icon(outcome) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", `icon ${outcome}`);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[outcome]);
  svg.append(path);
  return svg;
}
