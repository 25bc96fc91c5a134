// Hand-written elements, for the modules of pages: Node has none.

/** The minimum of an element that the pages' modules need. */
export class FakeElement {
  #value = "";
  /** @type {FakeElement | null} */
  parent = null;
  textContent = "";
  title = "";
  validity = "";
  checked = false;
  /** @type {Record<string, string>} */
  dataset = {};
  /** @type {any[]} */
  children = [];
  /** @type {Record<string, string>} */
  attributes = {};
  /** @type {Record<string, ((event: object) => unknown)[]>} */
  listeners = {};
  classList = { add: () => {}, toggle: () => {}, remove: () => {} };

  /** @param {string} name */
  constructor(name) {
    this.name = name;
  }

  get value() {
    return this.#value;
  }

  /** Set a value; as in a browser, fields change line breaks. */
  set value(value) {
    if (this.name === "input") value = String(value).replace(/[\r\n]/g, "");
    if (this.name === "textarea") value = String(value).replace(/\r\n?/g, "\n");
    this.#value = value;
  }

  get firstChild() {
    return this.children[0] ?? null;
  }

  /** @param {any[]} children */
  append(...children) {
    this.children.push(...children);
    for (const each of children) if (each instanceof FakeElement) each.parent = this;
  }

  /** @param {any[]} children */
  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  animate() {}

  /** @param {FakeElement} other */
  replaceWith(other) {
    const parent = this.parent;
    parent?.replaceChildren(...parent.children.map((each) => (each === this ? other : each)));
  }

  /**
   * @param {string} name
   * @param {string} value
   */
  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  /**
   * @param {string} type
   * @param {(event: object) => unknown} listener
   */
  addEventListener(type, listener) {
    this.listeners[type] = [...(this.listeners[type] ?? []), listener];
  }

  /** @param {string} type of an event that the user causes */
  fire(type) {
    for (const listener of this.listeners[type] ?? []) listener({ preventDefault() {} });
  }

  /** @param {string} message */
  setCustomValidity(message) {
    this.validity = message;
  }

  reportValidity() {}

  focus() {}

  querySelector() {
    return null;
  }

  /** All descendants. @returns {FakeElement[]} */
  all() {
    return this.children.flatMap((each) =>
      each instanceof FakeElement ? [each, ...each.all()] : [],
    );
  }

  /** The text of this element and its descendants. @returns {string} */
  text() {
    return this.children
      .map((each) => (each instanceof FakeElement ? each.text() : String(each)))
      .join("");
  }
}

/** Replaces `document` with one that creates these elements. */
export function fakeDocument() {
  globalThis.HTMLElement = /** @type {any} */ (FakeElement);
  globalThis.document = /** @type {any} */ ({
    createElement: (/** @type {string} */ name) => new FakeElement(name),
    activeElement: null,
    createElementNS: (/** @type {string} */ _, /** @type {string} */ name) => new FakeElement(name),
  });
}
