/**
 * The WebSocket to the server: opened here, kept open, and opened again.
 */
import { check, PROTOCOL_VERSION } from "../protocol.js";
import * as documents from "./documents.js";
import * as plugins from "./plugins.js";
import * as tabs from "./tabs.js";

/** @import { Answer, ToExtension } from "../protocol.js" */

const FIRST_RETRY = 50; // ms
const LAST_RETRY = 1000; // ms; faster than this trips Chromium's WebSocket throttle
const HELLO_ID = 1;

const bootId = crypto.randomUUID();

/** @type {WebSocket | null} */
let socket = null;
let greeted = false;
let greetings = 0;
let retry = FIRST_RETRY;
let messageLimit = 0;
let connecting = false;

/** Opens the connection if there is none; safe to call at any time. */
export async function connect() {
  if (socket !== null || connecting) {
    return;
  }
  connecting = true;
  try {
    const { server, secret } = await readConfig();
    open(new WebSocket(`ws://${server}/ws`, ["opentabs", `opentabs.secret.${secret}`]));
  } catch (error) {
    tell(`not configured: ${error}. Load the folder that "opentabs serve --browser none" prints.`);
    connectLater();
  } finally {
    connecting = false;
  }
}

/** @param {WebSocket} opened */
function open(opened) {
  socket = opened;
  opened.onopen = () => sayHello(opened);
  opened.onmessage = (event) => receive(event.data);
  opened.onclose = (event) => {
    socket = null;
    greeted = false;
    tell(event.reason === "" ? "not connected" : `not connected: ${event.reason}`);
    connectLater();
  };
}

function connectLater() {
  setTimeout(connect, retry);
  retry = Math.min(retry * 2, LAST_RETRY);
}

/** @param {WebSocket} opened */
async function sayHello(opened) {
  const state = await tabs.snapshot();
  if (opened !== socket) {
    return;
  }
  send({
    jsonrpc: "2.0",
    method: "hello",
    id: HELLO_ID,
    params: {
      protocolVersion: PROTOCOL_VERSION,
      extensionVersion: chrome.runtime.getManifest().version,
      bootId,
      browser: navigator.userAgent,
      time: Date.now(),
      ...state,
      fresh: plugins.areFresh(),
    },
  });
}

/**
 * Read anew each time: a server started later may have written another port.
 * @returns {Promise<{server: string, secret: string}>}
 */
async function readConfig() {
  const answer = await fetch(chrome.runtime.getURL("config.json"), { cache: "no-store" });
  return answer.json();
}

/** Which greeting the link that is up came from; 0 while it is down. */
export function epoch() {
  return greeted ? greetings : 0;
}

/** Whether the server has answered our hello. */
export function isUp() {
  return greeted;
}

/** The longest message the server takes, in characters. */
export function limit() {
  return messageLimit;
}

/**
 * Forwards text as it is.
 * @param {string} text
 */
export function forward(text) {
  socket?.send(text);
}

/**
 * Half a surrogate pair, from a page's title cut short say, would make the whole message none.
 * @param {import("../protocol.js").FromExtension | Answer} message
 */
export function send(message) {
  const whole = (/** @type {string} */ _name, /** @type {unknown} */ value) =>
    typeof value === "string" ? value.toWellFormed() : value;
  if (socket?.readyState === WebSocket.OPEN) {
    socket.send(JSON.stringify(message, whole));
  }
}

/** @param {string} frame */
function receive(frame) {
  if (frame.startsWith("~")) {
    documents.deliver(frame.slice(1, 33), frame);
    return;
  }
  const message = parse(frame);
  if (message === undefined) {
    return;
  }
  if (!("method" in message)) {
    takeAnswer(message);
    return;
  }
  switch (message.method) {
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
    case "plugins.sync":
      answerSync(message.id, message.params.plugins);
      break;
    case "tabs.query":
      answerQuery(message.id, message.params.plugin);
      break;
    case "ping":
      send({
        jsonrpc: "2.0",
        method: "pong",
        params: { time: now(), pingTime: message.params.time },
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
 * @returns {ToExtension | Answer | undefined} undefined when it is malformed, which is told
 */
function parse(frame) {
  /** @type {unknown} */
  let message;
  let fault = "not JSON";
  try {
    message = JSON.parse(frame);
    const kind = frame.slice(0, 200).includes('"method"') ? "ToExtension" : "Answer";
    const path = check(kind, message);
    if (path === null) {
      return /** @type {ToExtension | Answer} */ (message);
    }
    fault = `wrong at ${path === "" ? "the top" : path}`;
  } catch (error) {
    fault = String(error);
  }
  console.warn("OpenTabs: a malformed message from the server:", fault);
  send({ jsonrpc: "2.0", id: null, error: { code: -32600, message: fault } });
  return undefined;
}

/** @param {Answer} answer */
function takeAnswer(answer) {
  if ("error" in answer) {
    console.warn("OpenTabs: the server refused a message:", answer.error.message);
  } else if (answer.id === HELLO_ID) {
    messageLimit = answer.result.messageLimit;
    greeted = true;
    greetings++;
    retry = FIRST_RETRY;
    tell("connected");
    documents.resendAll();
    tabs.changed();
  }
}

/**
 * @param {number} id
 * @param {import("../protocol.js").PluginSpec[]} specs
 */
async function answerSync(id, specs) {
  try {
    const result = await plugins.sync(specs);
    send({ jsonrpc: "2.0", id, result });
  } catch (error) {
    send({ jsonrpc: "2.0", id, error: { code: -32603, message: String(error) } });
  }
  tabs.changed();
}

/**
 * @param {number} id
 * @param {string | null | undefined} plugin
 */
async function answerQuery(id, plugin) {
  if (typeof plugin === "string") {
    await documents.askReadiness(plugin);
  }
  send({ jsonrpc: "2.0", id, result: await tabs.snapshot() });
}

/** A clock finer than `Date.now()`, in milliseconds since the epoch. */
export function now() {
  return performance.timeOrigin + performance.now();
}

/** @param {string} state */
function tell(state) {
  chrome.action.setTitle({ title: `OpenTabs: ${state}` });
}
