/**
 * The list of tests, by file, and the details of the chosen one.
 */

/** @import {View} from "./main.js" */
/** @import {Loader} from "./screenshots.js" */
/** @import {Attempt} from "./attempt.js" */
/** @import {TestData} from "./test_details.js" */
/** @import {TestRow, TestStore} from "./test_store.js" */

import { GROUPS, groupOf } from "./counts.js";
import {
  emptyState,
  h,
  isTyping,
  keepingFocus,
  matches,
  plural,
  searchField,
  wordsOf,
  write,
} from "./dom.js";
import { List } from "./list.js";
import { Memory } from "./screenshots.js";
import { sign, stateSign } from "./signs.js";
import { asStopped, describeFile, describeTest } from "./test_details.js";
import { stateText } from "./test_store.js";
import { duration } from "./viewer/model.js";

/**
 * @typedef {object} Shown what the view gets; a report can run nothing, and pauses at no failure
 * @property {TestStore} store
 * @property {(id: string) => Promise<TestData>} describe all that is known of a test; its error says why not
 * @property {Loader} load
 * @property {(path: string, replace?: boolean) => void} go
 * @property {(tests: string[]) => void} [run]
 * @property {(pause: number) => void} [resume]
 * @property {(test: TestData) => (Node | null)[]} [more] what else there is of a test
 * @property {(attempt: Attempt) => string} [whose] what an attempt belongs to
 * @property {(state: string) => void} [onFilter]
 *
 * @typedef {{key: string, file: string, tests: TestRow[]}} FileRow
 * @typedef {TestRow | FileRow} Row
 */

/**
 * @param {Row} row
 * @returns {row is FileRow}
 */
function isFile(row) {
  return "tests" in row;
}

/**
 * @param {Shown} given
 * @returns {View & {filter(state: string): void, reveal(id: string): void}}
 */
