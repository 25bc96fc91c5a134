/**
 * The server, over HTTP. The same for the console's page, which has a cookie, and for a page of the extension,
 * which has another origin and a token.
 */

import { parseExactly } from "./values.js";

/** @import {Update} from "./store.js" */
/** @import {Turn} from "./turn.js" */

const AGAIN_AFTER = 300; // ms; doubled each time
const AGAIN_AFTER_AT_MOST = 3000;
const SILENT_AFTER = 15_000; // ms; a server that is not suspended says something every 5 s

/** @typedef {"connecting" | "live" | "gone" | "signed out"} LinkState */

/** The server refused a request; the text says why. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {number} status
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * Why a request failed, for the user.
 * @param {unknown} error
 * @returns {string}
 */
export function whyFailed(error) {
  return error instanceof Refusal
    ? error.message
    : "The server does not answer. Run opentabs status.";
}

export class Link {
  #base;
  #key;
  #headers;
  #sendsMore; // than an element does that loads something

  /**
   * @param {object} [where]
   * @param {string} [where.base] the server's URL; by default, the page's own
   * @param {() => string} [where.key] the key of this browser's cookie
   * @param {boolean} [where.loadsWithKey] whether images are loaded with the key as well
   * @param {Record<string, string>} [where.headers] more headers of each request
   */
  constructor({ base = "", key = () => "", loadsWithKey = false, headers = {} } = {}) {
    this.#base = `${base}/console/api`;
    this.#key = key;
    this.#headers = headers;
    this.#sendsMore = loadsWithKey || Object.keys(headers).length > 0;
  }

  /**
   * Load an image.
   * @param {HTMLImageElement} image
   * @param {string} path
   */
  async load(image, path) {
    if (!this.#sendsMore) {
      image.src = `${this.#base}${path}`;
      return;
    }
    try {
      const url = URL.createObjectURL(await (await this.#fetch(path, {})).blob());
      image.addEventListener("load", () => URL.revokeObjectURL(url), { once: true });
      image.src = url;
    } catch {
      image.dispatchEvent(new Event("error"));
    }
  }

  /**
   * @param {string} path
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async get(path, signal) {
    return (await this.#fetch(path, signal === undefined ? {} : { signal })).json();
  }

  /**
   * @param {string} path
   * @param {unknown} body
   * @returns {Promise<any>}
   */
  async post(path, body) {
    return (await this.#send(path, body)).json();
  }

  /**
   * Make a request whose answer is one JSON document per line, and pass on each as it arrives.
   * @param {string} path
   * @param {unknown} body
   * @param {(document: any) => void} handle
   * @param {AbortSignal} signal
   */
  async lines(path, body, handle, signal) {
    const answer = await this.#send(path, body, signal);
    for await (const line of linesOf(answer)) handle(parseExactly(line));
  }

  /**
   * Receive what changes, for as long as the page lives and it is its turn.
   * @param {(update: Update) => void} handle
   * @param {(state: LinkState) => void} show
   * @param {Pick<Turn, "isOurs" | "addEventListener">} turn
   */
  async follow(handle, show, turn) {
    let boot = "";
    let version = 0;
    let delay = AGAIN_AFTER;
    for (;;) {
      while (!turn.isOurs) {
        show("connecting");
        await new Promise((resolve) => turn.addEventListener("change", resolve, { once: true }));
      }
      const connection = new AbortController();
      const { signal } = connection;
      turn.addEventListener("change", () => turn.isOurs || connection.abort(), { signal });
      /** @type {ReturnType<typeof setTimeout> | undefined} */
      let silent;
      const hear = () => {
        clearTimeout(silent);
        silent = setTimeout(() => connection.abort(), SILENT_AFTER);
      };
      hear();
      try {
        const answer = await this.#fetch(`/stream?boot=${boot}&since=${version}`, { signal });
        for await (const line of linesOf(answer, hear)) {
          const update = /** @type {Update} */ (JSON.parse(line.slice("data: ".length)));
          ({ boot, version } = update);
          delay = AGAIN_AFTER;
          try {
            handle(update);
          } catch (error) {
            reportError(error); // the page is broken, not the connection
          }
          show("live");
        }
        show("gone");
      } catch (error) {
        if (!turn.isOurs) continue;
        show(error instanceof Refusal && error.status === 401 ? "signed out" : "gone");
      } finally {
        clearTimeout(silent);
      }
      connection.abort();
      await new Promise((resolve) => setTimeout(resolve, delay));
      delay = Math.min(2 * delay, AGAIN_AFTER_AT_MOST);
    }
  }

  /**
   * @param {string} path
   * @param {unknown} body
   * @param {AbortSignal} [signal]
   */
  #send(path, body, signal) {
    return this.#fetch(path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
      ...(signal === undefined ? {} : { signal }),
    });
  }

  /**
   * @param {string} path
   * @param {RequestInit} init
   */
  async #fetch(path, init) {
    const answer = await fetch(`${this.#base}${path}`, {
      ...init,
      headers: {
        "X-OpenTabs-Console": this.#key(),
        ...this.#headers,
        .../** @type {Record<string, string>} */ (init.headers ?? {}),
      },
    });
    if (answer.ok) return answer;
    let why = `The server answered ${answer.status}.`;
    try {
      why = (await answer.json()).error ?? why;
    } catch {
      // It is not from the console's API.
    }
    throw new Refusal(why, answer.status);
  }
}

/**
 * The lines of an answer that are not empty, as they arrive.
 * @param {Response} answer
 * @param {() => void} [hear] called whenever a part of it arrives
 */
async function* linesOf(answer, hear = () => {}) {
  if (answer.body === null) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  /** @type {string[]} */
  let begun = []; // joined once, because a result may arrive in a thousand parts
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      hear();
      const [end = "", ...next] = value.split("\n");
      begun.push(end);
      for (const begin of next) {
        const line = begun.join("");
        if (line !== "") yield line;
        begun = [begin];
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // it has failed already
  }
}
