/**
 * The details of one attempt at a test: its failure, its calls with their hops and screenshots, its
 * faults, what its recording did not answer, and what it printed.
 */

/** @import {Loader, Memory, Screenshot} from "./screenshots.js" */
/** @import {Call} from "./viewer/model.js" */

import { copyButton, h, plural } from "./dom.js";
import { screenshots } from "./screenshots.js";
import { describe } from "./viewer/details.js";
import { duration, icon } from "./viewer/model.js";

const ABOVE = 60; // px; what is seen of the test above the line that failed
const EXPLAINS = "OpenTabs: why "; // begins the title of a section that is open at first

/**
 * @typedef {{browser: string, seed: number, rules: string[], done: string[], log: string}} Injected
 * @typedef {{browser: string, recording: string, requests: {text: string, count: number}[], more: number}} Unanswered
 *
 * @typedef {object} Attempt
 * @property {"idle" | "passed" | "failed" | "skipped" | "xfailed"} state how it ended, if it has
 * @property {number} seconds
 * @property {string} why
 * @property {string} text
 * @property {[string, string][]} sections
 * @property {number} leftOut
 * @property {boolean} forgotten
 * @property {Record<string, string>} browsers the browser of each call
 * @property {string[]} running the calls that have not ended
 * @property {Screenshot[]} screenshots
 * @property {number} [screenshotsLeftOut] only in a report
 * @property {number} [run] the run that it belongs to, in a report of several
 * @property {Injected[]} injected
 * @property {Unanswered[]} unanswered
 * @property {number} started
 * @property {Call[]} calls
 *
 * @typedef {object} Around
 * @property {Loader} load
 * @property {Memory} memory
 * @property {string} key names the attempt, so that what is open in it stays open
 * @property {string} none what is said if it made no call; empty for nothing
 */

/**
 * @param {Attempt} attempt
 * @param {Around} around
 * @returns {(Node | null | false)[]}
 */
export function describeAttempt(attempt, around) {
  const { load, memory } = around;
  const failure = attempt.screenshots.filter(({ when }) => when === "failure");
  const { state, text, why } = attempt;
  return [
    state !== "failed" &&
      !text.includes(why) &&
      h("section", { "aria-label": "Reason" }, h("h3", {}, "Reason"), h("p", {}, why)),
    text !== "" &&
      h(
        "section",
        { "aria-label": "Failure" },
        h("h3", {}, state === "xfailed" ? "Failed, as expected" : "Failure"),
        errorText(text),
      ),
    failure.length > 0 &&
      h(
        "section",
        { "aria-label": "At the failure" },
        h("h3", {}, "At the failure"),
        screenshots(failure, load, memory),
      ),
    ...attempt.unanswered.map(mismatches),
    ...attempt.injected.map(injected),
    calls(attempt, around),
    (attempt.screenshotsLeftOut ?? 0) > 0 &&
      h(
        "p",
        { class: "quiet" },
        `${plural(attempt.screenshotsLeftOut ?? 0, "screenshot")} left out, because this report has reached its size limit.`,
      ),
  ];
}

/**
 * What an attempt printed and logged.
 * @param {Attempt} attempt
 * @param {Around} around
 */
export function describePrinted(attempt, around) {
  return attempt.sections.map(([name, text], at) => section(name, text, `${at} ${name}`, around));
}

/** @param {string} text pytest's: `E` marks the lines that say what is wrong, `>` the one that failed */
function errorText(text) {
  const block = h("pre", { class: "failure", tabindex: "0" });
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    const kind = /^E( |$)/.test(line) ? "said" : /^>/.test(line) ? "at" : "";
    const end = index < lines.length - 1 ? "\n" : "";
    block.append(kind === "" ? line + end : h("span", { class: kind }, line + end));
  });
  requestAnimationFrame(() => {
    const at = block.querySelector(".at, .said");
    if (at instanceof HTMLElement) block.scrollTop = at.offsetTop - block.offsetTop - ABOVE;
  });
  return block;
}

/**
 * @param {string} name
 * @param {string} text
 * @param {string} id
 * @param {Around} around
 */
function section(name, text, id, { memory, key }) {
  const part = h(
    "details",
    { class: "fold" },
    h("summary", { "data-keep": key + id }, name),
    h("pre", { tabindex: "0" }, text),
  );
  memory.keep(part, key + id, name.startsWith(EXPLAINS));
  return h("section", { "aria-label": name }, part);
}

