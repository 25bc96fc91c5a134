import { hasHost, notifyHost } from "./host.js";
import { PLUGIN } from "./identity.js";
import { serialize } from "./serialize.js";

const BATCH = 50; // entries after which a batch is sent at once
const DELAY = 100; // ms that entries wait for more

/** @typedef {"debug" | "info" | "warn" | "error"} Level */
/** @typedef {{level: Level, message: string, data: unknown[], ts: number}} Entry */

/** @type {Entry[]} */
let waiting = [];
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * Logs to the console, to the server's log and, through MCP, to the client. Any value can be
 * logged; logging never throws, and large values are truncated. Never log secrets.
 *
 * @example
 * log.warn("The list is not complete", { channel, missing });
 */
export const log = Object.freeze({
  /**
   * @param {string} message
   * @param {unknown[]} data
   */
  debug: (message, ...data) => add("debug", message, data),
  /**
   * @param {string} message
   * @param {unknown[]} data
   */
  info: (message, ...data) => add("info", message, data),
  /**
   * @param {string} message
   * @param {unknown[]} data
   */
  warn: (message, ...data) => add("warn", message, data),
  /**
   * @param {string} message
   * @param {unknown[]} data
   */
  error: (message, ...data) => add("error", message, data),
});

/**
 * Sends the waiting entries.
 *
 * @returns {boolean} whether there were any
 */
export function flushLogs() {
  clearTimeout(timer);
  timer = undefined;
  const entries = waiting;
  waiting = [];
  if (entries.length > 0) {
    notifyHost("_logNonce", { type: "opentabs:plugin-logs", entries });
  }
  return entries.length > 0;
}

/**
 * @param {Level} level
 * @param {unknown} message
 * @param {unknown[]} data
 */
function add(level, message, data) {
  try {
    console[level](`[${PLUGIN || "plugin"}]`, message, ...data);
    if (!hasHost("_logNonce")) {
      return;
    }
    const shown = serialize(message);
    const text = typeof shown === "string" ? shown : JSON.stringify(shown);
    waiting.push({ level, message: text, data: data.map(serialize), ts: Date.now() });
    if (waiting.length >= BATCH) {
      flushLogs();
    } else {
      timer ??= setTimeout(flushLogs, DELAY);
    }
  } catch {
    // A page may patch its console and its timers; logging must not break a tool.
  }
}
