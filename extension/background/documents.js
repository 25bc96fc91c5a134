/**
 * The documents that have a relay, one Port each, and what passes through it.
 *
 * A string on a Port is a frame of the wire and goes on unread. An object is between relay
 * and worker.
 */
import * as link from "./link.js";
import * as plugins from "./plugins.js";
import * as tabs from "./tabs.js";

/** @import { PluginState } from "../protocol.js" */

/**
 * @typedef {object} Doc
 * @property {string} id
 * @property {number} tabId
 * @property {string} chromeId Chrome's own document id, for `executeScript`
 * @property {string} url
 * @property {boolean} isProtected
 * @property {boolean} complete
 * @property {Map<string, boolean>} calls dispatched here and not settled: whether the relay has
 *     said that it has them. What it has not, its tool has not run.
 * @property {Map<string, PluginState & {file: string}>} plugins
 * @property {Promise<unknown>} injecting the last of what is being put into it
 * @property {number} epoch of the link that its relay has sent everything again on; what a relay
 *     sends before that is dropped, for something before it may have been
 * @property {Map<string, PromiseWithResolvers<void>>} asked plugins that are asked whether they
 *     are ready, and have not answered
 * @property {chrome.runtime.Port} port
 */

/**
 * What a relay says to the worker, besides frames.
 * @typedef {{type: "attach", documentId: string, calls: string[], isProtected: boolean,
 *     complete: boolean, plugins: [string, PluginState & {file: string}][]}
 *   | {type: "resending", epoch: number}
 *   | {type: "complete"}
 *   | {type: "received", callId: string}
 *   | {type: "readiness", plugin: string, state: PluginState}
 *   | {type: "began", callId: string, stamps: Record<string, number>}
 *   | {type: "traced", callId: string, frame: string}} FromRelay
 */

/** The epoch of a document whose relay has not answered yet. */
export const UNHEARD = -1;

/** @type {Map<string, Doc>} */
const documents = new Map();

export function all() {
  return documents.values();
}

/** @param {chrome.runtime.Port} port */
export function attach(port) {
  const tabId = port.sender?.tab?.id;
  if (port.name !== "relay" || tabId === undefined || port.sender?.frameId !== 0) {
    port.disconnect();
    return;
  }
  link.connect();
  /** @type {Doc | null} */
  let doc = null;
  port.onMessage.addListener((message) => {
    if (typeof message === "string") {
      if (doc !== null && isCurrent(doc)) {
        link.forward(message);
      }
    } else if (doc !== null) {
      take(doc, message);
    } else if (message.type === "attach") {
      doc = {
        id: message.documentId,
        tabId,
        chromeId: port.sender?.documentId ?? "",
        url: port.sender?.url ?? "",
        isProtected: message.isProtected,
        complete: message.complete,
        calls: new Map(message.calls.map((/** @type {string} */ callId) => [callId, true])),
        plugins: new Map(message.plugins),
        injecting: Promise.resolve(),
        epoch: UNHEARD,
        asked: new Map(),
        port,
      };
      supersede(doc);
      documents.set(doc.id, doc);
      if (link.isUp()) {
        resend(doc);
      }
      plugins.inject(doc);
      tabs.changed();
    }
  });
  port.onDisconnect.addListener(() => {
    // Reading it keeps Chrome from logging "Unchecked runtime.lastError" for bfcache entry.
    void chrome.runtime.lastError;
    if (doc !== null && documents.get(doc.id) === doc) {
      const checked = lose(doc);
      losing.add(checked);
      checked.finally(() => losing.delete(checked));
    }
  });
}

/**
 * A tab shows one document at a time: another of the same tab is gone. The Port of one that went
 * into the back/forward cache closes late, sometimes after the next has connected.
 * @param {Doc} next
 */
function supersede(next) {
  for (const doc of documents.values()) {
    if (doc.id === next.id) {
      // Its relay has connected anew: what was on its way through the old Port is lost.
      for (const callId of doc.calls.keys()) {
        if (!next.calls.has(callId)) {
          tellLost(callId, "not_delivered");
        }
      }
    } else if (doc.tabId === next.tabId) {
      forgetLost(doc, "navigated");
    }
  }
}

/**
 * A tab's URL changed. Where its document stayed (`history.pushState`), other plugins may serve it.
 * @param {number} tabId
 * @param {string} url
 */
export function moved(tabId, url) {
  for (const doc of documents.values()) {
    if (doc.tabId === tabId && new URL(doc.url).origin === new URL(url).origin) {
      doc.url = url;
      plugins.inject(doc);
    }
  }
}

/** Until then some document is gone and its calls have not been told so, nor why. */
export function settled() {
  return Promise.all(losing);
}

/**
 * @param {Doc} doc
 * @param {FromRelay} message
 */
