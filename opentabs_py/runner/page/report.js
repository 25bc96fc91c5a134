/**
 * The report of a run, in one file: its data are in the page.
 */

/** @import {TestData} from "./test_details.js" */
/** @import {TestRow} from "./test_store.js" */

import { countGroups, drawMeter, groupOf, haveResults } from "./counts.js";
import { byId, h, plural, write } from "./dom.js";
import { kept } from "./kept.js";
import { Router } from "./router.js";
import { aboutRuns, partOf } from "./runs.js";
import { TestStore } from "./test_store.js";
import { testsView } from "./tests.js";
import { duration } from "./viewer/model.js";

/**
 * @typedef {object} Run
 * @property {string} id
 * @property {number} started in seconds since the epoch
 * @property {number} seconds
 * @property {string} why it is incomplete
 * @property {Record<string, string>} versions
 * @property {string} platform
 * @property {string} directory
 * @property {string[]} arguments
 * @property {Record<string, number>} seeds
 * @property {[number, number] | null} shard
 * @property {number} workers
 * @property {number} screenshots_left_out
 * @property {number} lightened
 */

/** @type {{runs: Run[], missing: string[], most: {screenshots: number, details: number}, tests: TestRow[]}} */
const report = JSON.parse(byId("report").textContent);
const { runs, missing, most, tests } = report;
const store = new TestStore();
const router = new Router("tests");
const numbers = new Map(tests.map(({ id }, number) => [id, number]));

/** @returns {Promise<void>} when all of the page is there */
function whole() {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((resolve) =>
    addEventListener("DOMContentLoaded", () => resolve(), { once: true }),
  );
}

/**
 * @param {string} id
 * @returns {Promise<TestData>}
 */
async function describe(id) {
  const row = store.test(id);
  if (row === undefined) throw new Error("There is no such test in this report.");
  const name = `test-${numbers.get(id)}`;
  if (document.getElementById(name) === null) await whole();
  const block = document.getElementById(name);
  if (block === null)
    throw new Error("This report is incomplete: the details of this test are missing.");
  return { ...row, ...JSON.parse(block.textContent) };
}

/** @type {HTMLButtonElement[]} */
let chips = [];

const view = testsView({
  store,
  describe,
  load: (image, { data }) => {
    image.src = `data:image/jpeg;base64,${data}`;
  },
  go: router.go,
  more: kept,
  whose: ({ run }) => (runs.length > 1 && run !== undefined ? partOf(runs, run) : ""),
  onFilter: (group) => {
    for (const chip of chips)
      chip.setAttribute("aria-pressed", String(chip.dataset.group === group));
  },
});

// --- the run as a whole ---

function showCounts() {
  const counts = countGroups(tests);
  drawMeter(byId("meter"), counts);
  chips = counts.map(({ group, text }) => {
    const chip = h(
      "button",
      { type: "button", class: `chip ${group}`, "aria-pressed": "false", "data-group": group },
      text,
    );
    chip.addEventListener("click", () =>
      view.filter(chip.getAttribute("aria-pressed") === "true" ? "" : group),
    );
    return chip;
  });
  byId("groups").replaceChildren(...chips);
  const bad = counts.filter(({ group }) => group === "failed" || group === "error");
  const isWhole = missing.length === 0 && runs.every(({ why }) => why === "") && haveResults(tests);
  const verdict = bad.length > 0 ? "failed" : isWhole ? "passed" : "incomplete";
  byId("verdict").dataset.verdict = verdict;
  const texts = { failed: "✗ Failed", incomplete: "… Incomplete", passed: "✓ Passed" };
  write(byId("verdict"), tests.length === 0 ? "No tests" : texts[verdict]);
}

function showRun() {
  const names = [...new Set(runs.map(({ directory }) => directory))];
  write(byId("title"), `Tests of ${names.join(", ")}`);
  const [first] = runs;
  if (first === undefined) return;
  const seconds = runs.reduce((sum, run) => sum + run.seconds, 0);
  const parts = [
    new Date(first.started * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }),
    duration(1000 * seconds) + (runs.length > 1 ? " in all" : ""),
    runs.length > 1 ? plural(runs.length, "run") : partOf(runs, 0),
  ];
  write(byId("when"), parts.filter(Boolean).join(" · "));
  byId("runs").append(aboutRuns(runs));
}

/** What is said about the runs lies over the tests, so it closes like a menu. */
function closeAboutLikeAMenu() {
  const about = /** @type {HTMLDetailsElement} */ (byId("runs"));
  addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !about.open) return;
      event.stopPropagation();
      about.open = false;
      about.querySelector("summary")?.focus();
    },
    { capture: true },
  );
  addEventListener("click", ({ target }) => {
    if (target instanceof Node && !about.contains(target)) about.open = false;
  });
}

/** @param {number} bytes */
function mib(bytes) {
  return `${bytes / 1024 / 1024} MiB`;
}

function showNotices() {
  const several = runs.length > 1;
  const texts = runs.flatMap((run, at) => {
    const whose = several ? `${partOf(runs, at)}: ` : "";
    const notes = [];
    if (run.why !== "") notes.push(`The run is incomplete: ${run.why}`);
    if (run.screenshots_left_out > 0)
      notes.push(
        `${plural(run.screenshots_left_out, "screenshot")} left out: a report holds ${mib(most.screenshots)} of them, those of failures first.`,
      );
    if (run.lightened > 0)
      notes.push(
        `${plural(run.lightened, "test")} without calls: a report holds ${mib(most.details)} of calls and texts, those of failed tests first.`,
      );
    return notes.map((text) => whose + text);
  });
  byId("notices").replaceChildren(
    ...[...missing, ...texts].map((text) => h("p", { class: "notice" }, text)),
  );
}

store.apply({
  boot: "",
  now: Date.now() / 1000,
  version: 1,
  tests: { reset: true, changed: tests, gone: [] },
});
showCounts();
showRun();
showNotices();
closeAboutLikeAMenu();
router.start({ tests: { view } });
const failed = tests.find((test) => ["failed", "error", "flaky"].includes(groupOf(test)));
if (failed !== undefined && location.hash === "" && matchMedia("(min-width: 901px)").matches) {
  router.go(`tests/${encodeURIComponent(failed.id)}`, true);
  view.reveal(failed.id);
}
