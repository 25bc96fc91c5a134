/**
 * The wheel and drags, which zoom and move the timeline's axis.
 *
 * @typedef {object} Axis times in ms
 * @property {number} from
 * @property {number} to
 * @property {number} length of the whole trace
 * @property {number} trackWidth px
 * @property {(clientX: number) => number} timeAt
 * @property {(from: number, to: number) => void} view
 * @property {(share: number) => void} move
 * @property {(factor: number, at: number) => void} zoom
 */

import { byId } from "./model.js";

/** @param {Axis} axis */
export function listenForGestures(axis) {
  listenForWheel(axis);
  dragRows(axis);
  dragRuler(axis);
  dragOverview(axis);
}

/** @param {Axis} axis */
function listenForWheel(axis) {
  const zoom = (/** @type {WheelEvent} */ event) => {
    event.preventDefault();
    axis.zoom(Math.exp(-event.deltaY / 300), axis.timeAt(event.clientX));
  };
  const zoomOrMove = (/** @type {WheelEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      zoom(event);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const by = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      axis.move(by / axis.trackWidth);
    }
  };
  byId("ruler").addEventListener("wheel", zoom, { passive: false });
  byId("overview").addEventListener("wheel", zoom, { passive: false });
  byId("rows").addEventListener("wheel", zoomOrMove, { passive: false });
}

/** @param {Axis} axis */
function dragRows(axis) {
  const rows = byId("rows");
  let last = 0;
  const drag = (/** @type {PointerEvent} */ event) => {
    rows.classList.add("dragging");
    axis.move((last - event.clientX) / axis.trackWidth);
    last = event.clientX;
  };
  rows.addEventListener("pointerdown", (event) => {
    const onTrack = /** @type {Element} */ (event.target).closest(".track") !== null;
    if (event.button === 0 && event.pointerType === "mouse" && onTrack) {
      last = event.clientX;
      follow(event, drag, () => rows.classList.remove("dragging"));
    }
  });
}

/** @param {Axis} axis */
function dragRuler(axis) {
  const range = byId("range");
  byId("ruler").addEventListener("pointerdown", (event) => {
    const start = event.clientX;
    const { left } = byId("ticks").getBoundingClientRect();
    follow(
      event,
      (moved) => {
        range.hidden = false;
        range.style.left = `${Math.min(start, moved.clientX) - left}px`;
        range.style.width = `${Math.abs(moved.clientX - start)}px`;
      },
      (released) => {
        range.hidden = true;
        if (released !== null && Math.abs(released.clientX - start) > 4) {
          const [from, to] = [axis.timeAt(start), axis.timeAt(released.clientX)];
          axis.view(Math.min(from, to), Math.max(from, to));
        }
      },
    );
  });
}

/** @param {Axis} axis */
function dragOverview(axis) {
  const overview = byId("overview");
  const centre = (/** @type {PointerEvent} */ event) => {
    const { left, width } = overview.getBoundingClientRect();
    const at = ((event.clientX - left) / width) * axis.length;
    const half = (axis.to - axis.from) / 2;
    axis.view(at - half, at + half);
  };
  overview.addEventListener("pointerdown", (event) => {
    centre(event);
    follow(event, centre, () => {});
  });
}

/**
 * Follows a pointer from its press to its release.
 * @param {PointerEvent} pressed
 * @param {(event: PointerEvent) => void} moved called once it has moved
 * @param {(released: PointerEvent | null) => void} ended with null if the browser uses the pointer
 *     for something else, such as scrolling
 */
function follow(pressed, moved, ended) {
  const target = /** @type {HTMLElement} */ (pressed.currentTarget);
  const control = new AbortController();
  const { signal } = control;
  let began = false;
  const move = (/** @type {PointerEvent} */ event) => {
    if (!began && Math.abs(event.clientX - pressed.clientX) > 3) {
      began = true;
      target.setPointerCapture(pressed.pointerId); // not before: a click must reach its row
    }
    if (began) {
      moved(event);
    }
  };
  const end = (/** @type {PointerEvent | null} */ released) => {
    control.abort();
    ended(released);
  };
  target.addEventListener("pointermove", move, { signal });
  addEventListener("pointerup", end, { signal });
  addEventListener("pointercancel", () => end(null), { signal });
}
