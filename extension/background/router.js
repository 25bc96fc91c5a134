/**
 * Sends each message from the server to its handler, and answers its requests.
 */
import { check, PROTOCOL_VERSION } from "../protocol.js";
import * as badge from "./badge.js";
import * as documents from "./documents.js";
import * as link from "./link.js";
import * as ownTabs from "./own_tabs.js";
import * as plugins from "./plugins.js";
import * as registry from "./registry.js";
import * as tabs from "./tabs.js";
import { targets } from "./targets.js";

/** @import { HelloResponse, PluginSpec, Response, ToExtension } from "../protocol.js" */

const HELLO_ID = 1;
const BROWSER_ID = "browserId";
const DOCUMENT_ID = 32; // hex digits, after the tilde of a chunk; see opentabs_py/core/chunks.py
const HEADER = 42; // characters of a chunk before its part of the message
const THIS_WORKER = "0".repeat(DOCUMENT_ID); // in place of a document's id
const INTERNAL_ERROR = -32603; // JSON-RPC 2.0, section 5.1

const bootId = crypto.randomUUID();
/** @type {Promise<string> | null} null until it is read, and if that failed */
let browserId = null;
/** @type {string[]} of a long message for this worker; the server sends one after the other */
let parts = [];

/**
 * Without a hello, the server would close the connection, but only after 10 s.
 * @param {WebSocket} opened
 */
export async function sayHello(opened) {
  parts = [];
  try {
    await introduce(opened);
  } catch (error) {
    console.warn("OpenTabs: cannot say hello; connecting again:", error);
    opened.close();
  }
}

/** @param {WebSocket} opened */
async function introduce(opened) {
  browserId ??= readBrowserId();
  browserId.catch(() => {
    browserId = null;
  });
  const [state, ownId] = await Promise.all([tabs.snapshot(), browserId]);
  if (opened !== link.current()) {
    return;
  }
  link.send({
    jsonrpc: "2.0",
    method: "hello",
    id: HELLO_ID,
    params: {
      protocolVersion: PROTOCOL_VERSION,
      extensionVersion: chrome.runtime.getManifest().version,
      bootId,
      browserId: ownId,
      browser: navigator.userAgent,
      time: Date.now(),
      ...state,
      fresh: registry.areFresh(),
    },
  });
}

/**
 * Identifies this browser profile, as long as the extension stays in it.
 * @returns {Promise<string>}
 */
async function readBrowserId() {
  const { [BROWSER_ID]: kept } = await chrome.storage.local.get(BROWSER_ID);
  if (typeof kept === "string" && /^[0-9a-f]{32}$/.test(kept)) {
    return kept;
  }
  const made = crypto.randomUUID().replaceAll("-", "");
  await chrome.storage.local.set({ [BROWSER_ID]: made });
  return made;
}

/**
 * This worker has one connection at most. So if a newer one has replaced it, that is of another
 * browser, with a copy of this profile: this one takes another id.
 */
export async function becomeAnother() {
  browserId = null;
  await chrome.storage.local.remove(BROWSER_ID);
}

/** @param {string} frame */
export function receive(frame) {
  if (!frame.startsWith("~")) {
    handle(frame);
    return;
  }
  const documentId = frame.slice(1, 1 + DOCUMENT_ID);
  if (documentId !== THIS_WORKER) {
    documents.deliver(documentId, frame);
    return;
  }
  parts.push(frame.slice(HEADER));
  if (frame[HEADER - 1] === ".") {
    handle(parts.splice(0).join(""));
  }
}

