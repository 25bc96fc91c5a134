/**
 * The calls as rows on one time axis: zoomed, moved, and drawn only where they are seen.
 */

/** @import {Call} from "./model.js" */
import { listenForGestures } from "./gestures.js";
import { axisTime, byId, duration, icon, kindOf, make, roundStep } from "./model.js";
import { drawOverview } from "./overview.js";
import { hideTip, showTip } from "./tip.js";

export class Timeline {
  static ROW = 30; // px
  static ROW_NARROW = 46; // px; the name above its bar
  static LEAST = 0.02; // ms; the shortest time the axis can show
  static TINY = 6; // px; a bar in which no hop can be told from another
  static APART = 5; // px; marks nearer than that to the one before are not drawn
  static NEAR = 6; // px; how near the pointer must be to a mark

  /** @type {readonly Call[]} */
  calls = [];
  /** @type {Call | null} */
  selected = null;
  from = 0;
  to = 1;
  length; // ms of the whole trace

  #rows = byId("rows");
  #space = byId("space");
  #narrow = matchMedia("(max-width: 640px)");
  #drawn = 0;
  #onSelect;

  /**
   * @param {readonly Call[]} calls all of the trace
   * @param {(call: Call, asked: boolean) => void} onSelect
   */
  constructor(calls, onSelect) {
    this.#onSelect = onSelect;
    const ends = calls.map((call) => call.at + Math.max(call.ms, Timeline.LEAST));
    this.length = ends.reduce((latest, end) => Math.max(latest, end), 1);
    this.#rows.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.#rows);
    this.#listen();
  }

  // --- what is shown ---

  /** @param {readonly Call[]} calls */
  show(calls) {
    this.calls = calls;
    this.draw();
  }

  fit() {
    const margin = this.length * 0.015;
    this.view(-margin, this.length + margin);
  }

  /** @param {Call} call */
  zoomTo(call) {
    const length = Math.max(call.ms, Timeline.LEAST);
    this.view(call.at - length * 0.08, call.at + length * 1.08);
  }

  /**
   * @param {number} factor above 1 shows less, larger
   * @param {number} [at] ms that stays where it is; the middle when not given
   */
  zoom(factor, at = (this.from + this.to) / 2) {
    this.view(at - (at - this.from) / factor, at + (this.to - at) / factor);
  }

