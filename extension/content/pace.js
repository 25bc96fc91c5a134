/**
 * When to send what a page may change as often as it likes: the first few times at once, and then
 * from time to time, with what there is by then.
 */
var Pace = class Pace {
  static #EVERY = 250; // ms
  static #AT_ONCE = 8;

  #send;
  #sent = 0; // how often in the last while; each counts for as long as #EVERY
  #isDue = false;

  /** @param {() => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** There is something new to send. */
  handleChange() {
    this.#isDue = true;
    this.#sendNext();
  }

  /** All of it is sent by other means. */
  skip() {
    this.#isDue = false;
  }

  #sendNext() {
    if (!this.#isDue || this.#sent === Pace.#AT_ONCE) {
      return;
    }
    this.#isDue = false;
    if (this.#sent++ === 0) {
      this.#forgetSoon();
    }
    this.#send();
  }

  #forgetSoon() {
    setTimeout(() => {
      if (--this.#sent > 0) {
        this.#forgetSoon();
      }
      this.#sendNext();
    }, Pace.#EVERY);
  }
};
