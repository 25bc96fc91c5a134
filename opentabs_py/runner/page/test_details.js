/**
 * All that is known of one test: its failure, its calls with their hops and screenshots, and its faults.
 */

/** @import {Link} from "./link.js" */
/** @import {TestRow} from "./test_store.js" */
/** @import {FileRow} from "./tests.js" */
/** @import {Call} from "./viewer/model.js" */

import { copyButton, h, plural } from "./dom.js";
import { sign, stateSign } from "./signs.js";
import { runs, STATE_TEXTS } from "./test_store.js";
import { describe } from "./viewer/details.js";
import { duration, icon } from "./viewer/model.js";

const ABOVE = 60; // px; what is seen of the test above the line that failed

/**
 * @typedef {{when: "before" | "after" | "failure", calls: string[], file: string, of: string}} Picture
 * @typedef {{browser: string, seed: number, rules: string[], done: string[], log: string}} Injected
 *
 * @typedef {object} Extra
 * @property {string} path
 * @property {string} text
 * @property {[string, string][]} sections
 * @property {number} leftOut
 * @property {boolean} forgotten
 * @property {Record<string, string>} browsers the browser of each call
 * @property {{id: string, state: string}[]} rows
 * @property {Picture[]} pictures
 * @property {Injected[]} injected
 * @property {string[]} traceCommands
 * @property {string} command
 * @property {number} started
 * @property {Call[]} [calls]
 *
 * @typedef {Omit<TestRow, "calls"> & Extra & {calls: Call[]}} TestData
 *
 * @typedef {object} Actions
 * @property {Link} link
 * @property {(tests: string[]) => void} run
 * @property {(stay: number) => void} goOn
 * @property {() => void} close
 * @property {Memory} memory
 */

/** What the reader has opened and closed of the chosen test; it is drawn again whenever it changes. */
export class Memory {
  /** @type {Map<string, boolean>} */
  #open = new Map();
  /** @type {Map<string, HTMLImageElement>} */
  #images = new Map();

  clear() {
    this.#open.clear();
    this.#images.clear();
  }

