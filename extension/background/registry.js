/**
 * The worker's state: the plugins, and the documents that have a relay.
 *
 * All of it comes from elsewhere and can be read again after the worker was restarted: the plugins
 * from the server or from storage, the documents from their relays.
 */
import { serves } from "./match.js";

/** @import { PluginSpec, PluginState } from "../protocol.js" */

/**
 * @typedef {object} Doc
 * @property {string} id
 * @property {number} tabId
 * @property {string} chromeId Chrome's own document id, for `executeScript`
 * @property {string} url
 * @property {boolean} isProtected
 * @property {boolean} complete
 * @property {Map<string, boolean>} calls dispatched here and not settled: whether the relay has
 *     confirmed that it has them. The tool of a call that it has not confirmed did not run.
 * @property {Map<string, PluginState & {file: string}>} plugins
 * @property {Promise<unknown>} injecting the last pending injection into it
 * @property {number} epoch of the connection on which its relay has resent everything; messages
 *     that a relay sends before that are dropped, because earlier ones may have been lost
 * @property {Map<string, PromiseWithResolvers<void>>} asked plugins that were asked whether they
 *     are ready and have not answered
 * @property {string | null} load the extension's load that its relay belongs to, if it was told
 * @property {chrome.runtime.Port} port
 */

/** The epoch of a document whose relay has not answered yet. */
export const UNHEARD = -1;

const STORED = "plugins";
const LOAD = "load";

/**
 * The documents that have a relay, by their ids.
 * @type {Map<string, Doc>}
 */
export const documents = new Map();

/**
 * Documents whose Port has closed, while it is being found out what became of them.
 * @type {Set<Promise<void>>}
 */
export const leaving = new Set();

/** @type {PluginSpec[]} */
let specs = [];
let synced = false;
/** @type {string | null} */
let load = null;
/** @type {Promise<void>} */
let restored = Promise.resolve();

/** A newly started worker reads the plugins from storage until the server syncs them. */
export function restore() {
  restored = read();
}

async function read() {
  const stored = await chrome.storage.session.get([STORED, LOAD]);
  if (Array.isArray(stored[STORED])) {
    synced = true;
    specs = specs.length === 0 ? stored[STORED] : specs;
  }
  const kept = stored[LOAD];
  const made = typeof kept === "string" ? kept : crypto.randomUUID();
  if (made !== kept) {
    await chrome.storage.session.set({ [LOAD]: made });
  }
  load = made;
  for (const doc of documents.values()) {
    if (isLeftover(doc.load)) {
      documents.delete(doc.id);
    }
  }
}

/**
 * What this load of the extension is called: another word after each reload, and the same for all
 * of its workers. Null until it is known.
 */
export function currentLoad() {
  return load;
}

/**
 * Whether a relay belongs to an earlier load: it may connect while the extension is reloaded, but
 * Chrome delivers no message to it.
 * @param {string | null} of the load that the relay was told
 */
export function isLeftover(of) {
  return of !== null && load !== null && of !== load;
}

/** Resolves once the plugins are known. */
export function ready() {
  return restored;
}

/** All plugins. */
export function plugins() {
  return specs;
}

/**
 * Sets the plugins, until the worker ends or `store` is called.
 * @param {PluginSpec[]} next
 */
export function setPlugins(next) {
  specs = next;
}

/** Stores the plugins for a worker that starts later. */
export async function store() {
  await chrome.storage.session.set({ [STORED]: specs });
  synced = true;
}

/**
 * Whether no server has synced the plugins since the extension was loaded. Until one does, no
 * document receives a call, and calls from before a reload never come back.
 */
export function areFresh() {
  return !synced;
}

/** @param {string} name */
export function isKnown(name) {
  return specs.some((spec) => spec.name === name);
}

/**
 * @param {string} url
 * @returns {PluginSpec[]} the plugins that serve it
 */
export function serving(url) {
  return specs.filter((spec) => serves(spec, url));
}

/**
 * Sends a message to a document's relay.
 * @param {Doc} doc
 * @param {unknown} message
 */
export function post(doc, message) {
  try {
    doc.port.postMessage(message);
  } catch (error) {
    // The document is going; its `onDisconnect` reports its calls to the server.
    console.debug("OpenTabs: a port closed while it was written to:", error);
  }
}
