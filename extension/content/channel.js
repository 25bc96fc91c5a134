/**
 * The relay's end of the channel to the page: events on `document` whose names are 128 random
 * bits and used once. Each message names the next, so a page can neither hear nor forge one.
 *
 * The classic scripts of this folder share the ISOLATED world, and one that is injected again
 * declares its `var` again.
 */
var PageChannel = class PageChannel {
  static #NAME = 32; // hex digits
  static #OFFER = "opentabs:offer";
  static #READY = "opentabs:ready";

  /** @type {(kind: string, text: string) => void} */
  #take;
  #down = PageChannel.randomName();
  #up = PageChannel.randomName();

  /** What the page's plugins sign their logs and readiness changes with. */
  nonce = PageChannel.randomName();

  /** @param {(kind: string, text: string) => void} take is given each message of the runtime */
  constructor(take) {
    this.#take = take;
    document.addEventListener(this.#up, this.#hear, { once: true });
    document.addEventListener(PageChannel.#READY, this.#offer);
    this.#offer(); // for a runtime that came first
  }

  /** @param {() => void} listener is called when another relay comes to this document */
  static whenAnotherComes(listener) {
    document.addEventListener(PageChannel.#OFFER, listener);
  }

  static randomName() {
    const bytes = crypto.getRandomValues(new Uint8Array(PageChannel.#NAME / 2));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /**
   * @param {string} text
   * @returns {boolean} whether the runtime is there and took it
   */
  tell(text) {
    const next = PageChannel.randomName();
    const event = new CustomEvent(this.#down, { detail: next + text, cancelable: true });
    if (document.dispatchEvent(event)) {
      return false;
    }
    this.#down = next;
    return true;
  }

  /** The first names go over once, in a fixed event, before any script of the page runs. */
  #offer = () => {
    const detail = this.#down + this.#up + this.nonce;
    const event = new CustomEvent(PageChannel.#OFFER, { detail, cancelable: true });
    if (!document.dispatchEvent(event)) {
      document.removeEventListener(PageChannel.#READY, this.#offer);
    }
  };

  /** @param {Event} event */
  #hear = (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    const { detail } = /** @type {CustomEvent<string>} */ (event);
    this.#up = detail.slice(0, PageChannel.#NAME);
    document.addEventListener(this.#up, this.#hear, { once: true });
    this.#take(detail[PageChannel.#NAME] ?? "", detail.slice(PageChannel.#NAME + 1));
  };
};
