/**
 * The number of tests in each state; each test is in one.
 */

/** @import {TestRow} from "./test_store.js" */

import { h } from "./dom.js";
import { isError, runs } from "./test_store.js";

/** @typedef {"failed" | "error" | "flaky" | "left" | "passed" | "skipped" | "xfailed" | "idle"} Group */

/** @type {readonly {group: Group, title: string, one: string, many: string}[]} */
export const GROUPS = [
  { group: "failed", title: "Failed", one: "failed", many: "failed" },
  { group: "error", title: "Error", one: "error", many: "errors" },
  { group: "flaky", title: "Flaky", one: "flaky", many: "flaky" },
  { group: "left", title: "Running or waiting", one: "left", many: "left" },
  { group: "passed", title: "Passed", one: "passed", many: "passed" },
  { group: "skipped", title: "Skipped", one: "skipped", many: "skipped" },
  { group: "xfailed", title: "Failed, as expected", one: "xfailed", many: "xfailed" },
  { group: "idle", title: "Not run", one: "not run", many: "not run" },
];

/**
 * @param {TestRow} test
 * @returns {Group}
 */
export function groupOf(test) {
  if (isError(test)) return "error";
  if (test.state === "paused") return "failed";
  if (test.state === "waiting" || test.state === "running") return "left";
  return test.state;
}

/**
 * The groups that have tests, with how many and what that is called.
 * @param {readonly TestRow[]} tests
 */
export function countGroups(tests) {
  const counts = Map.groupBy(tests, groupOf);
  return GROUPS.flatMap(({ group, one, many }) => {
    const count = counts.get(group)?.length ?? 0;
    return count === 0
      ? []
      : [{ group, count, text: `${count.toLocaleString("en")} ${count === 1 ? one : many}` }];
  });
}

/**
 * @param {Element} meter
 * @param {readonly {group: Group, count: number}[]} counts
 */
export function drawMeter(meter, counts) {
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  meter.replaceChildren(
    ...counts.map(({ group, count }) => {
      const part = h("span", { class: group });
      part.style.width = `${(100 * count) / total}%`;
      return part;
    }),
  );
}

/** @param {readonly TestRow[]} tests */
export function haveResults(tests) {
  return tests.every((test) => !["idle", "left"].includes(groupOf(test)));
}

/** @param {readonly TestRow[]} tests */
export function isRunning(tests) {
  return tests.some((test) => runs(test) && test.state !== "paused");
}