/** @param {string} frame */
function handle(frame) {
  const message = parse(frame);
  if (message === undefined) {
    return;
  }
  if (!("method" in message)) {
    handleResponse(message);
    return;
  }
  switch (message.method) {
    case "tool.announce":
      documents.noteCall(message.params);
      break;
    case "tool.dispatch":
      documents.dispatch(message.params, frame);
      break;
    case "tool.ack":
      documents.deliver(message.params.documentId, frame);
      break;
    case "tool.settled":
      documents.deliver(message.params.documentId, frame);
      documents.forget(message.params.documentId, message.params.callIds);
      break;
    case "tool.cancel":
      documents.deliver(message.params.documentId, frame);
      documents.forget(message.params.documentId, [message.params.callId]);
      break;
    case "activity.changed":
      badge.showActivity(message.params);
      break;
    case "plugins.sync":
      answerSync(message.id, message.params.plugins);
      break;
    case "tabs.query":
      answerQuery(message.id, message.params.plugin);
      break;
    case "extension.remove":
      console.info("OpenTabs: the server removes this extension:", message.params.reason);
      chrome.management.uninstallSelf();
      break;
    case "tabs.open":
      answerOpen(message.id, message.params.url);
      break;
    case "tabs.close":
      answerClose(message.id, message.params.tabId);
      break;
    case "tabs.targets":
      answerTargets(message.id);
      break;
    case "ping":
      link.send({
        jsonrpc: "2.0",
        method: "pong",
        params: { time: link.now(), pingTime: message.params.time },
      });
      break;
    case "pong":
      break;
    default: {
      /** @type {never} */
      const unknown = message;
      throw new Error(`unhandled message ${JSON.stringify(unknown)}`);
    }
  }
}

/**
 * @param {string} frame
 * @returns {ToExtension | HelloResponse | undefined} undefined if it is malformed, which is reported
 */
function parse(frame) {
  /** @type {unknown} */
  let message;
  let problem = "not JSON";
  try {
    message = JSON.parse(frame);
    const kind = frame.slice(0, 200).includes('"method"') ? "ToExtension" : "HelloResponse";
    const path = check(kind, message);
    if (path === null) {
      return /** @type {ToExtension | HelloResponse} */ (message);
    }
    problem = `wrong at ${path === "" ? "the top" : path}`;
  } catch (error) {
    problem = String(error);
  }
  console.warn("OpenTabs: a malformed message from the server:", problem);
  link.send({ jsonrpc: "2.0", id: null, error: { code: -32600, message: problem } });
  return undefined;
}

/** @param {HelloResponse} message */
function handleResponse(message) {
  if ("error" in message) {
    console.warn("OpenTabs: the server refused a message:", message.error.message);
  } else if (message.id === HELLO_ID) {
    link.greet(message.result.messageLimit);
    documents.resendAll();
    tabs.sendState();
  }
}

/**
 * @param {number} id
 * @param {PluginSpec[]} specs
 */
async function answerSync(id, specs) {
  await respond(id, () => plugins.sync(specs));
  tabs.sendState();
}

/**
 * @param {number} id
 * @param {string | null | undefined} plugin
 */
function answerQuery(id, plugin) {
  return respond(id, async () => {
    if (typeof plugin === "string") {
      await Promise.all([documents.askReadiness(plugin), tabs.loadUnloaded(plugin)]);
    }
    return tabs.snapshot();
  });
}

/**
 * The answer is sent before the page begins to load, so that the server knows whose it is.
 * @param {number} id
 * @param {string} url
 */
async function answerOpen(id, url) {
  /** @type {number | undefined} */
  let tabId;
  const isSent = await respond(id, async () => {
    tabId = await ownTabs.open();
    return { tabId };
  });
  if (tabId === undefined) {
    return;
  }
  if (isSent) {
    await Promise.all([ownTabs.handleAnswered(tabId), ownTabs.show(tabId, url)]);
  } else {
    await ownTabs.close(tabId); // the server would not know of it
    await ownTabs.handleAnswered(tabId);
  }
}

/**
 * @param {number} id
 * @param {number} tabId
 */
function answerClose(id, tabId) {
  return respond(id, async () => {
    await ownTabs.close(tabId);
    return { tabId };
  });
}

/** @param {number} id */
function answerTargets(id) {
  return respond(id, async () => ({ tabs: await targets() }));
}

/**
 * Answers a request with a result or the error that making it throws, unless its connection is gone:
 * on the next one, request ids start at 1 again.
 * @param {number} id
 * @param {() => Promise<object>} make
 * @returns {Promise<boolean>} whether the answer was sent
 */
async function respond(id, make) {
  const asked = link.current();
  const answer = await answerOf(id, make);
  if (link.current() !== asked) {
    return false;
  }
  link.send(answer);
  return true;
}

/**
 * @param {number} id
 * @param {() => Promise<object>} make
 * @returns {Promise<Response>}
 */
async function answerOf(id, make) {
  try {
    return { jsonrpc: "2.0", id, result: await make() };
  } catch (error) {
    return { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message: String(error) } };
  }
}
