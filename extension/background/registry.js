/**
 * The worker's state: the plugins, and the documents that have a relay.
 *
 * All of it comes from elsewhere and can be read again after the worker was restarted: the plugins
 * from the server or from storage, the documents from their relays.
 */
import * as match from "./match.js";

/** @import { PluginSpec, PluginState } from "../protocol.js" */

/**
 * @typedef {object} Doc
 * @property {string} id
 * @property {number} tabId
 * @property {string} chromeId Chrome's own document id, for `executeScript`
 * @property {string} url
 * @property {boolean} isProtected
 * @property {boolean} complete
 * @property {Map<string, boolean>} calls dispatched here and not settled: whether the worker has let
 *     the relay start them
 * @property {Map<string, PluginState & {injected: string, hasFailed?: boolean}>} plugins with what
 *     was injected of each, and whether that failed: see `plugins.js`
 * @property {Promise<unknown>} injecting the last pending injection into it
 * @property {number} epoch of the connection on which its relay has resent everything; messages
 *     that a relay sends before that are dropped, because earlier ones may have been lost
 * @property {boolean} isPaced whether the server was sent a change of readiness just now
 * @property {Map<string, PromiseWithResolvers<void>>} asked plugins that were asked whether they
 *     are ready and have not answered
 * @property {string | null} loadId the load of the extension that answered its relay
 * @property {chrome.runtime.Port} port
 */

/** The epoch of a document whose relay has not answered yet. */
export const UNHEARD = -1;

const STORED = "plugins";
const LOAD_ID = "loadId";

/**
 * The documents that have a relay, by their ids.
 * @type {Map<string, Doc>}
 */
export const documents = new Map();

/**
 * Documents whose Port has closed, while it is being found out what became of them.
 * @type {Map<Doc, PromiseWithResolvers<void>>}
 */
export const leaving = new Map();

/** @type {PluginSpec[]} */
let specs = [];
let synced = false;
/** @type {string | null} */
let loadId = null;
/** @type {Promise<void> | null} null if reading failed */
let restored = Promise.resolve();

/**
 * A newly started worker reads the plugins from storage until the server syncs them.
 * @returns {Promise<void>}
 */
export function restore() {
  const reading = readStored();
  restored = reading;
  reading.catch((error) => {
    restored = null;
    console.warn("OpenTabs: cannot read what is stored:", error);
  });
  return reading;
}

async function readStored() {
  const stored = await chrome.storage.session.get([STORED, LOAD_ID]);
  if (Array.isArray(stored[STORED])) {
    synced = true;
    specs = specs.length === 0 ? stored[STORED] : specs;
  }
  if (typeof stored[LOAD_ID] === "string") {
    loadId = stored[LOAD_ID];
  } else {
    // It is stored before a relay receives it, so that no later worker ignores that relay.
    const made = crypto.randomUUID();
    await chrome.storage.session.set({ [LOAD_ID]: made });
    loadId = made;
  }
  for (const doc of documents.values()) {
    if (isLeftover(doc.loadId)) {
      documents.delete(doc.id);
    }
  }
}

/**
 * The id of this load of the extension: all of its workers have the same, and a reload changes it.
 * Null until it has been read.
 */
export function currentLoadId() {
  return loadId;
}

/**
 * Whether a relay was injected before the extension was reloaded. Such a relay may still connect,
 * but Chrome delivers no message to it.
 * @param {string | null} relayLoadId null if no worker has answered the relay yet
 */
export function isLeftover(relayLoadId) {
  return relayLoadId !== null && loadId !== null && relayLoadId !== loadId;
}

/** Resolves once the plugins are known; rejects if they cannot be read, until the next call. */
export function ready() {
  return restored ?? restore();
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
  return match.serving(specs, url);
}

/**
 * Whoever asked whether these plugins of a document are ready waits no longer: they have answered,
 * or never will.
 * @param {Doc} doc
 * @param {Iterable<string>} [names] by default, all of its plugins
 */
export function stopAwaiting(doc, names = doc.asked.keys()) {
  for (const name of names) {
    doc.asked.get(name)?.resolve();
    doc.asked.delete(name);
  }
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
