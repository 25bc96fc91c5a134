/**
 * Shows one view at a time: the one that the URL names behind its `#`. The console and the side
 * panel have different views, and this in common.
 */

/** @import {View} from "./main.js" */
/** @import {Section} from "./store.js" */

import { announce, byId, isTyping } from "./dom.js";

const PAUSE = 600; // ms without a key, after which what a filter shows is announced

export class Router {
  /** @type {ReadonlyMap<string, View>} */
  #views = new Map();
  /** @type {Set<Section> | null} what has changed while a mouse button is down */
  #held = null;
  #announcing = 0;
  #home;
  #onShow;
  #beside;

  /**
   * @param {string} home the view that is shown if the URL names none
   * @param {() => void} [onShow] called when a view is shown
   * @param {View["update"]} [beside] updates what is shown beside the views
   */
  constructor(home, onShow = () => {}, beside = () => {}) {
    this.#home = home;
    this.#onShow = onShow;
    this.#beside = beside;
    this.current = home;
    this.opened = ""; // what the view shows of its own, by the rest of the URL
  }

  /**
   * @param {string} path
   * @param {boolean} [replace] the URL in the history
   */
  go = (path, replace = false) => {
    if (`#/${path}` === location.hash) return;
    if (replace) {
      history.replaceState(null, "", `#/${path}`);
      this.#route();
    } else {
      location.hash = `#/${path}`;
    }
  };

  /**
   * Show the view that the URL names, now and whenever that changes.
   * @param {Record<string, {view: View}>} views
   */
  start(views) {
    this.#views = new Map(Object.entries(views).map(([name, { view }]) => [name, view]));
    addEventListener("hashchange", () => this.#route());
    document.querySelector(".skip")?.addEventListener("click", (event) => {
      event.preventDefault(); // its fragment names no view
      byId("view").focus();
    });
    addEventListener("keydown", (event) => this.#handleKey(event));
    addEventListener("input", (event) => this.#announceCount(event.target));
    addEventListener("pointerdown", () => this.#hold(), true);
    for (const type of ["pointerup", "pointercancel"]) {
      addEventListener(type, () => setTimeout(() => this.#release()), true); // after the click
    }
    addEventListener("blur", () => this.#release()); // of the window, which may not see the rest
    this.#route();
  }

  /** @param {ReadonlySet<Section>} changed */
  update(changed) {
    if (this.#held !== null) {
      for (const section of changed) this.#held.add(section);
      return;
    }
    this.#views.get(this.current)?.update(changed);
    this.#beside(changed);
  }

  /** Hold updates while a mouse button is down: replacing what it is on would lose the click. */
  #hold() {
    this.#held ??= new Set();
  }

  #release() {
    const held = this.#held;
    this.#held = null;
    if (held !== null && held.size > 0) this.update(held);
  }

  #route() {
    const [name = "", ...path] = location.hash.replace(/^#\/?/, "").split("/").map(decode);
    this.current = this.#views.has(name) ? name : this.#home;
    const view = this.#views.get(this.current);
    if (view === undefined) return;
    const place = byId("view");
    if (place.firstElementChild !== view.element) place.replaceChildren(view.element);
    for (const anchor of document.querySelectorAll("#nav a")) {
      const isCurrent = anchor.getAttribute("data-view") === this.current;
      if (isCurrent) anchor.setAttribute("aria-current", "page");
      else anchor.removeAttribute("aria-current");
    }
    this.opened = path[0] ?? "";
    view.show(path);
    this.#onShow();
  }

  /**
   * Announce how much a filter shows; a count that is always live would be read at each new row.
   * @param {EventTarget | null} field
   */
  #announceCount(field) {
    const header = field instanceof Element && field.closest(".view > header");
    if (!header) return;
    clearTimeout(this.#announcing);
    this.#announcing = setTimeout(() => {
      announce(header.querySelector(".count")?.textContent ?? "");
    }, PAUSE);
  }

  /**
   * Empties a filter; if it is empty, leaves it.
   * @param {HTMLInputElement} search
   */
  #leaveSearch(search) {
    if (search.value === "") {
      search.blur();
    } else {
      search.value = "";
      search.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const view = this.#views.get(this.current);
    if (event.key === "/" && !isTyping(event.target) && view?.search !== undefined) {
      event.preventDefault();
      view.search.focus();
      view.search.select();
    } else if (event.key === "Escape") {
      if (view?.search !== undefined && event.target === view.search) {
        this.#leaveSearch(view.search);
        event.preventDefault();
      } else if (!isTyping(event.target)) view?.leave?.();
    }
  }
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