function take(doc, message) {
  switch (message.type) {
    case "attach":
      break;
    case "resending":
      doc.epoch = message.epoch;
      break;
    case "complete":
      doc.complete = true;
      plugins.inject(doc);
      break;
    case "received": // before the tool is started, so what was not received did not run
      doc.calls.set(message.callId, true);
      break;
    case "readiness": {
      const known = doc.plugins.get(message.plugin);
      doc.plugins.set(message.plugin, { file: known?.file ?? "", ...message.state });
      doc.asked.get(message.plugin)?.resolve();
      doc.asked.delete(message.plugin);
      tabs.changed();
      break;
    }
    case "began":
      if (isCurrent(doc)) {
        stamp(message.callId, message.stamps);
      }
      break;
    case "traced":
      if (!isCurrent(doc)) {
        break;
      }
      link.forward(
        JSON.stringify({
          jsonrpc: "2.0",
          method: "tool.stamps",
          params: { callId: message.callId, stamps: { "worker.up": link.now() } },
        }),
      );
      link.forward(message.frame);
      break;
    default: {
      /** @type {never} */
      const unknown = message;
      console.warn("OpenTabs: a relay said", unknown);
    }
  }
}

/**
 * @param {import("../protocol.js").DispatchParams} params
 * @param {string} frame
 */
export function dispatch(params, frame) {
  const doc = documents.get(params.documentId);
  if (doc === undefined) {
    tellLost(params.callId, "not_delivered");
    return;
  }
  doc.calls.set(params.callId, false);
  post(doc, frame);
  if (params.trace) {
    stamp(params.callId, { "worker.down": link.now() });
  }
}

/**
 * @param {string} callId
 * @param {Record<string, number>} stamps
 */
function stamp(callId, stamps) {
  link.send({ jsonrpc: "2.0", method: "tool.stamps", params: { callId, stamps } });
}

/**
 * Hands a frame to a document's relay; to one that is gone, it has nothing to say.
 * @param {string} documentId
 * @param {string} frame
 */
export function deliver(documentId, frame) {
  const doc = documents.get(documentId);
  if (doc !== undefined) {
    post(doc, frame);
  }
}

/**
 * @param {string} documentId
 * @param {string[]} callIds
 */
export function forget(documentId, callIds) {
  const doc = documents.get(documentId);
  for (const callId of callIds) {
    doc?.calls.delete(callId);
  }
}

/**
 * Asks a plugin in each of its documents whether it is ready; resolves when all have answered.
 * @param {string} plugin
 */
export function askReadiness(plugin) {
  const answers = [];
  for (const doc of documents.values()) {
    if (doc.plugins.has(plugin)) {
      const answer = doc.asked.get(plugin) ?? Promise.withResolvers();
      doc.asked.set(plugin, answer);
      answers.push(answer.promise);
      post(doc, { type: "ask", plugin });
    }
  }
  return Promise.all(answers);
}

/** The link is up: relays send again all that the server has not acknowledged. */
export function resendAll() {
  for (const doc of documents.values()) {
    resend(doc);
  }
}

/** @param {Doc} doc */
function resend(doc) {
  post(doc, { type: "resend", limit: link.limit(), epoch: link.epoch() });
}

/** @param {Doc} doc */
function isCurrent(doc) {
  return doc.epoch === link.epoch();
}

/**
 * @param {Doc} doc
 * @param {unknown} message
 */
export function post(doc, message) {
  try {
    doc.port.postMessage(message);
  } catch (error) {
    // The document is going; `onDisconnect` tells the server about its calls.
    console.debug("OpenTabs: a port closed while it was written to:", error);
  }
}

/** @type {Set<Promise<void>>} */
const losing = new Set();

/**
 * A Port has closed. The document is gone, most likely; but this may also be a worker that is
 * being stopped, whose word on the way out would end calls that go on.
 * @param {Doc} doc
 */
async function lose(doc) {
  const reason = await whyGone(doc);
  if (reason !== null && documents.get(doc.id) === doc) {
    forgetLost(doc, reason);
    tabs.changed();
  }
}

/**
 * What a page posts arrives when it is left in order. What a crash takes with it may have said
 * that a call was received, and its tool may have run.
 * @param {Doc} doc
 * @param {"tab_closed" | "navigated" | "crashed"} reason
 */
function forgetLost(doc, reason) {
  documents.delete(doc.id);
  for (const answer of doc.asked.values()) {
    answer.resolve();
  }
  for (const [callId, received] of doc.calls) {
    tellLost(callId, received || reason !== "navigated" ? reason : "not_delivered");
  }
}

/**
 * @param {Doc} doc
 * @returns {Promise<"tab_closed" | "navigated" | "crashed" | null>} null when it is there still
 */
async function whyGone(doc) {
  try {
    const tab = await chrome.tabs.get(doc.tabId);
    if (tab.status === "unloaded") {
      return "crashed";
    }
  } catch {
    return "tab_closed"; // there is no such tab
  }
  try {
    const [ran] = await chrome.scripting.executeScript({
      target: { tabId: doc.tabId, documentIds: [doc.chromeId] },
      func: () => undefined,
      injectImmediately: true,
    });
    // Of a document in the back/forward cache, Chrome may take the one that replaced it.
    return ran?.documentId === doc.chromeId ? null : "navigated";
  } catch {
    return "navigated"; // the tab shows another document
  }
}

/**
 * @param {string} callId
 * @param {"tab_closed" | "navigated" | "crashed" | "not_delivered"} reason
 */
function tellLost(callId, reason) {
  link.send({ jsonrpc: "2.0", method: "tool.lost", params: { callId, reason } });
}