// --- calls ---

/**
 * @param {Attempt} attempt
 * @param {Around} around
 */
function calls(attempt, { memory, load, key, none }) {
  const { length } = attempt.calls;
  if (length === 0)
    return none === ""
      ? null
      : h(
          "section",
          { "aria-label": "Calls" },
          h("h3", {}, "Calls"),
          h("p", { class: "quiet" }, none),
        );
  const whole = Math.max(...attempt.calls.map((call) => call.ms), 1);
  const running = new Set(attempt.running);
  const failed = attempt.calls.findLast((call) => call.outcome !== "succeeded");
  const first = failed ?? attempt.calls.at(-1);
  return h(
    "section",
    { "aria-label": "Calls" },
    h("h3", {}, `Calls (${length + attempt.leftOut})`),
    attempt.leftOut > 0 && h("p", { class: "quiet" }, `The first ${attempt.leftOut} are left out.`),
    ...attempt.calls.map((call) => {
      const isRunning = running.has(call.id);
      const shown = attempt.screenshots.filter((each) => each.calls.includes(call.id));
      const browser = attempt.browsers[call.id] ?? "";
      const part = h(
        "details",
        { class: "fold one-call" },
        h(
          "summary",
          { "data-keep": call.id },
          isRunning ? h("span", { class: "pulse" }) : icon(call.outcome),
          h("span", { class: "name" }, call.name),
          browser !== "" && h("span", { class: "badge" }, browser),
          h(
            "span",
            { class: "quiet said" },
            isRunning ? "running" : call.outcome === "succeeded" ? "" : call.outcomeText,
          ),
          bar(call, whole),
          h("span", { class: "took" }, duration(call.ms)),
        ),
        shown.length > 0 && screenshots(shown, load, memory, call.id),
        // Its head is the summary.
        ...describe(call, attempt.started, { zoom: () => {}, close: () => {} }).slice(1),
      );
      memory.keep(part, key + call.id, call === first);
      return part;
    }),
  );
}

/**
 * The hops of a call as parts of a bar, all calls to one scale.
 * @param {Call} call
 * @param {number} whole ms
 */
function bar(call, whole) {
  const place = h("span", { class: "hop-bar", "aria-hidden": "true" });
  for (const hop of call.hops) {
    const part = h("span", { class: `hop ${hop.unfinished ? "unfinished" : hop.carrier}` });
    part.style.left = `${(100 * hop.start) / whole}%`;
    part.style.width = `${(100 * hop.ms) / whole}%`;
    place.append(part);
  }
  return place;
}

// --- recordings, faults ---

/** @param {Unanswered} unanswered */
function mismatches({ browser, recording, requests, more }) {
  const whose = browser === "" ? "" : `, ${browser}`;
  return h(
    "section",
    { class: "mismatches", "aria-label": "Recording" },
    h("h3", {}, `Recording${whose}`),
    h("p", {}, "The recording ", h("code", {}, recording), " does not answer:"),
    h(
      "ul",
      {},
      ...requests.map(({ text, count }) => {
        const [first = "", ...rest] = text.split("\n");
        return h(
          "li",
          {},
          h("code", {}, first),
          count > 1 && h("span", { class: "badge" }, `${count} times`),
          rest.length > 0 && h("pre", { tabindex: "0" }, rest.join("\n")),
        );
      }),
    ),
    more > 0 && h("p", { class: "quiet" }, `And ${plural(more, "other")}.`),
    h(
      "p",
      { class: "quiet again" },
      "If these requests are expected, record them: ",
      h("code", {}, "pytest --opentabs-record=missing"),
    ),
  );
}

/** @param {Injected} faults */
function injected({ browser, seed, rules, done, log }) {
  return h(
    "section",
    { class: "injected", "aria-label": "Faults" },
    h("h3", {}, browser === "" ? "Faults" : `Faults, ${browser}`),
    h("ul", {}, ...[...rules, ...done].map((text) => h("li", {}, text))),
    log !== "" &&
      h(
        "p",
        { class: "again quiet" },
        `With seed ${seed}. `,
        copyButton(() => `opentabs.faults.replay(${pythonText(log)})`, "Copy a replay"),
      ),
  );
}

/** @param {string} text */
function pythonText(text) {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n")}'`;
}
