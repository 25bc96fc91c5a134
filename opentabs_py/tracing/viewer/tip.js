/**
 * What is under the pointer, beside it.
 */

/** @import {Call} from "./model.js" */
import { byId, duration, fraction, kindOf, make } from "./model.js";

/**
 * @param {Call} call
 * @param {number} at ms since the call began
 * @param {number} near ms; marks that are this near are shown too
 * @param {{clientX: number, clientY: number}} pointer
 */
export function showTip(call, at, near, { clientX, clientY }) {
  const tip = byId("tip");
  tip.replaceChildren(...linesOf(call, at, near));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(clientX + 14, innerWidth - width - 8);
  const below = clientY + 18;
  const top = below + height > innerHeight - 8 ? clientY - height - 12 : below;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, top)}px`;
}

export function hideTip() {
  byId("tip").hidden = true;
}

/**
 * @param {Call} call
 * @param {number} at
 * @param {number} near
 */
function linesOf(call, at, near) {
  const lines = [make("strong", "", call.name)];
  const hop = call.hops.find(({ start, ms }) => at >= start && at <= start + ms);
  if (hop === undefined) {
    lines.push(make("div", "", `${call.outcomeText}, ${duration(call.ms)}`));
  } else {
    const end = hop.unfinished ? ", ended here" : "";
    const text = `${hop.hop}  ${duration(hop.ms)}${end}`;
    lines.push(make("div", "", [make("span", `swatch ${kindOf(hop)}`), text]));
  }
  const report = nearest(call.progress, at, near);
  if (report !== undefined) {
    const done = fraction(report.progress, report.total);
    const text = [done, report.message ?? ""].filter(Boolean).join("  ") || "sign of life";
    lines.push(make("div", "said", `${duration(report.at)}  ${text}`));
  }
  const log = nearest(call.logs, at, near);
  if (log !== undefined) {
    lines.push(make("div", "said", `${duration(log.at)}  ${log.level}: ${log.message}`));
  }
  const link = nearest(call.links.slice(1), at, near);
  if (link !== undefined) {
    lines.push(make("div", "said", `${duration(link.at)}  ${link.text}`));
  }
  return lines;
}

/**
 * @template {{at: number}} Mark
 * @param {readonly Mark[]} marks
 * @param {number} at
 * @param {number} near
 */
function nearest(marks, at, near) {
  /** @type {Mark | undefined} */
  let found;
  for (const mark of marks) {
    const distance = Math.abs(mark.at - at);
    if (distance <= near && (found === undefined || distance < Math.abs(found.at - at))) {
      found = mark;
    }
  }
  return found;
}
