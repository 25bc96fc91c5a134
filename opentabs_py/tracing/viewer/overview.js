/**
 * The whole trace in a strip above the timeline.
 */

/** @import {Call} from "./model.js" */
import { byId, OUTCOMES } from "./model.js";

/**
 * Draws all calls, and which part of them the timeline shows.
 * @param {{calls: readonly Call[], from: number, to: number, length: number}} timeline
 */
export function drawOverview({ calls, from, to, length }) {
  const canvas = /** @type {HTMLCanvasElement} */ (byId("overview"));
  const scale = devicePixelRatio;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  if (context === null || width === 0) {
    return;
  }
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const colours = new Map(
    OUTCOMES.map(([outcome]) => [outcome, style.getPropertyValue(`--${outcome}`)]),
  );
  const each = (height - 10) / Math.max(calls.length, 1);
  const thick = Math.min(Math.max(each * 0.8, 1), 5);
  // What failed comes last, so that nothing hides it.
  for (const good of [true, false]) {
    calls.forEach((call, index) => {
      if ((call.outcome === "succeeded") === good) {
        context.fillStyle = colours.get(call.outcome) ?? "gray";
        const x = (call.at / length) * width;
        const long = Math.max((call.ms / length) * width, 1.5);
        const high = good ? thick : Math.max(thick, 3);
        context.fillRect(x, 5 + index * each + (each - high) / 2, long, high);
      }
    });
  }
  const left = Math.max(0, (from / length) * width);
  const right = Math.min(width, (to / length) * width);
  const { style: place } = byId("window");
  place.left = `${left}px`;
  place.width = `${Math.max(right - left, 2)}px`;
}
