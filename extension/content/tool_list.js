/** The list of the tools that the page registers itself, on its way to the server. */
var ToolList = class ToolList {
  static #MAX = 512 * 1024; // characters; the runtime's side stays below half of it

  #send;
  #pace = new Pace(() => this.#sendLatest());
  /** @type {string | null} */
  #latest = null;

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
    this.#pace.handleChange();
  }

  /** There is a new connection, or a new document id. */
  resend() {
    this.#pace.skip();
    this.#sendLatest();
  }

  #sendLatest() {
    if (this.#latest === null) {
      return;
    }
    try {
      const { tools, leftOut } = JSON.parse(this.#latest);
      this.#send({ tools, leftOut });
    } catch {
      // As above.
    }
  }
};
