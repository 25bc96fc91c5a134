/**
 * Which of a browser's pages follow the server. Chromium opens six connections to it for all tabs
 * together, and following takes one of them, so of the pages that nobody sees only one follows: as
 * long as there is a page, the server can ask its user.
 */

export class Turn extends EventTarget {
  #isFirst = navigator.locks === undefined; // a page from another machine, without HTTPS

  constructor() {
    super();
    navigator.locks?.request("opentabs", () => {
      this.#isFirst = true;
      this.#notify();
      return new Promise(() => {}); // until the page is closed
    });
    document.addEventListener("visibilitychange", () => this.#notify());
  }

  /** Whether this page follows the server; the event `change` says that it may have changed. */
  get isOurs() {
    return this.#isFirst || document.visibilityState === "visible";
  }

  #notify() {
    this.dispatchEvent(new Event("change"));
  }
}
