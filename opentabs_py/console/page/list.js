/**
 * A list of any length, of which only the rows that are seen exist.
 */

import { h, swap } from "./dom.js";

const AROUND = 8; // rows that exist above and below those that are seen
const AIMS_FOR = 1000; // ms; how long rows stay where they are after the mouse has moved over them

/**
 * @template {object} T
 */
export class List {
  /** @type {readonly T[]} */
  #items = [];
  /** @type {readonly T[]} what is shown when the mouse rests */
  #next = [];
  #aiming = 0;
  /** @type {Map<string, {element: HTMLElement, item: T}>} */
  #shown = new Map();
  #chosen = "";
  #space = h("div", { role: "presentation", class: "space" });
  #options;
  #planned = 0;

  /**
   * @param {object} options
   * @param {string} options.label for screen readers
   * @param {(item: T) => string} options.key
   * @param {() => number} options.height of a row, in px
   * @param {(item: T) => HTMLElement} options.render gives every item the same number of children
   * @param {(item: T) => string} options.name of a row, for screen readers
   * @param {(item: T, asked: boolean) => void} options.onChoose
   * @param {() => void} [options.onLeave] Escape
   * @param {boolean} [options.growsAtTop] whether new rows move the others, which then wait for the mouse
   */
  constructor(options) {
    this.#options = options;
    this.element = h(
      "div",
      { class: "list", role: "listbox", tabindex: "0", "aria-label": options.label },
      this.#space,
    );
    this.element.addEventListener("scroll", () => this.#plan(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#handleKey(event));
    this.element.addEventListener("click", (event) => this.#handleClick(event));
    if (options.growsAtTop) {
      this.element.addEventListener("pointermove", () => this.#aim(AIMS_FOR), { passive: true });
      this.element.addEventListener("pointerleave", () => this.#aim(0));
    }
    new ResizeObserver(() => this.#draw()).observe(this.element);
    for (const type of ["beforeprint", "afterprint"]) {
      addEventListener(type, () => this.#draw({ all: type === "beforeprint" }));
    }
  }

  get chosen() {
    return this.#items.find((item) => this.#options.key(item) === this.#chosen);
  }

  get isAtEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 4;
  }

  /** @param {readonly T[]} items */
  show(items) {
    this.#next = items;
    if (this.#aiming !== 0) {
      const { key } = this.#options;
      const now = new Map(items.map((item) => [key(item), item]));
      this.#items = this.#items.map((item) => now.get(key(item)) ?? item);
      this.#draw();
      return;
    }
    const top = this.#topItem();
    this.#items = items;
    this.#space.style.height = `${items.length * this.#options.height()}px`;
    this.#keepInPlace(top);
    this.#draw();
  }

  /** @param {string} key */
  mark(key) {
    this.#chosen = key;
    this.#draw();
  }

  /**
   * Scroll to a row, if there is one.
   * @param {string} key
   */
  reveal(key) {
    const index = this.#items.findIndex((item) => this.#options.key(item) === key);
    if (index >= 0) this.element.scrollTop = (index - 2) * this.#options.height();
  }

  scrollToEnd() {
    this.element.scrollTop = this.element.scrollHeight;
  }

  /** Draw again what depends on the time. */
  refresh() {
    this.#draw({ again: true });
  }

  /**
   * Keep the rows where they are: a click hits the one that its user has aimed at.
   * @param {number} time ms
   */
  #aim(time) {
    clearTimeout(this.#aiming);
    this.#aiming = setTimeout(() => {
      this.#aiming = 0;
      this.show(this.#next);
    }, time);
  }

  /** @returns {{key: string, from: number} | null} */
  #topItem() {
    const height = this.#options.height();
    const at = Math.floor(this.element.scrollTop / height);
    const item = this.#items[at];
    if (at === 0 || item === undefined) return null; // at the top, what is new is shown
    return { key: this.#options.key(item), from: this.element.scrollTop - at * height };
  }

  /** @param {{key: string, from: number} | null} top */
  #keepInPlace(top) {
    if (top === null) return;
    const index = this.#items.findIndex((item) => this.#options.key(item) === top.key);
    if (index >= 0) this.element.scrollTop = index * this.#options.height() + top.from;
  }

  #plan() {
    this.#planned ||= requestAnimationFrame(() => {
      this.#planned = 0;
      this.#draw();
    });
  }

