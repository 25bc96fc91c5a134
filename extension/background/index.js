/**
 * The service worker: it carries, and decides nothing.
 *
 * Chrome may stop it between any two lines. So every listener is registered here,
 * synchronously, and nothing that matters is kept here: relays keep what has not been
 * acknowledged, the server keeps the calls, and `storage.session` keeps the plugins.
 */
// Named here too, all modules are fetched at once, not level by level.
import "../protocol.js";
import "./match.js";
import "./scripts.js";
import * as documents from "./documents.js";
import * as link from "./link.js";
import * as plugins from "./plugins.js";
import * as tabs from "./tabs.js";

const RECONNECT_ALARM = "reconnect";

chrome.runtime.onConnect.addListener(documents.attach);
chrome.runtime.onInstalled.addListener(() => link.connect());
chrome.runtime.onStartup.addListener(() => link.connect());
chrome.alarms.onAlarm.addListener(() => link.connect());

chrome.tabs.onActivated.addListener(() => tabs.changed());
chrome.tabs.onRemoved.addListener(() => tabs.changed());
chrome.tabs.onUpdated.addListener((tabId, { status, title, url }) => {
  if (url !== undefined) {
    documents.moved(tabId, url);
  }
  if (status !== undefined) {
    tabs.changed();
  } else if (title !== undefined || url !== undefined) {
    tabs.changedSoon();
  }
});
chrome.windows.onFocusChanged.addListener(() => tabs.changed());

// Wakes a worker that died while the server was away; half a minute is Chrome's least.
chrome.alarms.create(RECONNECT_ALARM, { periodInMinutes: 0.5 });

plugins.restore();
link.connect();
