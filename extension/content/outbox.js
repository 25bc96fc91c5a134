/**
 * One call's outgoing messages: its reports and its result, kept until acknowledged.
 *
 * Reports made while others are in flight are collected, and sent together when those have been
 * acknowledged, or when they fill a batch, never by a timer. At most two batches are in flight,
 * plus one more when the tool has ended, so other messages never wait behind more. The result is
 * sent with the last batch.
 */
var Outbox = class Outbox {
  static #BATCH = 128 * 1024; // characters of reports in one batch
  static #WINDOW = 192 * 1024; // characters in flight beyond which no other batch is sent
  static #KEPT = 8 * 1024 * 1024; // characters of unacknowledged reports kept
  static #MESSAGE_MAX = 4096; // characters of a progress message

  #address;
  #post;
  #seq = 0; // of the next report, or of the result
  /**
   * Not acknowledged, in order.
   * @type {{seq: number, text: string}[]}
   */
  #reports = [];
  #size = 0; // characters in #reports
  #sent = 0; // how many of #reports are in flight on this connection
  #inFlight = 0; // characters of these
  /** @type {string | null} */
  #end = null;
  #endSent = false; // on this connection

  /**
   * @param {string} documentId
   * @param {string} callId
   * @param {(frame: string) => void} post
   */
  constructor(documentId, callId, post) {
    this.#address = `"documentId":"${documentId}","callId":"${callId}"`;
    this.#post = post;
  }

  get hasEnded() {
    return this.#end !== null;
  }

  /** @param {string} body JSON objects joined by commas, as the runtime writes them */
  addReports(body) {
    /** @type {unknown[]} */
    let reports;
    try {
      reports = JSON.parse(`[${body}]`);
    } catch {
      return; // only a page that broke into an unprotected channel writes this
    }
    for (const report of reports) {
      const seq = this.#seq++;
      const text = Outbox.wellFormed(JSON.stringify({ seq, ...Outbox.#clean(report) }));
      this.#reports.push({ seq, text });
      this.#size += text.length;
    }
    this.#keepBound();
    this.#sendNext();
  }

  /**
   * @param {"result" | "error"} kind
   * @param {string} body JSON
   * @param {string} stamps JSON members, each preceded by a comma, or nothing
   */
  end(kind, body, stamps) {
    const field = kind === "result" ? "value" : "error";
    this.#end =
      `{"jsonrpc":"2.0","method":"tool.${kind}","params":{${this.#address},"seq":${this.#seq}` +
      `${stamps},"${field}":${Outbox.wellFormed(body)}}}`;
    this.#sendBatch(); // if nothing else is waiting, the result is sent at once
    this.#sendNext();
  }

  /** The document is going away: send everything that waits for an acknowledgement now. */
  flush() {
    while (this.#sent < this.#reports.length) {
      this.#sendBatch();
    }
    this.#sendNext();
  }

  /** There is a new connection: resend everything that is not acknowledged. */
  resend() {
    this.#sent = 0;
    this.#inFlight = 0;
    this.#endSent = false;
    this.#sendNext();
  }

  /** @param {number} seq up to which everything has arrived */
  acknowledge(seq) {
    const found = this.#reports.findIndex((report) => report.seq > seq);
    const done = this.#reports.splice(0, found < 0 ? this.#reports.length : found);
    const size = done.reduce((sum, { text }) => sum + text.length, 0);
    this.#size -= size;
    this.#inFlight = Math.max(0, this.#inFlight - size);
    this.#sent = Math.max(0, this.#sent - done.length);
    this.#sendNext();
  }

  #keepBound() {
    let excess = 0;
    while (this.#size > Outbox.#KEPT && this.#sent + excess < this.#reports.length) {
      this.#size -= this.#reports[this.#sent + excess]?.text.length ?? 0;
      excess++;
    }
    this.#reports.splice(this.#sent, excess); // the gap in the numbers says how many
  }

  /** Sends what may be sent now: reports, and the result after the last one. */
  #sendNext() {
    if (this.#sent === 0) {
      this.#sendBatch();
    }
    while (this.#inFlight < Outbox.#WINDOW && this.#size - this.#inFlight >= Outbox.#BATCH) {
      this.#sendBatch();
    }
    if (this.#end !== null && !this.#endSent && this.#sent === this.#reports.length) {
      this.#endSent = true;
      this.#post(this.#end);
    }
  }

  #sendBatch() {
    let size = 0;
    const first = this.#sent;
    while (this.#sent < this.#reports.length && size < Outbox.#BATCH) {
      size += this.#reports[this.#sent++]?.text.length ?? 0;
    }
    if (this.#sent === first) {
      return;
    }
    this.#inFlight += size;
    const texts = this.#reports.slice(first, this.#sent).map(({ text }) => text);
    this.#post(
      `{"jsonrpc":"2.0","method":"tool.progress","params":{${this.#address},` +
        `"reports":[${texts.join(",")}]}}`,
    );
  }

  /** @param {unknown} report */
  static #clean(report) {
    const { progress, total, message } = /** @type {Record<string, unknown>} */ (report ?? {});
    return {
      ...(typeof progress === "number" ? { progress } : {}),
      ...(typeof total === "number" ? { total } : {}),
      ...(typeof message === "string" ? { message: message.slice(0, Outbox.#MESSAGE_MAX) } : {}),
    };
  }

  /**
   * Replaces lone surrogates, which are not valid text and which Python rejects. JSON.stringify
   * writes them, and nothing else, as an escape that starts with \\ud.
   * @param {string} json
   */
  static wellFormed(json) {
    return json.includes("\\ud")
      ? json.replace(/\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (found) =>
          found.length > 2 ? "\\ufffd" : found,
        )
      : json;
  }
};
