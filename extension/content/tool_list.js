/**
 * The list of the tools that the page registers itself, on its way to the server.
 *
 * A page may change its tools as often as it likes: the first few lists are sent at once, and then
 * the latest one from time to time.
 */
var ToolList = class ToolList {
  static #EVERY = 250; // ms
  static #AT_ONCE = 8;
  static #MAX = 512 * 1024; // characters; the runtime's side stays below half of it

  #send;
  /** @type {string | null} */
  #latest = null;
  #sent = 0; // lists in the last while, each of which counts for as long as #EVERY
  #isSent = true;

  /** @param {(list: {tools: unknown, leftOut: unknown}) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** @param {string} text JSON */
  receive(text) {
    if (text.length > ToolList.#MAX) {
      return; // only a page that broke into an unprotected channel writes this
    }
    this.#latest = text;
    this.#isSent = false;
    this.#sendNext();
  }

  /** There is a new connection, or a new document id. */
  resend() {
    if (this.#latest !== null) {
      this.#isSent = true;
      this.#sendNow(this.#latest);
    }
  }

  #sendNext() {
    if (this.#isSent || this.#sent === ToolList.#AT_ONCE || this.#latest === null) {
      return;
    }
    this.#isSent = true;
    if (this.#sent++ === 0) {
      this.#forgetSoon();
    }
    this.#sendNow(this.#latest);
  }

  #forgetSoon() {
    setTimeout(() => {
      if (--this.#sent > 0) {
        this.#forgetSoon();
      }
      this.#sendNext();
    }, ToolList.#EVERY);
  }

  /** @param {string} text */
  #sendNow(text) {
    try {
      const { tools, leftOut } = JSON.parse(text);
      this.#send({ tools, leftOut });
    } catch {
      // As above.
    }
  }
};
