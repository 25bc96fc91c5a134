/**
 * The runs that a report covers.
 */

/** @import {Run} from "./report.js" */

import { h, plural, terms } from "./dom.js";
import { duration } from "./viewer/model.js";

/**
 * What a run is called among the others.
 * @param {readonly Run[]} runs
 * @param {number} at
 */
export function partOf(runs, at) {
  const shard = runs[at]?.shard ?? null;
  if (shard !== null) return `part ${shard[0]} of ${shard[1]}`;
  return runs.length > 1 ? `run ${at + 1}` : "";
}

/** @param {readonly Run[]} runs */
export function aboutRuns(runs) {
  return h("div", { class: "about-runs" }, ...runs.map((run, at) => about(run, partOf(runs, at))));
}

/**
 * @param {Run} run
 * @param {string} name
 */
function about(run, name) {
  const facts = terms([
    ["Started", new Date(run.started * 1000).toLocaleString()],
    ["Took", duration(1000 * run.seconds)],
    ...Object.entries(run.versions),
    ["System", run.platform],
    ["Arguments", run.arguments.map(quoted).join(" ")],
    ...Object.entries(run.seeds).map(
      ([seed, value]) => /** @type {[string, string]} */ ([seed, String(value)]),
    ),
    ["Processes", run.workers > 0 ? plural(run.workers, "worker") : ""],
  ]);
  return h("section", {}, name !== "" && h("h2", {}, name), h("dl", { class: "facts" }, ...facts));
}

/** @param {string} argument */
function quoted(argument) {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}
