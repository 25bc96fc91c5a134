/**
 * The state of tabs and documents, sent to the server in full at every change.
 */
import * as link from "./link.js";
import * as registry from "./registry.js";

/** @import { DocumentState, LoadingTab } from "../protocol.js" */

const TITLE_MAX = 1024;
const URL_MAX = 16384;

/** In ms; a page can change its title, its URL and its readiness as fast as it likes. */
export const SOON = 100;
const AGAIN = 1000; // ms; by then, what made Chrome refuse has most likely passed

let dirty = false;
let sending = false;
let waiting = false;

/** Sends the state, which may have changed; changes that happen together are sent together. */
export async function sendState() {
  dirty = true;
  if (sending) {
    return;
  }
  sending = true;
  try {
    while (dirty && link.isUp()) {
      dirty = false;
      const params = await snapshot();
      if (link.isUp()) {
        link.send({ jsonrpc: "2.0", method: "tabs.changed", params });
      }
    }
  } catch (error) {
    console.warn("OpenTabs: cannot read the state of the tabs:", error);
    sendStateIn(AGAIN); // nothing else may change for long, and the server does not know of this
  } finally {
    sending = false;
  }
}

/** Sends the state after a change that no call waits for. */
export function sendStateSoon() {
  sendStateIn(SOON);
}

/** @param {number} ms */
function sendStateIn(ms) {
  if (!waiting) {
    waiting = true;
    setTimeout(() => {
      waiting = false;
      sendState();
    }, ms);
  }
}

/**
 * Loads the tab of a plugin that the user saw last, if the browser has unloaded all tabs of it, to
 * save memory or because it was restarted: as when the user returns to it, but in the background.
 * @param {string} plugin
 */
export async function loadUnloaded(plugin) {
  await registry.ready();
  const documents = Array.from(registry.documents.values());
  if (documents.some((doc) => doc.plugins.has(plugin))) {
    return;
  }
  const open = await chrome.tabs.query({});
  const serving = open.filter(({ url = "", pendingUrl }) =>
    registry.serving(pendingUrl || url).some(({ name }) => name === plugin),
  );
  const [latest] = serving
    .filter(({ discarded }) => discarded)
    .sort((one, other) => (other.lastAccessed ?? 0) - (one.lastAccessed ?? 0));
  if (latest?.id !== undefined && !serving.some(({ status }) => status === "loading")) {
    await chrome.tabs.reload(latest.id).catch(() => {}); // it was closed meanwhile
  }
}

/**
 * @returns {Promise<{tabIds: number[], documents: DocumentState[], loading: LoadingTab[],
 *   crashed: number[]}>}
 */
export async function snapshot() {
  // While a document is leaving, its calls and the reason for their end are not known yet.
  const left = Array.from(registry.leaving.values(), ({ promise }) => promise);
  await Promise.all([registry.ready(), ...left]);
  const [open, focused] = await Promise.all([
    chrome.tabs.query({}),
    // Rejects if no window is open.
    chrome.windows.getLastFocused().catch(() => undefined),
  ]);
  const byId = new Map(open.map((tab) => [tab.id, tab]));
  /** @type {DocumentState[]} */
  const states = [];
  for (const doc of registry.documents.values()) {
    const tab = byId.get(doc.tabId);
    if (doc.plugins.size === 0 && doc.calls.size === 0) {
      continue;
    }
    states.push({
      documentId: doc.id,
      tabId: doc.tabId,
      url: doc.url.slice(0, URL_MAX),
      title: (tab?.title ?? "").slice(0, TITLE_MAX),
      active: tab?.active ?? false,
      focused: tab !== undefined && tab.windowId === focused?.id,
      protected: doc.isProtected,
      // A call that has not started may have arrived in part: the server sends it again.
      calls: Array.from(doc.calls).flatMap(([callId, started]) => (started ? [callId] : [])),
      plugins: Object.fromEntries(
        Array.from(doc.plugins, ([name, { readiness, reason }]) => [
          name,
          reason === undefined ? { readiness } : { readiness, reason },
        ]),
      ),
    });
  }
  const attached = new Set(Array.from(registry.documents.values(), (doc) => doc.tabId));
  // After a worker died together with its pages, only this shows what happened to them.
  const crashed = open.flatMap(({ id, status }) =>
    id === undefined || status !== "unloaded" || attached.has(id) ? [] : [id],
  );
  const loading = open.flatMap(({ id, url = "", pendingUrl, discarded, status }) => {
    if (id === undefined || discarded || status === "unloaded" || attached.has(id)) {
      return [];
    }
    // Until a server answers, its tab still has the URL of the page before.
    const coming = pendingUrl || url;
    const names = registry.serving(coming).map((spec) => spec.name);
    return names.length === 0 ? [] : [{ tabId: id, url: coming.slice(0, URL_MAX), plugins: names }];
  });
  const tabIds = open.flatMap((tab) => (tab.id === undefined ? [] : [tab.id]));
  return { tabIds, documents: states, loading, crashed };
}
