/**
 * The service worker: it forwards messages and makes no decisions.
 *
 * Chrome may stop it between any two lines. So every listener is registered here, synchronously,
 * and no important state is kept here: relays keep unacknowledged messages, the server keeps the
 * calls, and `storage.session` keeps the plugins.
 */
// Importing all modules here makes Chrome fetch them at once instead of level by level.
import "../protocol.js";
import "./badge.js";
import "./match.js";
import "./scripts.js";
import "./targets.js";
import * as documents from "./documents.js";
import * as link from "./link.js";
import * as ownTabs from "./own_tabs.js";
import * as plugins from "./plugins.js";
import * as registry from "./registry.js";
import * as router from "./router.js";
import * as tabs from "./tabs.js";

const RECONNECT_ALARM = "reconnect";

chrome.runtime.onConnect.addListener(documents.attach);
chrome.runtime.onInstalled.addListener(() => link.connect());
chrome.runtime.onStartup.addListener(() => link.connect());
chrome.alarms.onAlarm.addListener(() => link.connect());

chrome.tabs.onActivated.addListener(() => tabs.sendState());
chrome.tabs.onRemoved.addListener((tabId) => {
  ownTabs.handleRemoved(tabId);
  tabs.sendState();
});
chrome.tabs.onUpdated.addListener((tabId, { status, title, url }, tab) => {
  if (url !== undefined) {
    documents.handleUrlChange(tabId, url);
  }
  if (status === "complete") {
    ownTabs.handleLoaded(tabId);
    plugins.handleLoaded(tab);
  }
  if (status !== undefined) {
    tabs.sendState();
  } else if (title !== undefined || url !== undefined) {
    tabs.sendStateSoon();
  }
});
chrome.windows.onFocusChanged.addListener(() => tabs.sendState());

// The user has changed on which sites the extension may run: the server sends the plugins again, so
// each gets to where it may be now, and the server learns which ones are refused.
chrome.permissions.onAdded.addListener(link.reopen);
chrome.permissions.onRemoved.addListener(link.reopen);

// A click on the icon opens the side panel.
chrome.sidePanel.setPanelBehavior({ openPanelOnActionClick: true });

// Wakes a worker that died while the server was away; half a minute is Chrome's minimum.
chrome.alarms.create(RECONNECT_ALARM, { periodInMinutes: 0.5 });

registry.restore();
ownTabs.restore();
link.start(router.sayHello, router.receive, router.becomeAnother);