  /**
   * @param {object} [options]
   * @param {boolean} [options.all] whether to draw the rows out of sight too
   * @param {boolean} [options.again] whether to draw those whose items are the same too
   */
  #draw({ all = false, again = false } = {}) {
    const { key, height, name } = this.#options;
    const row = height();
    const { scrollTop, clientHeight } = this.element;
    const count = this.#items.length;
    const first = all ? 0 : Math.max(0, Math.floor(scrollTop / row) - AROUND);
    const last = all
      ? count
      : Math.min(count, Math.ceil((scrollTop + clientHeight) / row) + AROUND);
    /** @type {Map<string, {element: HTMLElement, item: T}>} */
    const now = new Map();
    for (let index = first; index < last; index++) {
      const item = /** @type {T} */ (this.#items[index]);
      const id = key(item);
      const known = this.#shown.get(id);
      const element =
        known?.item === item && !again ? known.element : this.#render(item, known?.element);
      element.style.transform = `translateY(${index * row}px)`;
      element.style.height = `${row}px`;
      element.dataset.key = id;
      element.id = `${this.#options.label}-${id}`.replace(/\W+/g, "-");
      element.setAttribute("role", "option");
      element.setAttribute("aria-label", name(item));
      element.setAttribute("aria-posinset", String(index + 1));
      element.setAttribute("aria-setsize", String(this.#items.length));
      element.setAttribute("aria-selected", String(id === this.#chosen));
      now.set(id, { element, item });
    }
    this.#shown = now;
    /** @type {Set<Element>} */
    const wanted = new Set([...now.values()].map(({ element }) => element));
    const { children } = this.#space;
    for (const each of [...children]) if (!wanted.has(each)) each.remove();
    let at = 0;
    for (const each of wanted) {
      const there = children[at++] ?? null;
      if (there !== each) this.#space.insertBefore(each, there);
    }
    const chosen = now.get(this.#chosen);
    if (chosen === undefined) this.element.removeAttribute("aria-activedescendant");
    else this.element.setAttribute("aria-activedescendant", chosen.element.id);
  }

  /**
   * Render an item into the row it has, if any, and leave there what is the same: the pointer stays on its row, and
   * what moves in it goes on.
   * @param {T} item
   * @param {HTMLElement | undefined} known
   */
  #render(item, known) {
    const rendered = this.#options.render(item);
    rendered.classList.add("row");
    if (known === undefined) return rendered;
    known.className = rendered.className;
    const parts = [...known.children];
    for (const [at, part] of [...rendered.children].entries()) swap(parts[at] ?? null, part);
    return known;
  }

  /**
   * @param {number} index
   * @param {boolean} asked
   */
  #choose(index, asked) {
    const item = this.#items[Math.max(0, Math.min(index, this.#items.length - 1))];
    if (item === undefined) return;
    this.#chosen = this.#options.key(item);
    const row = this.#options.height();
    const top = this.#items.indexOf(item) * row;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    const below = top + row - this.element.clientHeight;
    if (below > this.element.scrollTop) this.element.scrollTop = below;
    this.#draw();
    this.#options.onChoose(item, asked);
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { key } = this.#options;
    const at = this.#items.findIndex((item) => key(item) === this.#chosen);
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.#options.height()) - 1);
    /** @type {Record<string, number>} */
    const steps = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? 0 : at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: this.#items.length - 1,
    };
    const to = steps[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.#choose(to, false);
    } else if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      this.#choose(at, true);
    } else if (event.key === "Escape") {
      this.#options.onLeave?.();
    }
  }

  /** @param {MouseEvent} event */
  #handleClick(event) {
    const row = event.target instanceof Element ? event.target.closest(".row") : null;
    if (!(row instanceof HTMLElement)) return;
    const index = this.#items.findIndex((item) => this.#options.key(item) === row.dataset.key);
    if (index >= 0) this.#choose(index, true);
  }
}
