/**
 * The state of tabs and documents, told to the server whole at every change.
 */
import * as documents from "./documents.js";
import * as link from "./link.js";
import * as plugins from "./plugins.js";

/** @import { DocumentState, LoadingTab } from "../protocol.js" */

const TITLE_MAX = 1024;
const URL_MAX = 16384;

const SOON = 100; // ms; a page can change its title and its URL as fast as it likes

let dirty = false;
let telling = false;
let waiting = false;

/** Something may have changed; changes that come together are told together. */
export async function changed() {
  dirty = true;
  if (telling) {
    return;
  }
  telling = true;
  try {
    while (dirty && link.isUp()) {
      dirty = false;
      const params = await snapshot();
      if (link.isUp()) {
        link.send({ jsonrpc: "2.0", method: "tabs.changed", params });
      }
    }
  } finally {
    telling = false;
  }
}

/** Something may have changed that no call waits for. */
export function changedSoon() {
  if (!waiting) {
    waiting = true;
    setTimeout(() => {
      waiting = false;
      changed();
    }, SOON);
  }
}

/**
 * @returns {Promise<{tabIds: number[], documents: DocumentState[], loading: LoadingTab[],
 *   crashed: number[]}>}
 */
export async function snapshot() {
  await Promise.all([plugins.ready(), documents.settled()]);
  const [open, focused] = await Promise.all([
    chrome.tabs.query({}),
    // With no window at all it rejects.
    chrome.windows.getLastFocused().catch(() => undefined),
  ]);
  const byId = new Map(open.map((tab) => [tab.id, tab]));
  /** @type {DocumentState[]} */
  const states = [];
  for (const doc of documents.all()) {
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
      calls: [...doc.calls.keys()],
      plugins: Object.fromEntries(
        Array.from(doc.plugins, ([name, { readiness, reason }]) => [
          name,
          reason === undefined ? { readiness } : { readiness, reason },
        ]),
      ),
    });
  }
  const attached = new Set(Array.from(documents.all(), (doc) => doc.tabId));
  // A worker that died with the pages it served sees only here what became of them.
  const crashed = open.flatMap(({ id, status }) =>
    id === undefined || status !== "unloaded" || attached.has(id) ? [] : [id],
  );
  const loading = open.flatMap(({ id, url = "", discarded, status }) => {
    const names = plugins.serving(url);
    const gone = id === undefined || discarded || status === "unloaded";
    return gone || attached.has(id) || names.length === 0
      ? []
      : [{ tabId: id, url: url.slice(0, URL_MAX), plugins: names }];
  });
  const tabIds = open.flatMap((tab) => (tab.id === undefined ? [] : [tab.id]));
  return { tabIds, documents: states, loading, crashed };
}