export function testsView(given) {
  const { store, describe, go, run, onFilter } = given;
  const narrow = matchMedia("(max-width: 900px)");
  const query = searchField("Filter tests", "Filter by name, file or error", () => show());
  const state = h(
    "select",
    { "aria-label": "State", onchange: () => filter(state.value) },
    h("option", { value: "" }, "All states"),
    ...GROUPS.filter(({ group }) => group !== "left" || run !== undefined).map(({ group, title }) =>
      h("option", { value: group }, title),
    ),
  );
  const count = h("span", { class: "quiet count", role: "status" });
  /** @type {List<Row>} */
  const list = new List({
    label: "Tests",
    key: (row) => (isFile(row) ? row.key : row.id),
    height: () => 34,
    render: (row) => (isFile(row) ? renderFile(row) : renderTest(row)),
    name: (row) =>
      isFile(row)
        ? `${row.file}, ${plural(row.tests.length, "test")}`
        : `${row.name || row.file}, ${stateText(row)}${timeText(row) && `, ${timeText(row)}`}`,
    onChoose: (row, asked) => {
      if (asked || !narrow.matches)
        go(`tests/${encodeURIComponent(isFile(row) ? row.key : row.id)}`, !asked);
    },
    onLeave: () => go("tests"),
  });
  const empty = h("div", {});
  const details = h("aside", {
    class: "details",
    "aria-label": "The selected test",
    tabindex: "-1",
  });
  const element = h(
    "div",
    { class: "tests calls" },
    h(
      "div",
      { class: "split" },
      h(
        "section",
        { class: "column" },
        h("div", { class: "filters" }, query, state, count),
        list.element,
        empty,
      ),
      details,
    ),
  );
  /** @type {FileRow[]} */
  let files = [];
  let opened = "";
  let shownAs = ""; // what the details were drawn from
  /** @type {TestData | null} */
  let known = null; // of the test that is open
  let isReading = false;
  const memory = new Memory();
  const actions = { ...given, close, memory, canRun: () => !store.isGone };

  // --- the list ---

  /** @param {string} key */
  function runButton(key) {
    if (run === undefined) return h("span", {});
    // For the pointer only: keys have `r`, and a button within an option has no role.
    const button = h(
      "span",
      { class: "run-here", title: "Run (r)", "aria-hidden": "true" },
      sign("run"),
    );
    button.addEventListener("click", (event) => {
      event.stopPropagation();
      run([key]);
    });
    return button;
  }

  /** @param {FileRow} row */
  function renderFile(row) {
    const failed = row.tests.filter((test) => ["failed", "paused"].includes(test.state)).length;
    return h(
      "div",
      { class: "file-row" },
      sign("file"),
      h("strong", { class: "name" }, row.file),
      h(
        "span",
        { class: failed > 0 ? "bad" : "quiet" },
        failed > 0 ? `${failed} failed` : plural(row.tests.length, "test"),
      ),
      runButton(row.key),
    );
  }

  /** @param {TestRow} test */
  function renderTest(test) {
    return h(
      "div",
      { class: `test ${test.state}` },
      h("span", { class: "sign" }, stateSign(test.state)),
      h("span", { class: "name" }, test.name || "Cannot be imported"),
      h("span", { class: "said" }, test.why),
      h(
        "span",
        { class: "quiet marks" },
        [
          test.attempts > 1 && plural(test.attempts, "attempt"),
          test.calls > 0 && plural(test.calls, "call"),
          test.faults > 0 && plural(test.faults, "fault"),
        ]
          .filter(Boolean)
          .join(" · "),
      ),
      h("span", { class: "took" }, timeText(test)),
      test.kind === "module" ? h("span", {}) : runButton(test.id),
    );
  }

  /** @param {string} chosen */
  function filter(chosen) {
    state.value = chosen;
    onFilter?.(chosen);
    show();
  }

  function show() {
    const words = wordsOf(query.value);
    const shown = store.tests.filter(
      (test) =>
        (state.value === "" || groupOf(test) === state.value) &&
        matches(words, `${test.id} ${test.file} ${test.why}`),
    );
    files = [...Map.groupBy(shown, (test) => test.file)].map(([file, tests]) => {
      const id = tests[0]?.id ?? "";
      const key = id.includes("::") ? id.replace(/::.*/s, "") : `${id}/`; // that of a whole file
      return { key, file, tests };
    });
    /** @type {Row[]} */
    const rows = files.flatMap((file) => [file, ...file.tests]);
    const all = store.tests.length;
    write(count, shown.length === all ? "" : `${shown.length} of ${plural(all, "test")}`);
    list.element.hidden = rows.length === 0;
    empty.hidden = rows.length > 0;
    if (rows.length === 0) fillEmpty(all);
    list.show(rows);
  }

  /** @param {number} all */
  function fillEmpty(all) {
    const isBusy = store.status !== null && store.status.state !== "idle";
    const [what, why] =
      all > 0
        ? ["No test matches.", "Change the filter above."]
        : isBusy || store.status === null
          ? ["Looking for tests", ""]
          : run === undefined
            ? ["No test was selected", ""]
            : ["There are no tests yet", "Tests are in tests/, in files such as test_chat.py."];
    empty.replaceChildren(emptyState(what, why));
  }

  // --- the chosen test ---

  async function look() {
    const id = opened;
    if (id === "") return;
    const { isGone } = store;
    const file = files.find(({ key }) => key === id);
    if (file !== undefined) {
      fill(() => describeFile(file, actions), JSON.stringify([file.tests, isGone]));
      return;
    }
    const test = store.test(id);
    if (isGone && test !== undefined && known !== null) {
      const stopped = asStopped(known, test); // all that will ever be known
      fill(() => describeTest(stopped, actions), "stopped");
      return;
    }
    const version = test === undefined ? "gone" : String(test.changes);
    if (version === shownAs || isReading) return;
    isReading = true;
    try {
      const data = await describe(id);
      if (id === opened) {
        known = data;
        fill(() => describeTest(data, actions), String(data.changes));
      }
    } catch (error) {
      if (id === opened && !(store.isGone && known !== null)) {
        const why = error instanceof Error ? error.message : String(error);
        fill(
          () => [
            h(
              "div",
              { class: "empty" },
              h("p", {}, why),
              h("button", { type: "button", onclick: close }, "Close"),
            ),
          ],
          version,
        );
      }
    }
    isReading = false;
    if (id !== opened || store.test(id)?.changes.toString() !== shownAs) setTimeout(look, 100);
  }

  /**
   * @param {() => Node[]} draw takes the images out of what is shown, so it must be shown itself
   * @param {string} version
   */
  function fill(draw, version) {
    if (version === shownAs) return;
    shownAs = version;
    const focused = details.contains(document.activeElement);
    keepingFocus(details, () => details.replaceChildren(...draw()));
    if (focused && !details.contains(document.activeElement)) details.focus();
  }

  function close() {
    go("tests");
  }

  /** @param {string} id */
  function open(id) {
    if (id === opened) return;
    opened = id;
    shownAs = "";
    known = null;
    memory.clear();
    element.classList.toggle("opened", id !== "");
    list.mark(id);
    details.replaceChildren();
    if (id === "") return;
    look();
    if (narrow.matches) details.focus();
  }

  element.addEventListener("keydown", (event) => {
    if (
      run === undefined ||
      event.key !== "r" ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      isTyping(event.target)
    )
      return;
    if (opened !== "") run([opened.replace(/\/$/, "")]);
  });
  narrow.addEventListener("change", () => list.refresh());
  setInterval(() => {
    if (store.tests.some((test) => test.state === "running")) list.refresh();
  }, 500);
  return {
    element,
    search: query,
    show([id = ""]) {
      show();
      open(id);
    },
    update() {
      show();
      look();
    },
    leave: close,
    filter,
    reveal: (id) => list.reveal(id),
  };
}

/** @param {TestRow} test */
function timeText(test) {
  return test.seconds > 0 ? duration(1000 * test.seconds) : "";
}
