/**
 * The relay: between the page's runtime (MAIN world) and the service worker.
 *
 * It runs in the ISOLATED world, where a page cannot reach. It keeps every report and
 * result of a call until the server acknowledges it, so that a worker may die at any
 * moment; it drops a call id it has seen, so that a tool runs at most once per dispatch.
 */
(() => {
  const scope = /** @type {{openTabsRelay?: {alive(): boolean}, openTabsLate?: boolean}} */ (
    globalThis
  );
  if (scope.openTabsRelay?.alive() === true) {
    return;
  }

  const NAME = 32; // hex digits: 128 bits that a page cannot guess
  const WHOLE = 1024 * 1024; // characters; see opentabs_py/core/frames.py
  const CHUNK = 256 * 1024;
  const BATCH = 256 * 1024; // characters of reports in one batch
  const KEPT = 8 * 1024 * 1024; // characters of unacknowledged reports kept for one call
  const MESSAGE_MAX = 4096; // characters of a progress message
  const LOG_RATE = 50; // records a second, and
  const LOG_BURST = 200; // at once
  const LOG_BATCH = 200;
  const LOG_MAX = 8000; // characters of one record
  const CONFIG_GRACE = 2000; // ms after which a page that never completes counts as complete

  /**
   * A call that the server has not settled.
   * @typedef {object} Call
   * @property {string} id
   * @property {number} seq of the next report or the result
   * @property {{seq: number, text: string}[]} reports not acknowledged, in order
   * @property {number} kept characters in `reports`
   * @property {number} sent how many of `reports` have been sent on this link
   * @property {number} dropped reports given up at the bound and not yet told
   * @property {boolean} inFlight whether a batch awaits its receipt
   * @property {string | null} end the result or error, as a frame
   * @property {Record<string, number> | null} stamps of a traced call
   */

  /** @type {Map<string, Call>} */
  const calls = new Map();
  /** @type {Map<string, {file: string, readiness: string, reason?: string}>} */
  const plugins = new Map();
  /** @type {Map<string, string[]>} parts of long messages on their way in */
  const partial = new Map();

  let documentId = randomName();
  /** @type {chrome.runtime.Port | null} */
  let port = null;
  let limit = Number.POSITIVE_INFINITY;
  let stream = 0;
  let complete = false;

  // --- the page side: a channel whose every message names the next -------------------------

  const OFFER = "opentabs:offer";
  const READY = "opentabs:ready";
  const isProtected = scope.openTabsLate !== true;
  const nonce = randomName();
  let down = randomName();
  let up = randomName();

  function offer() {
    const taken = !document.dispatchEvent(
      new CustomEvent(OFFER, { detail: down + up + nonce, cancelable: true }),
    );
    if (taken) {
      document.removeEventListener(READY, offer);
    }
  }

  /** @param {Event} event */
  function hear(event) {
    event.preventDefault();
    event.stopImmediatePropagation();
    const { detail } = /** @type {CustomEvent<string>} */ (event);
    up = detail.slice(0, NAME);
    document.addEventListener(up, hear, { once: true });
    takeFromPage(detail[NAME] ?? "", detail.slice(NAME + 1));
  }

  /**
   * @param {string} text
   * @returns {boolean} whether the runtime is there and took it
   */
  function tellPage(text) {
    const next = randomName();
    const event = new CustomEvent(down, { detail: next + text, cancelable: true });
    if (document.dispatchEvent(event)) {
      return false;
    }
    down = next;
    return true;
  }

  function randomName() {
    const bytes = crypto.getRandomValues(new Uint8Array(NAME / 2));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /**
   * @param {string} kind
   * @param {string} text
   */
  function takeFromPage(kind, text) {
    if (kind === "s") {
      takeReadiness(text);
      return;
    }
    const call = calls.get(text.slice(0, NAME));
    if (call === undefined || call.end !== null) {
      return; // cancelled, or the page has gone mad
    }
    const body = text.slice(NAME);
    switch (kind) {
      case "p":
        addReports(call, body);
        break;
      case "r":
        end(call, "result", body);
        break;
      case "e":
        end(call, "error", body);
        break;
      case "t":
        call.stamps = { ...call.stamps, ...JSON.parse(body), "relay.up": now() };
        break;
    }
  }

  // --- a call's reports and result --------------------------------------------------------

  /**
   * @param {Call} call
   * @param {string} body JSON objects joined by commas, as the runtime writes them
   */
  function addReports(call, body) {
    /** @type {unknown[]} */
    let reports;
    try {
      reports = JSON.parse(`[${body}]`);
    } catch {
      return; // only a page that broke into an unprotected channel writes such
    }
    for (const report of reports) {
      const text = wellFormed(JSON.stringify({ seq: call.seq++, ...clean(report) }));
      call.reports.push({ seq: call.seq - 1, text });
      call.kept += text.length;
    }
    while (call.kept > KEPT && call.sent < call.reports.length) {
      const [oldest] = call.reports.splice(call.sent, 1);
      call.kept -= oldest?.text.length ?? 0;
      call.dropped++;
    }
    if (!call.inFlight) {
      sendBatch(call);
    }
  }

  /** @param {unknown} report */
  function clean(report) {
    const { progress, total, message } = /** @type {Record<string, unknown>} */ (report ?? {});
    /** @type {{progress?: number, total?: number, message?: string}} */
    const cleaned = {};
    if (typeof progress === "number") {
      cleaned.progress = progress;
    }
    if (typeof total === "number") {
      cleaned.total = total;
    }
    if (typeof message === "string") {
      cleaned.message = message.slice(0, MESSAGE_MAX);
    }
    return cleaned;
  }

  /**
   * Sends the next batch. Without an end in sight one batch is in flight at a time, so reports
   * made faster than the hops gather in the next: no timer, nothing to throttle.
   * @param {Call} call
   */
  function sendBatch(call) {
    let size = 0;
    const texts = [];
    while (call.sent < call.reports.length && size < BATCH) {
      const { text } = /** @type {{text: string}} */ (call.reports[call.sent++]);
      texts.push(text);
      size += text.length;
    }
    if (texts.length === 0) {
      return;
    }
    call.inFlight = true;
    const dropped = call.dropped > 0 ? `,"dropped":${call.dropped}` : "";
    call.dropped = 0;
    post(
      `{"jsonrpc":"2.0","method":"tool.progress","params":{"documentId":"${documentId}",` +
        `"callId":"${call.id}","reports":[${texts.join(",")}]${dropped}}}`,
    );
  }

  /**
   * @param {Call} call
   * @param {"result" | "error"} kind
   * @param {string} body JSON
   */
  function end(call, kind, body) {
    if (body.length > limit) {
      const message = `The ${kind} takes ${body.length} characters as JSON; ${limit} is the limit. Return less at once.`;
      kind = "error";
      body = JSON.stringify({ code: "RESULT_TOO_LARGE", message, retryable: false });
    }
    const field = kind === "result" ? "value" : "error";
    const stamps = call.stamps === null ? "" : `,"stamps":${JSON.stringify(call.stamps)}`;
    call.end =
      `{"jsonrpc":"2.0","method":"tool.${kind}","params":{"documentId":"${documentId}",` +
      `"callId":"${call.id}","seq":${call.seq}${stamps},"${field}":${wellFormed(body)}}}`;
    sendEnd(call);
  }

  /**
   * Half a surrogate pair is no text, and Python refuses it. JSON.stringify writes it, and
   * nothing else, as an escape that begins with \\ud.
   * @param {string} json
   */
  function wellFormed(json) {
    return json.includes("\\ud")
      ? json.replace(/(?<=(?:^|[^\\])(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "\\ufffd")
      : json;
  }

  /** @param {Call} call */
  function sendEnd(call) {
    while (call.sent < call.reports.length) {
      sendBatch(call); // a result must not overtake its reports
    }
    const frame = /** @type {string} */ (call.end);
    if (call.stamps !== null && frame.length <= WHOLE) {
      post({ type: "traced", callId: call.id, frame });
      return;
    }
    post(frame);
  }

  // --- the worker side ---------------------------------------------------------------------

  function connect() {
    if (chrome.runtime?.id === undefined) {
      return; // the extension was reloaded or removed; its new worker injects anew
    }
    const opened = chrome.runtime.connect({ name: "relay" });
    port = opened;
    port.onMessage.addListener(takeFromWorker);
    port.onDisconnect.addListener(() => {
      if (port !== opened) {
        return; // one given up when the document came back from the cache
      }
      // The worker died, most likely: connecting wakes a new one.
      port = null;
      partial.clear();
      connect();
    });
    port.postMessage({
      type: "attach",
      documentId,
      calls: [...calls.keys()],
      isProtected,
      complete,
      plugins: [...plugins],
    });
  }

  /** @param {unknown} message a frame, or an object that is for us */
  function post(message) {
    if (typeof message !== "string" || message.length <= WHOLE) {
      postOne(message);
      return;
    }
    const head = `~${documentId}${(stream++ >>> 0).toString(16).padStart(8, "0")}`;
    let start = 0;
    while (message.length - start > CHUNK) {
      let cut = start + CHUNK;
      const unit = message.charCodeAt(cut - 1);
      if (unit >= 0xd800 && unit < 0xdc00) {
        cut--; // never between the halves of a surrogate pair: UTF-8 has no half
      }
      postOne(`${head}+${message.slice(start, cut)}`);
      start = cut;
    }
    postOne(`${head}.${message.slice(start)}`);
  }

  /** @param {unknown} message */
  function postOne(message) {
    try {
      port?.postMessage(message);
    } catch {
      // The Port is closing. What matters is kept, and sent again on the next.
    }
  }

  /** @param {any} message */
  function takeFromWorker(message) {
    if (typeof message === "string") {
      const text = join(message);
      if (text !== null) {
        takeFromServer(text);
      }
      return;
    }
    switch (message.type) {
      case "resend":
        limit = message.limit;
        for (const call of calls.values()) {
          call.sent = 0;
          call.inFlight = false;
          if (call.end === null) {
            sendBatch(call);
          } else {
            sendEnd(call);
          }
        }
        break;
      case "adopt":
        plugins.set(message.plugin, { file: message.file, readiness: "pending" });
        if (!tellPage(`a${message.plugin}`)) {
          setReadiness(message.plugin, "unavailable", NO_RUNTIME);
        }
        break;
    }
  }

  const NO_RUNTIME =
    "scripts cannot run in this page (a CSP sandbox without allow-scripts, or JavaScript is off)";

  /**
   * @param {string} frame
   * @returns {string | null} the message that the frame completes
   */
  function join(frame) {
    if (!frame.startsWith("~")) {
      return frame;
    }
    const key = frame.slice(1, 41);
    const parts = partial.get(key) ?? [];
    parts.push(frame.slice(42));
    if (frame[41] === "+") {
      partial.set(key, parts);
      return null;
    }
    partial.delete(key);
    return parts.join("");
  }

  /** @param {string} text one message of the server, for this document */
  function takeFromServer(text) {
    const { method, params } = JSON.parse(text);
    const call = calls.get(params.callId);
    switch (method) {
      case "tool.dispatch":
        if (call === undefined) {
          start(params, text);
        }
        break;
      case "tool.ack":
        if (call !== undefined) {
          acknowledge(call, params.seq, params.settled);
        }
        break;
      case "tool.cancel":
        calls.delete(params.callId);
        tellPage(`c${params.callId}${params.reason}`);
        break;
    }
  }

  /**
   * @param {{callId: string, trace: boolean}} params
   * @param {string} text
   */
  function start({ callId, trace }, text) {
    /** @type {Call} */
    const call = {
      id: callId,
      seq: 0,
      reports: [],
      kept: 0,
      sent: 0,
      dropped: 0,
      inFlight: false,
      end: null,
      stamps: trace ? { "relay.down": now() } : null,
    };
    calls.set(callId, call);
    if (text.length > WHOLE) {
      post({ type: "calls", calls: [callId] }); // the worker passed it on in parts, unread
    }
    if (!tellPage(`d${text}`)) {
      const message = `The tool cannot run: ${NO_RUNTIME}. Open the site in another tab.`;
      end(call, "error", JSON.stringify({ code: "PAGE_UNREACHABLE", message, retryable: false }));
    }
  }

  /**
   * @param {Call} call
   * @param {number} seq
   * @param {boolean} settled
   */
  function acknowledge(call, seq, settled) {
    if (settled) {
      calls.delete(call.id);
      return;
    }
    let done = 0;
    while (
      done < call.reports.length &&
      /** @type {{seq: number}} */ (call.reports[done]).seq <= seq
    ) {
      call.kept -= call.reports[done]?.text.length ?? 0;
      done++;
    }
    call.reports.splice(0, done);
    call.sent = Math.max(0, call.sent - done);
    call.inFlight = call.sent > 0;
    if (!call.inFlight) {
      sendBatch(call);
    }
  }

  // --- readiness and logs ------------------------------------------------------------------

  /** @param {string} text `{plugin, readiness, reason}` as JSON */
  function takeReadiness(text) {
    const { plugin, readiness, reason } = JSON.parse(text);
    if (plugins.has(plugin)) {
      setReadiness(plugin, readiness === "ready" ? "ready" : "unavailable", reason);
    }
  }

  /**
   * @param {string} plugin
   * @param {"ready" | "unavailable"} readiness
   * @param {unknown} reason
   */
  function setReadiness(plugin, readiness, reason) {
    const state =
      typeof reason === "string"
        ? { readiness, reason: reason.slice(0, 1000).toWellFormed() }
        : { readiness };
    plugins.set(plugin, { file: plugins.get(plugin)?.file ?? "", ...state });
    post({ type: "readiness", plugin, state });
  }

  let logTokens = LOG_BURST;
  let logRefilled = 0;
  let logsDropped = 0;

  /** @param {MessageEvent} event */
  function takeMessage({ source, data }) {
    if (source !== window || data === null || typeof data !== "object" || data.nonce !== nonce) {
      return;
    }
    if (data.type === "opentabs:readiness-changed" && typeof data.plugin === "string") {
      tellPage(`r${data.plugin}`);
    } else if (data.type === "opentabs:plugin-logs" && Array.isArray(data.entries)) {
      takeLogs(data);
    }
  }

  /** @param {{plugin: unknown, entries: any[]}} logs written by the page: nothing is trusted */
  function takeLogs({ plugin, entries }) {
    if (typeof plugin !== "string" || !plugins.has(plugin)) {
      return;
    }
    const at = Date.now();
    logTokens = Math.min(LOG_BURST, logTokens + ((at - logRefilled) / 1000) * LOG_RATE);
    logRefilled = at;
    const room = Math.min(Math.floor(logTokens), LOG_BATCH);
    const taken = entries.slice(0, room);
    logTokens -= taken.length;
    logsDropped += entries.length - taken.length;
    if (taken.length === 0) {
      return;
    }
    const params = {
      documentId,
      plugin,
      entries: taken.map((entry) => ({
        level: LEVELS.get(entry?.level) ?? "info",
        message: logText(entry),
        time: Number.isFinite(entry?.ts) && entry.ts >= 0 ? entry.ts : at,
      })),
      dropped: logsDropped,
    };
    logsDropped = 0;
    post(JSON.stringify({ jsonrpc: "2.0", method: "plugin.log", params }));
  }

  const LEVELS = new Map([
    ["debug", "debug"],
    ["info", "info"],
    ["warn", "warning"],
    ["warning", "warning"],
    ["error", "error"],
  ]);

  /** @param {any} entry */
  function logText(entry) {
    let text = "";
    try {
      text = String(entry?.message ?? "");
      if (entry?.data !== undefined && entry.data.length !== 0) {
        text += ` ${JSON.stringify(entry.data)}`;
      }
    } catch {
      text += " (what more was logged cannot be shown)";
    }
    return text.slice(0, LOG_MAX).toWellFormed();
  }

  // --- the document's life -----------------------------------------------------------------

  function setComplete() {
    if (!complete) {
      complete = true;
      post({ type: "complete" });
    }
  }

  function watchCompletion() {
    if (document.readyState === "complete") {
      setComplete();
      return;
    }
    window.addEventListener("load", setComplete, { once: true });
    // A picture that never comes must not keep the tools away: the DOM is there.
    const whenParsed = () => setTimeout(setComplete, CONFIG_GRACE);
    if (document.readyState === "interactive") {
      whenParsed();
    } else {
      document.addEventListener("DOMContentLoaded", whenParsed, { once: true });
    }
  }

  /** To the server a document in the back/forward cache is gone; back again, it is a new one. */
  function comeBack() {
    for (const callId of calls.keys()) {
      tellPage(`c${callId}the page was left and came back`);
    }
    calls.clear();
    documentId = randomName();
    const old = port;
    port = null;
    old?.disconnect();
    connect();
  }

  function now() {
    return performance.timeOrigin + performance.now();
  }

  function begin() {
    watchCompletion();
    connect();
  }

  scope.openTabsRelay = { alive: () => chrome.runtime?.id !== undefined };
  document.addEventListener(up, hear, { once: true });
  document.addEventListener(READY, offer);
  offer();
  window.addEventListener("message", takeMessage);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) {
      comeBack();
    }
  });
  if (/** @type {{prerendering?: boolean}} */ (document).prerendering === true) {
    document.addEventListener("prerenderingchange", begin, { once: true });
  } else {
    begin();
  }
})();
