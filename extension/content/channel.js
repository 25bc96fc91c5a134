/**
 * The relay's end of the channel to the page: events on a node that is in no document and that only
 * relay and runtime have a reference to, so a page can neither observe nor forge them.
 *
 * The runtime gets the node from the frame that `realm.js` created. If there is no frame, because
 * the page is sandboxed or was open before the extension was loaded, the node is handed over in an
 * event on `document`, which the page can observe, and the channel is not protected.
 *
 * The classic scripts in this folder share the ISOLATED world. They use `var`, because a script may
 * be injected again and then redeclares its variable.
 */
var PageChannel = class PageChannel {
  static #OFFER = "opentabs:offer";
  static #READY = "opentabs:ready";

  /** @type {(kind: string, text: string) => void} */
  #handle;
  /** @type {HTMLElement} */
  #node;
  #isProtected = false;

  /** The nonce with which the page's plugins sign their logs and readiness changes. */
  nonce = PageChannel.randomName();

  /** @param {(kind: string, text: string) => void} handle receives each message from the runtime */
  constructor(handle) {
    this.#handle = handle;
    const scope = /** @type {{openTabsRealm?: {frame: HTMLElement, node: HTMLElement}}} */ (
      globalThis
    );
    const realm = scope.openTabsRealm;
    delete scope.openTabsRealm;
    this.#node = realm?.node ?? document.createElement("opentabs");
    this.#node.addEventListener("up", this.#handleUp);
    if (realm !== undefined) {
      document.adoptNode(this.#node); // otherwise its listeners go away with the frame
      realm.frame.remove();
      this.#isProtected = this.#greet();
    }
    if (!this.#isProtected) {
      document.addEventListener(PageChannel.#READY, this.#offer);
      this.#offer(); // for a runtime that was there first
    }
  }

  /** Whether the page had no chance to get between relay and runtime. */
  get isProtected() {
    return this.#isProtected;
  }

  /** @param {() => void} listener is called when another relay comes to this document */
  static whenAnotherComes(listener) {
    document.addEventListener(PageChannel.#OFFER, listener);
  }

  /** @returns {string} 128 random bits in hex */
  static randomName() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /**
   * @param {string} kind see "Between relay and page" in docs/protocol.md
   * @param {string} text
   * @returns {boolean} whether a runtime received it
   */
  send(kind, text) {
    const event = new CustomEvent("down", { detail: `${kind} ${text}`, cancelable: true });
    return !this.#node.dispatchEvent(event);
  }

  #greet() {
    return this.send("nonce", this.nonce);
  }

  #offer = () => {
    const event = new FocusEvent(PageChannel.#OFFER, { relatedTarget: this.#node });
    document.dispatchEvent(event);
    if (this.#greet()) {
      document.removeEventListener(PageChannel.#READY, this.#offer);
    }
  };

  /** @param {Event} event */
  #handleUp = (event) => {
    const { detail } = /** @type {CustomEvent<string>} */ (event);
    const end = detail.indexOf(" ");
    this.#handle(detail.slice(0, end), detail.slice(end + 1));
  };
};
