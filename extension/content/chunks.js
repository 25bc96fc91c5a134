/**
 * Long messages in short frames, on their way between the relay and the server: see
 * `opentabs_py/core/chunks.py`. A message that fits in one frame is its own frame.
 */
var Chunks = class Chunks {
  static WHOLE = 1024 * 1024; // characters; a message up to this length is sent as one frame
  static #CHUNK = 256 * 1024; // characters of a longer one in each frame
  static #HEADER = 42; // characters before those

  #streams = 0; // long messages so far
  /** @type {Map<string, string[]>} the parts of incoming messages that are not complete */
  #partial = new Map();

  /**
   * @param {string} documentId
   * @param {string} text
   * @param {(frame: string) => void} send
   */
  split(documentId, text, send) {
    if (text.length <= Chunks.WHOLE) {
      send(text);
      return;
    }
    const head = `~${documentId}${(this.#streams++ >>> 0).toString(16).padStart(8, "0")}`;
    let start = 0;
    while (text.length - start > Chunks.#CHUNK) {
      let cut = start + Chunks.#CHUNK;
      const unit = text.charCodeAt(cut - 1);
      if (unit >= 0xd800 && unit < 0xdc00) {
        cut--; // never split a surrogate pair, because UTF-8 cannot encode half of one
      }
      send(`${head}+${text.slice(start, cut)}`);
      start = cut;
    }
    send(`${head}.${text.slice(start)}`);
  }

  /**
   * @param {string} frame
   * @returns {string | null} the message, if this frame completes one
   */
  join(frame) {
    if (!frame.startsWith("~")) {
      return frame;
    }
    const key = frame.slice(1, Chunks.#HEADER - 1);
    const parts = this.#partial.get(key) ?? [];
    parts.push(frame.slice(Chunks.#HEADER));
    if (frame[Chunks.#HEADER - 1] === "+") {
      this.#partial.set(key, parts);
      return null;
    }
    this.#partial.delete(key);
    return parts.join("");
  }

  /** The rest of incoming messages never comes: their connection is gone. */
  clear() {
    this.#partial.clear();
  }
};
