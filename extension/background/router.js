/**
 * Sends each message from the server to its handler, and answers its requests.
 */
import { check, PROTOCOL_VERSION } from "../protocol.js";
import * as documents from "./documents.js";
import * as link from "./link.js";
import * as plugins from "./plugins.js";
import * as registry from "./registry.js";
import * as tabs from "./tabs.js";

/** @import { Answer, HelloAnswer, PluginSpec, ToExtension } from "../protocol.js" */

const HELLO_ID = 1;

const bootId = crypto.randomUUID();

/** @param {WebSocket} opened */
export async function sayHello(opened) {
  const state = await tabs.snapshot();
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
      browser: navigator.userAgent,
      time: Date.now(),
      ...state,
      fresh: registry.areFresh(),
    },
  });
}

/** @param {string} frame */
export function receive(frame) {
  if (frame.startsWith("~")) {
    documents.deliver(frame.slice(1, 33), frame);
    return;
  }
  const message = parse(frame);
  if (message === undefined) {
    return;
  }
  if (!("method" in message)) {
    handleAnswer(message);
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
 * @returns {ToExtension | HelloAnswer | undefined} undefined if it is malformed, which is reported
 */
function parse(frame) {
  /** @type {unknown} */
  let message;
  let fault = "not JSON";
  try {
    message = JSON.parse(frame);
    const kind = frame.slice(0, 200).includes('"method"') ? "ToExtension" : "HelloAnswer";
    const path = check(kind, message);
    if (path === null) {
      return /** @type {ToExtension | HelloAnswer} */ (message);
    }
    fault = `wrong at ${path === "" ? "the top" : path}`;
  } catch (error) {
    fault = String(error);
  }
  console.warn("OpenTabs: a malformed message from the server:", fault);
  link.send({ jsonrpc: "2.0", id: null, error: { code: -32600, message: fault } });
  return undefined;
}

/** @param {HelloAnswer} message */
function handleAnswer(message) {
  if ("error" in message) {
    console.warn("OpenTabs: the server refused a message:", message.error.message);
  } else if (message.id === HELLO_ID) {
    link.greet(message.result.messageLimit);
    documents.resendAll();
    tabs.changed();
  }
}

/**
 * @param {number} id
 * @param {PluginSpec[]} specs
 */
async function answerSync(id, specs) {
  const asked = link.current();
  try {
    const result = await plugins.sync(specs);
    answer(asked, { jsonrpc: "2.0", id, result });
  } catch (error) {
    answer(asked, { jsonrpc: "2.0", id, error: { code: -32603, message: String(error) } });
  }
  tabs.changed();
}

/**
 * @param {number} id
 * @param {string | null | undefined} plugin
 */
async function answerQuery(id, plugin) {
  const asked = link.current();
  if (typeof plugin === "string") {
    await documents.askReadiness(plugin);
  }
  answer(asked, { jsonrpc: "2.0", id, result: await tabs.snapshot() });
}

/**
 * Answers a request, unless its connection is gone: on the next one, request ids start at 1 again.
 * @param {WebSocket | null} asked
 * @param {Answer} message
 */
function answer(asked, message) {
  if (link.current() === asked) {
    link.send(message);
  }
}
