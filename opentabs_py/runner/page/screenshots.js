/**
 * Screenshots: small ones in a row, each of which opens large.
 *
 * @typedef {{when: "before" | "after" | "failure", calls: string[], file: string, of: string, data?: string}} Screenshot
 *     `data` only in a report, which has them within
 * @typedef {(image: HTMLImageElement, screenshot: Screenshot) => void} Loader loads the image of a screenshot
 */

import { h } from "./dom.js";

/** @type {Record<Screenshot["when"], string>} */
const WHEN = { before: "Before the call", after: "After the call", failure: "At the failure" };

/** What the reader has opened and closed of the chosen test; it is drawn again whenever it changes. */
export class Memory {
  /** @type {Map<string, boolean>} */
  #open = new Map();
  /** @type {Map<string, Promise<HTMLImageElement>>} */
  #images = new Map();

  clear() {
    this.#open.clear();
    this.#images.clear();
  }

  /**
   * Make a part open as it was, and remember what becomes of it.
   * @param {HTMLDetailsElement} part
   * @param {string} key
   * @param {boolean} open unless the reader has said something else
   */
  keep(part, key, open) {
    part.open = this.#open.get(key) ?? open;
    part.querySelector("summary")?.addEventListener("click", () => this.#open.set(key, !part.open));
  }

  /**
   * The image of a figure, loaded once; ready when it has loaded, or cannot be. If an image loads within a part
   * that is closed, Chromium may show nothing in its place when the part is opened.
   * @param {Loader} load
   * @param {Screenshot} screenshot
   * @param {string} alt
   * @param {string} key names the figure
   */
  image(load, screenshot, alt, key) {
    const known = this.#images.get(key);
    if (known !== undefined) return known;
    const image = h("img", { alt, width: 320, height: 200 });
    const { promise, resolve } = Promise.withResolvers();
    image.addEventListener("load", () => resolve(image));
    image.addEventListener("error", () => {
      image.classList.add("gone");
      resolve(image);
    });
    load(image, screenshot);
    this.#images.set(key, promise);
    return promise;
  }
}

/**
 * @param {readonly Screenshot[]} shown
 * @param {Loader} load
 * @param {Memory} memory
 * @param {string} of the call that they are of, or nothing: calls that ended together have one of them in common
 */
export function screenshots(shown, load, memory, of = "") {
  const figures = shown.map((each) => figure(each, load, memory, `${of} ${each.file}`));
  return h("div", { class: "screenshots" }, ...figures);
}

/**
 * @param {Screenshot} shown
 * @param {Loader} load
 * @param {Memory} memory
 * @param {string} key
 */
function figure(shown, load, memory, key) {
  const { when, of } = shown;
  const text = of === "" ? WHEN[when] : `${WHEN[when]}, ${of}`;
  const open = h("button", {
    type: "button",
    class: "screenshot",
    "aria-label": `${text}: enlarge`,
    "data-keep": key,
  });
  memory.image(load, shown, text, key).then((image) => open.append(image));
  open.addEventListener("click", () => enlarge(shown, load, text));
  return h("figure", {}, open, h("figcaption", { class: "quiet" }, text));
}

/**
 * @param {Screenshot} shown
 * @param {Loader} load
 * @param {string} text
 */
function enlarge(shown, load, text) {
  const close = h("button", { type: "button", "aria-label": "Close the screenshot" }, "×");
  const large = h("img", { alt: text });
  load(large, shown);
  const dialog = h(
    "dialog",
    { class: "large", "aria-label": text },
    h("p", {}, text, close),
    large,
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
