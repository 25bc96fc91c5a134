/**
 * The details of one test: its outcome, its attempts, and the files kept of it.
 */

/** @import {Attempt} from "./attempt.js" */
/** @import {Loader, Memory} from "./screenshots.js" */
/** @import {TestRow} from "./test_store.js" */
/** @import {FileRow} from "./tests.js" */

import { describeAttempt, describePrinted } from "./attempt.js";
import { copyButton, h, plural } from "./dom.js";
import { sign, stateSign } from "./signs.js";
import { runs, stateText } from "./test_store.js";
import { duration } from "./viewer/model.js";

/**
 * @typedef {object} Extra
 * @property {string} path
 * @property {Attempt[]} attempts the last one last
 * @property {string} [command] that runs it alone
 * @property {string[]} [traceCommands] that open Playwright's traces
 *
 * @typedef {Omit<TestRow, "attempts"> & Extra} TestData
 *
 * @typedef {object} Actions
 * @property {Loader} load
 * @property {(tests: string[]) => void} [run] nothing runs in a report
 * @property {() => boolean} canRun whether there is a server that can run tests
 * @property {(pause: number) => void} [resume]
 * @property {() => void} close
 * @property {(test: TestData) => (Node | null)[]} [more] what else there is of a test
 * @property {(attempt: Attempt) => string} [whose] what an attempt belongs to
 * @property {Memory} memory
 */

/**
 * What was known of a test, once its server is gone.
 * @param {TestData} known
 * @param {TestRow} row the test as the list shows it
 * @returns {TestData}
 */
export function asStopped(known, { state, pause }) {
  const attempts = known.attempts.map((attempt) => ({ ...attempt, running: [] }));
  return { ...known, state, pause, attempts };
}

/**
 * @param {FileRow} file
 * @param {Pick<Actions, "run" | "canRun" | "close">} actions
 */
export function describeFile(file, { run, canRun, close }) {
  const key = file.key.replace(/\/$/, "");
  const states = Object.groupBy(file.tests, stateText);
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
      run !== undefined &&
        h(
          "p",
          { class: "actions" },
          runButton(plural(file.tests.length, "test"), () => run([key]), canRun()),
        ),
    ),
  ];
}

/**
 * @param {TestData} test
 * @param {Actions} actions
 */
export function describeTest(test, actions) {
  const { run, canRun, resume, close, more } = actions;
  const isOver = !runs(test);
  const { pause, command } = test;
  const on = h(
    "button",
    { type: "button", class: "primary", "data-keep": "on" },
    sign("on"),
    "Continue",
  );
  on.addEventListener("click", () => pause !== null && resume?.(pause));
  const title = test.name || "Cannot be imported";
  const place = test.line > 0 ? `${test.file}:${test.line}` : test.file;
  const last = test.attempts.at(-1);
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
          h("span", { class: `pill ${test.state}` }, stateText(test)),
          isOver && test.seconds > 0 && h("strong", {}, duration(1000 * test.seconds)),
          h("span", { class: "quiet" }, place),
        ),
      ),
      (run !== undefined || command !== undefined) &&
        h(
          "p",
          { class: "actions" },
          resume !== undefined && pause !== null && on,
          run !== undefined &&
            test.kind !== "module" &&
            runButton("", () => run([test.id]), canRun(), isOver && test.state !== "idle"),
          command !== undefined && copyButton(() => command, "Copy command"),
        ),
      ...earlier(test, actions),
      ...(last === undefined ? [] : describeAttempt(last, around(test, last, actions))),
      ...(more?.(test) ?? traces(test)),
      ...(last === undefined ? [] : describePrinted(last, around(test, last, actions))),
    ),
  ];
}

/**
 * The attempts before the last one, each to be opened.
 * @param {TestData} test
 * @param {Actions} actions
 */
function earlier(test, actions) {
  const count = test.attempts.length;
  return test.attempts.slice(0, -1).map((attempt, at) => {
    const title = `Attempt ${at + 1} of ${count}`;
    const key = `attempt ${at + 1}`;
    const around_ = around(test, attempt, actions);
    const part = h(
      "details",
      { class: "fold attempt" },
      h(
        "summary",
        { "data-keep": key },
        stateSign(attempt.state),
        h("span", { class: "name" }, title),
        h(
          "span",
          { class: "quiet said" },
          [actions.whose?.(attempt) ?? "", attempt.why].filter(Boolean).join(" · "),
        ),
        h("span", { class: "took" }, attempt.seconds > 0 ? duration(1000 * attempt.seconds) : ""),
      ),
      ...describeAttempt(attempt, around_).filter((each) => each !== null && each !== false),
      ...describePrinted(attempt, around_),
    );
    actions.memory.keep(part, key, at === 0 && test.state === "flaky");
    return h("section", { "aria-label": title }, part);
  });
}

/**
 * @param {TestData} test
 * @param {Attempt} attempt
 * @param {Actions} actions
 */
function around(test, attempt, { load, memory }) {
  const none = attempt.forgotten
    ? "Its calls were dropped to save memory. Run it alone to see them."
    : ["idle", "waiting", "running", "skipped"].includes(test.state) || test.kind !== "pytest"
      ? ""
      : "It made no call with the opentabs fixture.";
  return { load, memory, none, key: `${test.attempts.indexOf(attempt)} ` };
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
 * @param {boolean} canRun
 * @param {boolean} [again]
 */
function runButton(what, run, canRun, again = false) {
  const text = `Run ${what}`.trim() + (again ? " again" : "");
  const button = h(
    "button",
    { type: "button", "data-keep": "run", disabled: !canRun },
    sign(again ? "again" : "run"),
    text,
  );
  button.addEventListener("click", run);
  return button;
}

/** @param {TestData} test */
function traces({ state, kind, traceCommands = [] }) {
  if (traceCommands.length === 0 && (state !== "failed" || kind !== "pytest")) return [];
  return [
    h(
      "section",
      { "aria-label": "Playwright’s trace" },
      h("h3", {}, "Playwright’s trace"),
      traceCommands.length === 0 &&
        h("p", { class: "quiet" }, "Run this test alone to record one."),
      ...traceCommands.map((command) =>
        h(
          "div",
          { class: "copy-place" },
          h("pre", { tabindex: "0" }, command),
          copyButton(() => command, "Copy"),
        ),
      ),
    ),
  ];
}