  /** @param {number} share of what is seen */
  move(share) {
    const by = (this.to - this.from) * share;
    this.view(this.from + by, this.to + by);
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  view(from, to) {
    const most = this.length * 1.06;
    const length = Math.min(Math.max(to - from, Timeline.LEAST), most);
    const least = -this.length * 0.03;
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - length / 2, least), least + most - length);
    this.to = this.from + length;
    this.draw();
  }

  /**
   * @param {Call} call
   * @param {boolean} asked by the reader, and not by us
   */
  choose(call, asked = true) {
    this.selected = call;
    const index = this.calls.indexOf(call);
    const { top, bottom } = this.#extent(index);
    if (top < this.#rows.scrollTop) {
      this.#rows.scrollTop = top;
    } else if (bottom > this.#rows.scrollTop + this.#rows.clientHeight) {
      this.#rows.scrollTop = bottom - this.#rows.clientHeight;
    }
    if (asked && (call.at > this.to || call.at + call.ms < this.from)) {
      const length = this.to - this.from;
      this.view(call.at - length * 0.1, call.at + length * 0.9);
    }
    this.draw();
    this.#onSelect(call, asked);
  }

  /** @param {number} by rows */
  step(by) {
    const before = this.selected === null ? -1 : this.calls.indexOf(this.selected);
    const index = Math.min(Math.max(before + by, 0), this.calls.length - 1);
    const call = this.calls[before < 0 && by > 0 ? 0 : index];
    if (call !== undefined) {
      this.choose(call);
    }
  }

  /** How many rows are seen at once. */
  get page() {
    return Math.max(1, Math.floor(this.#rows.clientHeight / this.#rowHeight) - 1);
  }

  // --- drawing ---

  draw() {
    if (this.#drawn === 0) {
      this.#drawn = requestAnimationFrame(() => {
        this.#drawn = 0;
        this.#drawNow();
      });
    }
  }

  #drawNow() {
    const width = this.trackWidth;
    const step = roundStep(this.to - this.from, width / 90);
    this.#drawRuler(width, step);
    this.#rows.style.setProperty("--step", `${(step / (this.to - this.from)) * width}px`);
    const offset =
      ((Math.ceil(this.from / step) * step - this.from) / (this.to - this.from)) * width;
    this.#rows.style.setProperty("--offset", `${offset}px`);
    this.#drawRows(width);
    drawOverview(this);
  }

  /** @param {number} width */
  #drawRows(width) {
    const height = this.#rowHeight;
    this.#rows.style.setProperty("--seen", `${this.#rows.clientHeight}px`);
    this.#space.style.height = `${this.calls.length * height}px`;
    const first = Math.max(0, Math.floor(this.#rows.scrollTop / height) - 2);
    const last = Math.ceil((this.#rows.scrollTop + this.#rows.clientHeight) / height) + 2;
    const rows = this.calls.slice(first, last).map((call, index) => {
      const row = this.#row(call, first + index, width);
      row.style.top = `${(first + index) * height}px`;
      return row;
    });
    this.#space.replaceChildren(...rows);
    byId("nothing").hidden = this.calls.length > 0;
    const active = this.selected !== null && rows.some((row) => row.id === "selected");
    if (active) {
      this.#rows.setAttribute("aria-activedescendant", "selected");
    } else {
      this.#rows.removeAttribute("aria-activedescendant");
    }
  }

  /**
   * @param {Call} call
   * @param {number} index
   * @param {number} width
   */
  #row(call, index, width) {
    const isSelected = call === this.selected;
    const name = make("span", "name", [icon(call.outcome), make("span", "text", call.name)]);
    const row = make("div", `row ${call.outcome}`, [
      make("span", "label", [name, make("span", "time", duration(call.ms))]),
      this.#track(call, width),
    ]);
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", String(isSelected));
    row.setAttribute("aria-setsize", String(this.calls.length));
    row.setAttribute("aria-posinset", String(index + 1));
    row.setAttribute("aria-label", `${call.name}, ${call.outcomeText}, ${duration(call.ms)}`);
    row.dataset.index = String(index);
    if (isSelected) {
      row.id = "selected";
    }
    return row;
  }

  /**
   * @param {Call} call
   * @param {number} width
   */
  #track(call, width) {
    const track = make("span", "track");
    const left = this.#x(call.at, width);
    const right = this.#x(call.at + call.ms, width);
    if (right < -3 || left > width + 3) {
      track.append(make("span", left > width ? "off right" : "off left", left > width ? "›" : "‹"));
      return track;
    }
    const place = (
      /** @type {HTMLElement} */ element,
      /** @type {number} */ x0,
      /** @type {number} */ x1,
    ) => {
      const start = Math.max(x0, -4);
      element.style.left = `${start}px`;
      element.style.width = `${Math.max(Math.min(x1, width + 4) - start, 1)}px`;
      track.append(element);
    };
    const isTiny = right - left < Timeline.TINY;
    place(make("span", isTiny ? "bar tiny" : "bar"), left, Math.max(right, left + 3));
    if (isTiny) {
      return track;
    }
    for (const hop of call.hops) {
      const x0 = this.#x(call.at + hop.start, width);
      const x1 = this.#x(call.at + hop.start + hop.ms, width);
      if (x1 - x0 >= 0.7 && x1 > -4 && x0 < width + 4) {
        place(make("span", `hop ${kindOf(hop)}`), x0, x1);
      }
    }
    this.#addMarks(track, call, call.progress, () => "mark report", width);
    this.#addMarks(track, call, call.logs, (log) => `mark log ${log.level}`, width);
    this.#addMarks(track, call, call.links.slice(1), () => "mark link", width);
    return track;
  }

  /**
   * @template {{at: number}} Mark
   * @param {HTMLElement} track
   * @param {Call} call
   * @param {readonly Mark[]} marks
   * @param {(mark: Mark) => string} className
   * @param {number} width
   */
  #addMarks(track, call, marks, className, width) {
    let last = Number.NEGATIVE_INFINITY;
    for (const mark of marks) {
      const x = this.#x(call.at + mark.at, width);
      if (x - last >= Timeline.APART && x >= 0 && x <= width) {
        const element = make("span", className(mark));
        element.style.left = `${x}px`;
        track.append(element);
        last = x;
      }
    }
  }

  /**
   * @param {number} width
   * @param {number} step
   */
  #drawRuler(width, step) {
    const labels = [];
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.#x(at, width);
      if (x < width - 30) {
        const label = make("span", "tick", axisTime(Math.abs(at) < step / 1e6 ? 0 : at, step));
        label.style.left = `${x}px`;
        labels.push(label);
      }
    }
    byId("ticks").replaceChildren(...labels);
  }

  // --- geometry ---

  get #rowHeight() {
    return this.#narrow.matches ? Timeline.ROW_NARROW : Timeline.ROW;
  }

  get trackWidth() {
    return Math.max(byId("ticks").clientWidth, 1);
  }

  /**
   * @param {number} at
   * @param {number} width
   */
  #x(at, width) {
    return ((at - this.from) / (this.to - this.from)) * width;
  }

  /** @param {number} clientX */
  timeAt(clientX) {
    const { left, width } = byId("ticks").getBoundingClientRect();
    return this.from + ((clientX - left) / width) * (this.to - this.from);
  }

  /** @param {number} index */
  #extent(index) {
    return { top: index * this.#rowHeight, bottom: (index + 1) * this.#rowHeight };
  }

  /** @param {Event} event */
  #callAt(event) {
    const row = /** @type {Element} */ (event.target).closest(".row");
    return row instanceof HTMLElement ? this.calls[Number(row.dataset.index)] : undefined;
  }

  // --- pointer ---

  #listen() {
    this.#rows.addEventListener("click", (event) => {
      const call = this.#callAt(event);
      if (call !== undefined) {
        this.choose(call);
      }
    });
    this.#rows.addEventListener("dblclick", (event) => {
      const call = this.#callAt(event);
      if (call !== undefined) {
        this.zoomTo(call);
      }
    });
    this.#rows.addEventListener("pointermove", (event) => this.#showTip(event));
    this.#rows.addEventListener("pointerleave", hideTip);
    listenForGestures(this);
  }

  /** @param {PointerEvent} event */
  #showTip(event) {
    const call = this.#callAt(event);
    if (call === undefined || this.#rows.classList.contains("dragging")) {
      hideTip();
      return;
    }
    const near = (Timeline.NEAR / this.trackWidth) * (this.to - this.from);
    showTip(call, this.timeAt(event.clientX) - call.at, near, event);
  }
}
