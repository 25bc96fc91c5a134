/**
 * The signs of tests and buttons.
 */

/** @import {TestState} from "./test_store.js" */
/** @import {Outcome} from "./viewer/model.js" */

import { h, outline } from "./dom.js";
import { icon } from "./viewer/model.js";

const GLYPHS = {
  run: "M6 4.5v15l13-7.5z",
  again: "M3 12a9 9 0 1 0 3-6.7L3 8M3 3v5h5",
  stop: "M6 6h12v12H6z",
  on: "M5 4.5v15l9-7.5zM18.5 5v14",
  file: "M14 3H6a1 1 0 0 0-1 1v16a1 1 0 0 0 1 1h12a1 1 0 0 0 1-1V8zM14 3v5h5",
};

/** @type {Partial<Record<TestState, Outcome>>} */
const OUTCOMES = {
  passed: "succeeded",
  failed: "failed",
  paused: "failed",
  skipped: "refused",
  xfailed: "cancelled",
};

/** @param {keyof typeof GLYPHS} name */
export function sign(name) {
  return outline(GLYPHS[name]);
}

/** @param {TestState} state */
export function stateSign(state) {
  if (state === "flaky") return outline(GLYPHS.again, "flaky");
  const outcome = OUTCOMES[state];
  if (outcome !== undefined) return icon(outcome);
  return h("span", { class: state === "running" ? "pulse" : `dot ${state}` });
}
