/**
 * The relay: between the page's runtime (MAIN world) and the service worker.
 *
 * It runs in the ISOLATED world, which a page cannot access. It keeps every report and result of a
 * call until the server acknowledges it, so that a worker may die at any moment. It ignores call
 * ids that it has seen, so that a tool runs at most once per dispatch.
 */
(() => {
  const scope = /** @type {{openTabsRelay?: {alive(): boolean}}} */ (globalThis);
  if (scope.openTabsRelay?.alive() === true) {
    return;
  }

  const ID = 32; // hex digits of a call id
  const STACK_MAX = 8000; // characters
  const SHORT_LIFE = 1000; // ms; of a Port whose worker could not start, perhaps
  const AT_ONCE = 3; // how many of those are replaced at once
  const LONGEST_PAUSE = 5000; // ms; before the next of them
  const LOAD_GRACE = 2000; // ms after the DOM is ready in which a page may load its resources
  const ADOPTION = 10_000; // ms after the load in which a document receives its plugins' adapters
  const REPORTED = new Set(["ready", "unavailable", "missing"]); // by the runtime, of a plugin
  const NO_RUNTIME =
    "scripts cannot run in this page (a CSP sandbox without allow-scripts, or JavaScript is off)";

  /** @typedef {{injected: string, readiness: string, reason?: string}} PluginState */
  /**
   * @typedef {object} Call
   * @property {InstanceType<typeof Outbox>} outbox
   * @property {Record<string, number> | null} stamps
   * @property {boolean} mayHaveLogged whether its plugin may have posted logs that have not arrived
   * @property {string | null} held its dispatch, until the worker says that the tool may start
   */

  const channel = new PageChannel(handleFromPage);
  const logs = new PluginLogs();
  const earlyLogs = new EarlyLogs();
  const posted = new PostedMessages();
  const toolList = new ToolList(postTools);
  const pace = new Pace(postReadiness);
  const chunks = new Chunks();

  /** @type {Map<string, Call>} calls that the server has not settled */
  const calls = new Map();
  /** @type {Set<string>} cancelled calls whose tools have not ended */
  const stopping = new Set();
  /** @type {Map<string, PluginState>} */
  const plugins = new Map();
  /** @type {Set<string>} plugins whose state the worker has not received */
  const changed = new Set();
  /** @type {Set<string>} plugins that the worker waits for */
  const asked = new Set();

  let documentId = PageChannel.randomName();
  /** @type {chrome.runtime.Port | null} */
  let port = null;
  let limit = Number.POSITIVE_INFINITY;
  /** @type {string | null} the load of the extension that answered this relay */
  let loadId = null;
  let complete = false;
  let leaving = false;
  let shortLives = 0; // of Ports, one after the other

  // --- the page side ---

  /**
   * @param {string} kind
   * @param {string} text
   */
  function handleFromPage(kind, text) {
    if (kind === "readiness") {
      handleReadiness(text);
      return;
    }
    if (kind === "page.tools") {
      toolList.receive(text);
      return;
    }
    const callId = text.slice(0, ID);
    const body = text.slice(ID);
    if (kind === "tool.stopped") {
      postStopped(callId, body);
      return;
    }
    const call = calls.get(callId);
    if (call === undefined || call.outbox.hasEnded) {
      return; // cancelled, or the page sends nonsense
    }
    switch (kind) {
      case "tool.progress":
        call.outbox.addReports(body);
        break;
      case "logged":
        call.mayHaveLogged = true;
        break;
      case "tool.result":
        endInTurn(call, "result", body);
        break;
      case "tool.error":
        // Leaving a page aborts what its tools wait for. That is not an error of the tool, and an
        // agent might repeat work that was done. The call ends when the Port closes.
        if (!leaving) {
          endInTurn(call, "error", body);
        }
        break;
      case "tool.stamps":
        handleStamps(callId, call, JSON.parse(body));
        break;
    }
  }

  /**
   * @param {string} callId
   * @param {string} body how its tool ended, as JSON
   */
  function postStopped(callId, body) {
    if (stopping.delete(callId)) {
      const { started, stack } = JSON.parse(body);
      const thrown =
        typeof stack === "string" ? { stack: stack.slice(0, STACK_MAX).toWellFormed() } : {};
      const params = { documentId, callId, started: started === true, ...thrown };
      post(JSON.stringify({ jsonrpc: "2.0", method: "tool.stopped", params }));
    }
  }

  /**
   * The stamps of a started call are sent at once, because it may never end.
   * @param {string} callId
   * @param {Call} call
   * @param {Record<string, number>} stamps
   */
  function handleStamps(callId, call, stamps) {
    call.stamps = { ...call.stamps, ...stamps };
    if (call.stamps["runtime.up"] === undefined) {
      post({ type: "began", callId, stamps: call.stamps });
    } else {
      call.stamps["relay.up"] = now();
    }
  }

  /**
   * Ends a call once the logs that were posted before its end have arrived.
   * @param {Call} call
   * @param {"result" | "error"} kind
   * @param {string} body JSON
   */
  function endInTurn(call, kind, body) {
    if (call.mayHaveLogged) {
      posted.whenArrived(() => end(call, kind, body));
    } else {
      end(call, kind, body);
    }
  }

  /**
   * @param {Call} call
   * @param {"result" | "error"} kind
   * @param {string} body JSON
   */
  function end(call, kind, body) {
    const stamps = call.stamps === null ? "" : `,"stamps":${JSON.stringify(call.stamps)}`;
    if (body.length <= limit) {
      call.outbox.end(kind, body, stamps);
      return;
    }
    const message = `The ${kind} is ${body.length.toLocaleString("en")} characters of JSON; the limit is ${limit.toLocaleString("en")}. Return less per call.`;
    const error = { code: "RESULT_TOO_LARGE", message, retryable: false };
    call.outbox.end("error", JSON.stringify(error), stamps);
  }

  /**
   * Plugins sign their messages with the nonce. A page can read it, so this is untrusted page data.
   * @param {MessageEvent} event
   */
  function handleMessage({ source, data }) {
    if (source !== window || data === null || typeof data !== "object") {
      return;
    }
    const { type, plugin, nonce, entries } = data;
    if (nonce !== channel.nonce) {
      return;
    }
    if (type === "opentabs:readiness-changed" && plugins.has(plugin)) {
      channel.send("check", plugin);
    } else if (type === "opentabs:plugin-logs" && Array.isArray(entries)) {
      const admitted = logs.admit(entries);
      if (admitted === null) {
        return;
      }
      if (plugins.has(plugin)) {
        postLogs(plugin, admitted);
      } else {
        earlyLogs.keep(plugin, admitted);
      }
    }
  }

  /**
   * @param {string} plugin
   * @param {{entries: object[], dropped: number}} admitted
   */
  function postLogs(plugin, admitted) {
    const params = { documentId, plugin, ...admitted };
    post(JSON.stringify({ jsonrpc: "2.0", method: "plugin.log", params }));
  }

  /** @param {string} plugin */
  function postEarlyLogs(plugin) {
    const early = earlyLogs.drain(plugin);
    if (early !== undefined) {
      postLogs(plugin, early);
    }
  }

  /** @param {string} text `{plugin, readiness, reason}` as JSON */
  function handleReadiness(text) {
    const { plugin, readiness, reason } = JSON.parse(text);
    if (plugins.has(plugin)) {
      setReadiness(plugin, REPORTED.has(readiness) ? readiness : "missing", reason);
    }
  }

  /**
   * @param {string} plugin
   * @param {"ready" | "unavailable" | "missing"} readiness
   * @param {unknown} reason
   */
  function setReadiness(plugin, readiness, reason) {
    const state =
      typeof reason === "string"
        ? { readiness, reason: reason.slice(0, 1000).toWellFormed() }
        : { readiness };
    plugins.set(plugin, { injected: plugins.get(plugin)?.injected ?? "", ...state });
    changed.add(plugin);
    if (asked.delete(plugin)) {
      postReadiness();
    } else {
      pace.handleChange();
    }
  }

  function postReadiness() {
    for (const plugin of changed) {
      const known = plugins.get(plugin);
      if (known !== undefined) {
        const { injected: _, ...state } = known;
        post({ type: "readiness", plugin, state });
      }
    }
    changed.clear();
    pace.skip();
  }

  /** @param {{tools: unknown, leftOut: unknown}} list of the tools that the page registers itself */
  function postTools({ tools, leftOut }) {
    const params = { documentId, tools, leftOut };
    post(Outbox.wellFormed(JSON.stringify({ jsonrpc: "2.0", method: "page.tools", params })));
  }

  // --- the worker side ---

  function connect() {
    if (!isAlive()) {
      return; // the extension was reloaded or removed; its new worker injects a new relay
    }
    const opened = chrome.runtime.connect({ name: "relay" });
    const since = now();
    let hasHeard = false;
    port = opened;
    opened.onMessage.addListener((message) => {
      hasHeard = true;
      handleFromWorker(message);
    });
    opened.onDisconnect.addListener(() => {
      if (port !== opened) {
        return; // an old one, abandoned when the document came back from the cache
      }
      port = null;
      chunks.clear();
      shortLives = hasHeard || now() - since > SHORT_LIFE ? 0 : shortLives + 1;
      if (shortLives <= AT_ONCE) {
        connect(); // most likely the worker died: this starts a new one
      } else {
        setTimeout(reconnect, Math.min(2 ** shortLives, LONGEST_PAUSE));
      }
    });
    opened.postMessage({
      type: "attach",
      documentId,
      calls: Array.from(calls).flatMap(([callId, { held }]) => (held === null ? [callId] : [])),
      isProtected: channel.isProtected,
      complete,
      loadId,
      plugins: [...plugins],
    });
  }

  function reconnect() {
    if (port === null) {
      // otherwise the document has come back from the cache, and connected
      connect();
    }
  }

  /** @param {unknown} message a string for the server, or an object for the worker */
  function post(message) {
    if (typeof message === "string") {
      chunks.split(documentId, message, postOne);
    } else {
      postOne(message);
    }
  }

  /** @param {unknown} message */
  function postOne(message) {
    try {
      port?.postMessage(message);
    } catch {
      // The Port is closing. Everything important is kept, and resent on the next one.
    }
  }

  /** @param {any} message */
  function handleFromWorker(message) {
    if (typeof message === "string") {
      const text = chunks.join(message);
      if (text !== null) {
        handleFromServer(text);
      }
      return;
    }
    switch (message.type) {
      case "resend":
        limit = message.limit;
        loadId = message.loadId;
        chunks.clear(); // the link may have been lost in the middle of a message
        post({ type: "resending", epoch: message.epoch });
        for (const [callId, { outbox, held }] of calls) {
          if (held === null) {
            outbox.resend();
          } else {
            calls.delete(callId); // if anyone still waits for it, the server sends it again
          }
        }
        toolList.resend();
        break;
      case "start":
        start(message.callId);
        break;
      case "ask":
        asked.add(message.plugin);
        if (!channel.send("ask", message.plugin)) {
          setReadiness(message.plugin, "missing", NO_RUNTIME);
        }
        break;
      case "adopt":
        plugins.set(message.plugin, { injected: message.injected, readiness: "pending" });
        if (!channel.send("adopt", message.plugin)) {
          setReadiness(message.plugin, "missing", NO_RUNTIME);
        }
        postEarlyLogs(message.plugin);
        break;
      case "drop":
        plugins.delete(message.plugin);
        channel.send("drop", message.plugin);
        break;
    }
  }

  /** @param {string} text one message from the server for this document */
  function handleFromServer(text) {
    const { method, params } = JSON.parse(text);
    switch (method) {
      case "tool.dispatch":
        hold(params, text);
        break;
      case "tool.ack":
        calls.get(params.callId)?.outbox.acknowledge(params.seq);
        break;
      case "tool.settled":
        for (const callId of params.callIds) {
          calls.delete(callId);
        }
        break;
      case "tool.cancel":
        cancel(params.callId);
        channel.send("tool.cancel", `${params.callId}${params.reason}`);
        break;
    }
  }

  /**
   * Asks the worker whether a tool may start. This page may have been busy: meanwhile, the caller may
   * have given up, or the tab may show another page, in which the call was made again.
   * @param {{callId: string, trace: boolean}} params
   * @param {string} text
   */
  function hold({ callId, trace }, text) {
    const known = calls.get(callId);
    if (known !== undefined && known.held === null) {
      return; // it has started
    }
    // The worker stamps traced calls but parses no frames, so it needs the call's id.
    const send = trace ? (/** @type {string} */ frame) => postTraced(callId, frame) : post;
    const outbox = new Outbox(documentId, callId, send);
    const stamps = trace ? { "relay.down": now() } : null;
    calls.set(callId, { outbox, stamps, mayHaveLogged: false, held: text });
    post({ type: "received", callId });
  }

  /** @param {string} callId */
  function start(callId) {
    const call = calls.get(callId);
    if (call === undefined || call.held === null) {
      return; // it was cancelled, or has started
    }
    const text = call.held;
    call.held = null;
    if (!channel.send("tool.dispatch", text)) {
      const message = `The tool cannot run: ${NO_RUNTIME}. Open the site in another tab.`;
      const error = { code: "PAGE_UNREACHABLE", message, retryable: false, started: false };
      end(call, "error", JSON.stringify(error));
    }
  }

  /** @param {string} callId */
  function cancel(callId) {
    const call = calls.get(callId);
    if (call?.held === null && !call.outbox.hasEnded) {
      stopping.add(callId);
    }
    calls.delete(callId);
  }

  /**
   * @param {string} callId
   * @param {string} frame
   */
  function postTraced(callId, frame) {
    const isEnd = calls.get(callId)?.outbox.hasEnded === true;
    post(isEnd && frame.length <= Chunks.WHOLE ? { type: "traced", callId, frame } : frame);
  }

  // --- the document's life ---

  function setComplete() {
    if (!complete) {
      complete = true;
      post({ type: "complete" });
      setTimeout(() => earlyLogs.forget(), ADOPTION);
    }
  }

  /** An image that never loads must not hold up the tools, because the DOM is ready. */
  function whenParsed() {
    setTimeout(setComplete, LOAD_GRACE);
  }

  function checkComplete() {
    if (document.readyState === "complete") {
      setComplete();
    }
  }

  function watchCompletion() {
    if (document.readyState === "complete") {
      setComplete();
      return;
    }
    // Not `load`, which never comes if the user or the page stops the loading. On their way down from
    // the window, no listener of the page can stop these events.
    window.addEventListener("readystatechange", checkComplete, { capture: true });
    if (document.readyState === "interactive") {
      whenParsed();
    } else {
      window.addEventListener("DOMContentLoaded", whenParsed, { capture: true, once: true });
    }
  }

  /** Adds missing listeners; existing ones are unaffected. */
  function listen() {
    PageChannel.whenAnotherComes(abandonIfReloaded);
    window.addEventListener("message", handleMessage);
    window.addEventListener("pagehide", leave);
    window.addEventListener("pageshow", comeBack);
    if (isPrerendered()) {
      document.addEventListener("prerenderingchange", connect, { once: true });
    }
    if (!complete) {
      watchCompletion();
    }
  }

  /** Whether nobody has seen the document yet: the browser has loaded it in advance. */
  function isPrerendered() {
    return /** @type {{prerendering?: boolean}} */ (document).prerendering === true;
  }

  /** Otherwise the runtime would ask adapters that are torn down whether they are ready, for ever. */
  function abandonIfReloaded() {
    if (!isAlive()) {
      abandon("the extension was reloaded");
      for (const plugin of plugins.keys()) {
        channel.send("drop", plugin);
      }
      plugins.clear();
    }
  }

  /** @param {PageTransitionEvent} event a page can dispatch its own, which is not trusted */
  function leave({ isTrusted }) {
    if (isTrusted) {
      leaving = true;
      posted.runNow();
      for (const { outbox } of calls.values()) {
        outbox.flush();
      }
    }
  }

  /**
   * To the server, a document in the back/forward cache is gone; when it comes back, it is a new
   * one.
   * @param {PageTransitionEvent} event
   */
  function comeBack({ isTrusted, persisted }) {
    if (!isTrusted || !persisted) {
      return;
    }
    leaving = false;
    abandon("the page was left and came back");
    documentId = PageChannel.randomName();
    const old = port;
    port = null;
    old?.disconnect();
    connect();
  }

  /** @param {string} why the reason why no caller waits for the calls any more */
  function abandon(why) {
    for (const callId of calls.keys()) {
      channel.send("tool.cancel", `${callId}${why}`);
    }
    calls.clear();
  }

  function now() {
    return performance.timeOrigin + performance.now();
  }

  /** Whether the extension has not been reloaded; there is no notification of that. */
  function isAlive() {
    return chrome.runtime?.id !== undefined;
  }

  scope.openTabsRelay = { alive: isAlive };
  listen();
  // `document.open()` removes all listeners of the document and its window, and all children.
  new MutationObserver(listen).observe(document, { childList: true });
  if (!isPrerendered()) {
    connect();
  }
})();
