/**
 * A JSON value as a tree whose branches open.
 */

import { h } from "./dom.js";
import { visible } from "./viewer/model.js";

const AT_ONCE = 200; // members that are shown before one asks for more
const OPEN_UP_TO = 30; // members of a branch that is open from the beginning
const LONGEST = 5000; // characters of a string

/**
 * @param {unknown} value
 * @param {number} [depth]
 * @param {string | null} [name]
 * @returns {HTMLElement}
 */
export function tree(value, depth = 0, name = null) {
  const label =
    name === null
      ? null
      : h("span", { class: "key" }, visible(name), h("span", { class: "quiet" }, ": "));
  if (typeof value !== "object" || value === null)
    return h("div", { class: "leaf" }, label, leaf(value));
  const isList = Array.isArray(value);
  const members = isList
    ? value.map((each, index) => /** @type {const} */ ([String(index), each]))
    : Object.entries(value);
  if (members.length === 0)
    return h("div", { class: "leaf" }, label, h("span", { class: "quiet" }, isList ? "[]" : "{}"));
  const summary = h(
    "summary",
    {},
    label,
    h("span", { class: "quiet" }, isList ? `[${members.length}]` : `{${members.length}}`),
  );
  const branch = h("details", { class: "branch" }, summary);
  const fill = () => {
    if (branch.childElementCount === 1) append(branch, members, depth);
  };
  branch.addEventListener("toggle", fill);
  if (depth < 2 && members.length <= OPEN_UP_TO) {
    fill();
    branch.open = true;
  }
  return branch;
}

/**
 * @param {HTMLElement} branch
 * @param {readonly (readonly [string, unknown])[]} members
 * @param {number} depth
 * @param {number} [from]
 */
function append(branch, members, depth, from = 0) {
  const next = members.slice(from, from + AT_ONCE);
  branch.append(...next.map(([name, value]) => tree(value, depth + 1, name)));
  const left = members.length - from - next.length;
  if (left === 0) return;
  const more = h(
    "button",
    { type: "button", class: "more" },
    `Show ${Math.min(left, AT_ONCE)} of ${left} more`,
  );
  more.addEventListener("click", () => {
    more.remove();
    append(branch, members, depth, from + AT_ONCE);
  });
  branch.append(more);
}

/** @param {unknown} value */
function leaf(value) {
  if (typeof value === "bigint") return h("span", { class: "value number" }, String(value));
  if (typeof value !== "string")
    return h("span", { class: `value ${value === null ? "null" : typeof value}` }, String(value));
  if (value.length <= LONGEST) return h("span", { class: "value string" }, written(value));
  const more = h(
    "button",
    { type: "button", class: "more" },
    `${value.length.toLocaleString("en")} characters: show all`,
  );
  const text = h(
    "span",
    { class: "value string" },
    `${written(value.slice(0, LONGEST)).slice(0, -1)}…`,
  );
  more.addEventListener("click", () => {
    text.textContent = written(value);
    more.remove();
  });
  return h("span", {}, text, more);
}

/** @param {string} value */
function written(value) {
  return visible(JSON.stringify(value));
}
