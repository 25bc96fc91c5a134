/**
 * The documents that have a relay, one Port each, and the messages on those Ports.
 *
 * A string on a Port is a frame of the protocol and is forwarded without parsing. An object is a
 * message between relay and worker.
 */
import * as link from "./link.js";
import * as plugins from "./plugins.js";
import {
  currentLoadId,
  documents,
  isLeftover,
  leaving,
  post,
  stopAwaiting,
  UNHEARD,
} from "./registry.js";
import * as tabs from "./tabs.js";

/** @import { PluginState } from "../protocol.js" */
/** @import { Doc } from "./registry.js" */

const LEAVES_WITHIN = 300; // ms; a page that blocks its thread may hold up the answer for ever

/**
 * A relay's messages to the worker, besides frames.
 * @typedef {{type: "attach", documentId: string, calls: string[], isProtected: boolean,
 *     complete: boolean, loadId: string | null,
 *     plugins: [string, PluginState & {injected: string}][]}
 *   | {type: "resending", epoch: number}
 *   | {type: "complete"}
 *   | {type: "received", callId: string}
 *   | {type: "readiness", plugin: string, state: PluginState}
 *   | {type: "began", callId: string, stamps: Record<string, number>}
 *   | {type: "traced", callId: string, frame: string}} FromRelay
 */

/** @param {chrome.runtime.Port} port */
export function attach(port) {
  const tabId = port.sender?.tab?.id;
  if (port.name !== "relay" || tabId === undefined || port.sender?.frameId !== 0) {
    return; // not disconnected: its relay would connect again at once, and so on
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
      handleRelayMessage(doc, message);
    } else if (message.type === "attach" && !isLeftover(message.loadId)) {
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
        isPaced: false,
        asked: new Map(),
        loadId: message.loadId,
        port,
      };
      supersede(doc);
      documents.set(doc.id, doc);
      if (link.isUp()) {
        resend(doc);
      }
      plugins.inject(doc);
      tabs.sendState();
    }
  });
  port.onDisconnect.addListener(() => {
    // Reading this keeps Chrome from logging "Unchecked runtime.lastError" on bfcache entry.
    void chrome.runtime.lastError;
    if (doc !== null && documents.get(doc.id) === doc) {
      handlePortClosed(doc);
    }
  });
}

/**
 * A tab shows one document at a time, so any other document of the tab is gone. The Port of a
 * document that entered the back/forward cache closes late, sometimes after the next has connected.
 * @param {Doc} next
 */
function supersede(next) {
  for (const doc of documents.values()) {
    if (doc.id === next.id) {
      leaving.get(doc)?.resolve();
      stopAwaiting(doc);
      // Its relay has reconnected: messages in transit on the old Port are lost.
      for (const callId of doc.calls.keys()) {
        if (!next.calls.has(callId)) {
          sendLost(callId, "not_delivered");
        }
      }
    } else if (doc.tabId === next.tabId) {
      dropDocument(doc, "navigated");
    }
  }
}

/**
 * Handles a tab's new URL. If its document stayed (`history.pushState`), other plugins may serve it
 * now.
 * @param {number} tabId
 * @param {string} url
 */
export function handleUrlChange(tabId, url) {
  for (const doc of documents.values()) {
    if (doc.tabId === tabId && new URL(doc.url).origin === new URL(url).origin) {
      doc.url = url;
      plugins.inject(doc);
    }
  }
}

/**
 * @param {Doc} doc
 * @param {FromRelay} message
 */
function handleRelayMessage(doc, message) {
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
    case "received":
      // The call may have ended, or its tab may show another document. Without a link, the server
      // cannot cancel it; with the next one, it sends the call again.
      if (link.isUp() && doc.calls.has(message.callId) && documents.get(doc.id) === doc) {
        doc.calls.set(message.callId, true);
        post(doc, { type: "start", callId: message.callId });
      }
      break;
    case "readiness": {
      const known = doc.plugins.get(message.plugin);
      if (known === undefined) {
        break; // it was removed while its relay said this
      }
      doc.plugins.set(message.plugin, { injected: known.injected, ...message.state });
      stopAwaiting(doc, [message.plugin]);
      sendReadiness(doc);
      break;
    }
    case "began":
      if (isCurrent(doc)) {
        stamp(message.callId, message.stamps);
      }
      break;
    case "traced":
      if (isCurrent(doc)) {
        stamp(message.callId, { "worker.up": link.now() });
        link.forward(message.frame);
      }
      break;
    default: {
      /** @type {never} */
      const unknown = message;
      console.warn("OpenTabs: a relay said", unknown);
    }
  }
}

/**
 * A page can change its readiness as fast as it likes, but a call may wait for it: the first change
 * is sent at once.
 * @param {Doc} doc
 */