  /**
   * Make a part open as it was, and remember what becomes of it.
   * @param {HTMLDetailsElement} part
   * @param {string} key
   * @param {boolean} open unless the reader has said something else
   */
  keep(part, key, open) {
    part.open = this.#open.get(key) ?? open;
    part.querySelector("summary")?.addEventListener("click", () => this.#open.set(key, !part.open));
  }

  /**
   * The image of a screenshot, loaded once.
   * @param {Link} link
   * @param {string} file
   * @param {string} alt
   */
  image(link, file, alt) {
    let image = this.#images.get(file);
    if (image === undefined) {
      image = h("img", { alt, width: 320, height: 200 });
      image.addEventListener("error", () => image?.classList.add("gone"));
      link.load(image, `/pictures/${file}`);
      this.#images.set(file, image);
    }
    return image;
  }
}

/**
 * @param {FileRow} file
 * @param {Pick<Actions, "run" | "close">} actions
 */
export function describeFile(file, { run, close }) {
  const key = file.key.replace(/\/$/, "");
  const states = Object.groupBy(file.tests, ({ state }) => STATE_TEXTS[state]);
  const counts = Object.entries(states).map(([text, tests]) => `${tests?.length ?? 0} ${text}`);
  return [
    h(
      "div",
      { class: "test-details call-details" },
      h(
        "div",
        { class: "head" },
        h(
          "div",
          { class: "first" },
          h("h2", {}, sign("file"), h("span", {}, file.file)),
          closeButton(close),
        ),
        h("div", { class: "second" }, h("span", { class: "quiet" }, counts.join(" · "))),
      ),
      h(
        "p",
        { class: "actions" },
        runButton(plural(file.tests.length, "test"), () => run([key])),
      ),
    ),
  ];
}

/**
 * @param {TestData} test
 * @param {Actions} actions
 */
export function describeTest(test, actions) {
  const { run, goOn, close, memory, link } = actions;
  const isOver = !runs(test);
  const { stay } = test;
  const on = h(
    "button",
    { type: "button", class: "primary", "data-keep": "on" },
    sign("on"),
    "Continue",
  );
  on.addEventListener("click", () => stay !== null && goOn(stay));
  const title = test.name || "Cannot be imported";
  const place = test.line > 0 ? `${test.file}:${test.line}` : test.file;
  const failure = test.pictures.filter(({ when }) => when === "failure");
  return [
    h(
      "div",
      { class: "test-details call-details" },
      h(
        "div",
        { class: "head" },
        h(
          "div",
          { class: "first" },
          h("h2", {}, stateSign(test.state), h("span", {}, title)),
          closeButton(close),
        ),
        h(
          "div",
          { class: "second" },
          h("span", { class: `pill ${test.state}` }, STATE_TEXTS[test.state]),
          isOver && test.seconds > 0 && h("strong", {}, duration(1000 * test.seconds)),
          h("span", { class: "quiet" }, place),
        ),
      ),
      h(
        "p",
        { class: "actions" },
        stay !== null && on,
        test.kind !== "module" &&
          runButton("", () => run([test.id]), isOver && test.state !== "idle"),
        copyButton(() => test.command, "Copy command"),
      ),
      test.text !== "" &&
        h(
          "section",
          { "aria-label": "Failure" },
          h("h3", {}, test.state === "xfailed" ? "Failed, as expected" : "Failure"),
          errorText(test.text),
        ),
      failure.length > 0 &&
        h(
          "section",
          { "aria-label": "At the failure" },
          h("h3", {}, "At the failure"),
          pictures(failure, actions),
        ),
      ...injected(test),
      calls(test, actions),
      traces(test),
      ...test.sections.map(([name, text]) => section(name, text, memory)),
    ),
  ];

  /**
   * @param {Picture[]} shown
   * @param {Actions} _actions
   */
  function pictures(shown, _actions) {
    return h("div", { class: "pictures" }, ...shown.map((each) => picture(each, link, memory)));
  }
}

/** @param {() => void} close */
function closeButton(close) {
  const button = h(
    "button",
    { type: "button", class: "close", "aria-label": "Close the details" },
    "×",
  );
  button.addEventListener("click", close);
  return button;
}

/**
 * @param {string} what
 * @param {() => void} run
 * @param {boolean} [again]
 */
function runButton(what, run, again = false) {
  const text = `Run ${what}`.trim() + (again ? " again" : "");
  const button = h(
    "button",
    { type: "button", "data-keep": "run" },
    sign(again ? "again" : "run"),
    text,
  );
  button.addEventListener("click", run);
  return button;
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
 * @param {Memory} memory
 */
function section(name, text, memory) {
  const part = h(
    "details",
    { class: "fold" },
    h("summary", { "data-keep": name }, name),
    h("pre", { tabindex: "0" }, text),
  );
  memory.keep(part, name, false);
  return h("section", { "aria-label": name }, part);
}

// --- calls -----------------------------------------------------------------------------------

/**
 * @param {TestData} test
 * @param {Actions} actions
 */
function calls(test, { memory, link }) {
  const { length } = test.calls;
  if (length === 0) {
    const none = test.forgotten
      ? "Its calls are not kept any more: later tests had many. Run it again to see them."
      : test.state === "idle" || test.state === "waiting" || test.kind !== "pytest"
        ? ""
        : "It made no call with the opentabs fixture.";
    return none === ""
      ? null
      : h(
          "section",
          { "aria-label": "Calls" },
          h("h3", {}, "Calls"),
          h("p", { class: "quiet" }, none),
        );
  }
  const whole = Math.max(...test.calls.map((call) => call.ms), 1);
  const running = new Set(test.rows.filter(({ state }) => state === "running").map(({ id }) => id));
  const failed = test.calls.findLast((call) => call.outcome !== "succeeded");
  const first = failed ?? test.calls.at(-1);
  return h(
    "section",
    { "aria-label": "Calls" },
    h("h3", {}, `Calls (${length + test.leftOut})`),
    test.leftOut > 0 && h("p", { class: "quiet" }, `The first ${test.leftOut} are left out.`),
    ...test.calls.map((call) => {
      const isRunning = running.has(call.id);
      const shown = test.pictures.filter((each) => each.calls.includes(call.id));
      const browser = test.browsers[call.id] ?? "";
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
        shown.length > 0 &&
          h("div", { class: "pictures" }, ...shown.map((each) => picture(each, link, memory))),
        // Its head is the summary.
        ...describe(call, test.started, { zoom: () => {}, close: () => {} }).slice(1),
      );
      memory.keep(part, call.id, call === first);
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

// --- screenshots -----------------------------------------------------------------------------

/** @type {Record<Picture["when"], string>} */
const WHEN = { before: "Before the call", after: "After the call", failure: "At the failure" };

/**
 * @param {Picture} shown
 * @param {Link} link
 * @param {Memory} memory
 */
function picture({ when, file, of }, link, memory) {
  const text = of === "" ? WHEN[when] : `${WHEN[when]}, ${of}`;
  const image = memory.image(link, file, text);
  const open = h(
    "button",
    { type: "button", class: "picture", "aria-label": `${text}: enlarge`, "data-keep": file },
    image,
  );
  open.addEventListener("click", () => enlarge(link, file, text));
  return h("figure", {}, open, h("figcaption", { class: "quiet" }, text));
}

/**
 * @param {Link} link
 * @param {string} file
 * @param {string} text
 */
function enlarge(link, file, text) {
  const close = h("button", { type: "button", "aria-label": "Close the picture" }, "×");
  const large = h("img", { alt: text });
  link.load(large, `/pictures/${file}`);
  const dialog = h(
    "dialog",
    { class: "large", "aria-label": text },
    h("p", {}, text, close),
    large,
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// --- faults, traces --------------------------------------------------------------------------

/** @param {TestData} test */
function injected(test) {
  return test.injected.map(({ browser, seed, rules, done, log }) =>
    h(
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
    ),
  );
}

/** @param {string} text */
function pythonText(text) {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n")}'`;
}

/** @param {TestData} test */
function traces(test) {
  if (test.traceCommands.length === 0) {
    if (test.state !== "failed" || test.kind !== "pytest") return null;
    return h(
      "section",
      { "aria-label": "Playwright’s trace" },
      h("h3", {}, "Playwright’s trace"),
      h("p", { class: "quiet" }, "Run this test alone to record one."),
    );
  }
  return h(
    "section",
    { "aria-label": "Playwright’s trace" },
    h("h3", {}, "Playwright’s trace"),
    ...test.traceCommands.map((command) =>
      h(
        "div",
        { class: "copy-place" },
        h("pre", { tabindex: "0" }, command),
        copyButton(() => command, "Copy"),
      ),
    ),
  );
}
