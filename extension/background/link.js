/**
 * The WebSocket to the server: opens it, keeps it open, and reopens it.
 */
import { CLOSE_REPLACED, SECRET_SUBPROTOCOL, SUBPROTOCOL } from "../protocol.js";
import { showState } from "./badge.js";
import { readConfig } from "./config.js";

/** @import { FromExtension, Response } from "../protocol.js" */

const FIRST_RETRY = 50; // ms
const LAST_RETRY = 1000; // ms; faster than this trips Chromium's WebSocket throttle

/** @type {WebSocket | null} */
let socket = null;
let greeted = false;
let greetings = 0;
let retry = FIRST_RETRY;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let messageLimit = 0;
let connecting = false;
let ended = false;

/** @type {(opened: WebSocket) => void} */
let onOpen;
/** @type {(frame: string) => void} */
let onMessage;
/** @type {() => void} */
let onReplaced;

/**
 * Opens the connection, with these to be called for each that opens, for each message, and when the
 * server closes it because of a newer one.
 * @param {(opened: WebSocket) => void} opened
 * @param {(frame: string) => void} received
 * @param {() => void} replaced
 */
export function start(opened, received, replaced) {
  onOpen = opened;
  onMessage = received;
  onReplaced = replaced;
  connect();
}

/** Opens the connection if there is none; safe to call at any time. */
export async function connect() {
  // This attempt replaces the planned one. Two timers would each start another, for ever.
  clearTimeout(timer);
  if (socket !== null || connecting || ended) {
    return;
  }
  connecting = true;
  try {
    const { server, secret } = await readConfig();
    open(new WebSocket(`ws://${server}/ws`, [SUBPROTOCOL, `${SECRET_SUBPROTOCOL}${secret}`]));
  } catch (error) {
    showState(
      "not configured",
      `${error}. Load the folder that "opentabs serve --browser none" prints`,
    );
    connectLater();
  } finally {
    connecting = false;
  }
}

/** @param {WebSocket} opened */
function open(opened) {
  socket = opened;
  opened.onopen = () => onOpen(opened);
  opened.onmessage = (event) => onMessage(event.data);
  opened.onclose = (event) => {
    socket = null;
    greeted = false;
    showState("not connected", event.reason);
    if (event.code === CLOSE_REPLACED) {
      onReplaced();
    }
    connectLater();
  };
}

function connectLater() {
  clearTimeout(timer);
  timer = setTimeout(connect, retry);
  retry = Math.min(retry * 2, LAST_RETRY);
}

/**
 * The server has answered our hello.
 * @param {number} limit the longest message that it accepts, in characters
 */
export function greet(limit) {
  messageLimit = limit;
  greeted = true;
  greetings++;
  retry = FIRST_RETRY;
  showState("connected");
}

/** Opens another connection in place of this one, so that the server sends the plugins again. */
export function reopen() {
  if (greeted) {
    socket?.close(1000, "the sites that are allowed have changed");
  }
}

/**
 * Closes the connection for good, before the extension reloads: until Chrome has stopped it, its
 * APIs refuse everything, and the server would take those refusals for answers.
 */
export function end() {
  ended = true;
  socket?.close(1000, "the extension reloads");
}

/** The connection that is open, if there is one. */
export function current() {
  return socket;
}

/** The number of the handshake that the current connection came from; 0 while it is down. */
export function epoch() {
  return greeted ? greetings : 0;
}

/** Whether the server has answered our hello. */
export function isUp() {
  return greeted;
}

/** The longest message that the server accepts, in characters. */
export function limit() {
  return messageLimit;
}

/**
 * Forwards text unchanged.
 * @param {string} text
 */
export function forward(text) {
  socket?.send(text);
}

/**
 * Removes lone surrogates (a page's title may be cut in the middle of a pair), because one would
 * make the whole message invalid.
 * @param {FromExtension | Response} message
 */
export function send(message) {
  const whole = (/** @type {string} */ _name, /** @type {unknown} */ value) =>
    typeof value === "string" ? value.toWellFormed() : value;
  if (socket?.readyState === WebSocket.OPEN) {
    socket.send(JSON.stringify(message, whole));
  }
}

/** A clock finer than `Date.now()`, in milliseconds since the epoch. */
export function now() {
  return performance.timeOrigin + performance.now();
}