function sendReadiness(doc) {
  if (doc.isPaced) {
    tabs.sendStateSoon();
    return;
  }
  doc.isPaced = true;
  setTimeout(() => {
    doc.isPaced = false;
  }, tabs.SOON);
  tabs.sendState();
}

/**
 * A call is on its way to a document.
 * @param {{documentId: string, callId: string}} params
 * @returns {Doc | undefined} undefined if it is gone, and the call is lost
 */
export function noteCall({ documentId, callId }) {
  const doc = documents.get(documentId);
  if (doc === undefined) {
    sendLost(callId, "not_delivered");
  } else if (!doc.calls.has(callId)) {
    doc.calls.set(callId, false);
  }
  return doc;
}

/**
 * @param {import("../protocol.js").DispatchParams} params
 * @param {string} frame
 */
export function dispatch(params, frame) {
  const doc = noteCall(params);
  if (doc === undefined) {
    return;
  }
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
 * Sends a frame to a document's relay; does nothing if the document is gone.
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
 * Asks a plugin in each of its documents whether it is ready; resolves when all have answered. One
 * that is not injected yet, because its document is loading, or could not be, could not answer.
 * @param {string} plugin
 */
export function askReadiness(plugin) {
  const answers = [];
  for (const doc of documents.values()) {
    const known = doc.plugins.get(plugin);
    if (known?.injected && !known.hasFailed) {
      const answer = doc.asked.get(plugin) ?? Promise.withResolvers();
      doc.asked.set(plugin, answer);
      answers.push(answer.promise);
      post(doc, { type: "ask", plugin });
    }
  }
  return Promise.all(answers);
}

/** The connection is up: relays resend everything that the server has not acknowledged. */
export function resendAll() {
  for (const doc of documents.values()) {
    resend(doc);
  }
}

/**
 * What the server said of calls that have not started may be lost: it sends those again for which
 * anyone still waits.
 * @param {Doc} doc
 */
function resend(doc) {
  for (const [callId, started] of doc.calls) {
    if (!started) {
      doc.calls.delete(callId);
    }
  }
  post(doc, { type: "resend", limit: link.limit(), epoch: link.epoch(), loadId: currentLoadId() });
}

/**
 * Whether what a document sends is for the server: the document is there, and has resent everything.
 * @param {Doc} doc
 */
function isCurrent(doc) {
  return documents.get(doc.id) === doc && doc.epoch === link.epoch();
}

/**
 * A Port has closed: snapshots wait until it is known what became of its document, but not for long.
 * @param {Doc} doc
 */
function handlePortClosed(doc) {
  /** @type {PromiseWithResolvers<void>} */
  const known = Promise.withResolvers();
  leaving.set(doc, known);
  known.promise.then(() => leaving.delete(doc));
  dropIfGone(doc)
    .catch((error) => console.debug("OpenTabs: a tab went after its document:", error))
    .finally(known.resolve);
  setTimeout(known.resolve, LEAVES_WITHIN);
}

/**
 * A Port has closed. Most likely the document is gone. But this worker may also be about to stop,
 * and a last message from it would end calls that are still running.
 * @param {Doc} doc
 */
async function dropIfGone(doc) {
  const reason = await whyGone(doc);
  if (reason === null || documents.get(doc.id) !== doc) {
    return;
  }
  dropDocument(doc, reason);
  tabs.sendState();
  if (reason === "navigated") {
    // The next document may have loaded already; until now, this one stood for its tab.
    await plugins.handleLoaded(await chrome.tabs.get(doc.tabId));
  }
}

/**
 * No relay starts a tool on its own, so those that this worker has not let it start will never run.
 * @param {Doc} doc
 * @param {"tab_closed" | "navigated" | "crashed"} reason
 */
function dropDocument(doc, reason) {
  documents.delete(doc.id);
  leaving.get(doc)?.resolve();
  stopAwaiting(doc);
  for (const [callId, started] of doc.calls) {
    sendLost(callId, started ? reason : "not_delivered");
  }
}

/**
 * @param {Doc} doc
 * @returns {Promise<"tab_closed" | "navigated" | "crashed" | null>} null if it still exists
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
    // For a document in the back/forward cache, Chrome may use the one that replaced it.
    return ran?.documentId === doc.chromeId ? null : "navigated";
  } catch {
    return "navigated"; // the tab shows another document
  }
}

/**
 * @param {string} callId
 * @param {"tab_closed" | "navigated" | "crashed" | "not_delivered"} reason
 */
function sendLost(callId, reason) {
  link.send({ jsonrpc: "2.0", method: "tool.lost", params: { callId, reason } });
}
