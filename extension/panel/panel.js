/**
 * The side panel: the console's narrow form, for the browser that it is in.
 *
 * It is the console's own code (`console/` is copied beside it when the extension is staged), with a
 * view of its own: the active tab, and what runs.
 */

/** @import {View} from "./console/main.js" */
/** @import {LinkState} from "./console/link.js" */

import { TROUBLE } from "../background/badge.js";
import { readConfig } from "../background/config.js";
import { activeTabView } from "./active_tab.js";
import { announcer, approvalsView } from "./console/approvals.js";
import { callsView } from "./console/calls.js";
import { byId, h, plural, write } from "./console/dom.js";
import { glyph } from "./console/icons.js";
import { Link } from "./console/link.js";
import { pluginsView } from "./console/plugins.js";
import { Router } from "./console/router.js";
import { needsReview, Store } from "./console/store.js";
import { tryView } from "./console/try.js";
import { Turn } from "./console/turn.js";
import { runningCalls } from "./running.js";

const config = await readConfig();
const store = new Store();
const link = new Link({
  base: `http://${config.server}`,
  headers: { Authorization: `Bearer ${config.secret}` },
});
/** @type {string | null} */
let profile = null; // as background/router.js keeps it

const router = new Router(
  "now",
  () => {},
  (changed) => changed.has("questions") && approvals.update(changed),
);
const console_ = { store, link, go: router.go };
const approvals = approvalsView(console_);
const views = /** @type {const} */ ({
  now: { title: "This tab", icon: "tabs", view: nowView() },
  try: { title: "Tools", icon: "try", view: tryView(console_) },
  calls: { title: "Calls", icon: "calls", view: callsView(console_) },
  plugins: { title: "Plugins", icon: "plugins", view: pluginsView(console_) },
});
/** @typedef {keyof typeof views} Name */
const names = /** @type {Name[]} */ (Object.keys(views));

/** @returns {View} */
function nowView() {
  const running = runningCalls(console_, () => profile);
  const activeTab = activeTabView(console_, () => profile);
  const reviews = h("a", { href: "#/plugins", hidden: true });
  const problems = h("a", { href: "#/plugins", hidden: true });
  const element = h(
    "div",
    { class: "view now" },
    h("h1", { class: "hidden" }, "This tab"),
    running.element,
    activeTab.element,
    h("p", { class: "foot" }, h("a", { href: "#/try" }, "All tools"), reviews, problems),
  );

  function show() {
    running.show();
    activeTab.show();
    const toReview = [...store.rows("plugins").values()].filter(needsReview).length;
    reviews.hidden = toReview === 0;
    write(reviews, plural(toReview, "plugin to review", "plugins to review"));
    const wrong = store.rows("problems").size;
    problems.hidden = wrong === 0;
    write(problems, plural(wrong, "problem"));
  }
  return { element, show, update: show };
}

byId("nav").append(
  ...names.map((name) =>
    h(
      "li",
      {},
      h(
        "a",
        { href: `#/${name}`, "data-view": name },
        glyph(views[name].icon),
        h("span", {}, views[name].title),
      ),
    ),
  ),
);
byId("asks").append(approvals.element);

/** @param {LinkState} state */
async function showState(state) {
  byId("state").dataset.state = state;
  const isGone = state === "gone" || state === "signed out";
  if (isGone) store.disconnect();
  let text = state === "live" ? "Connected" : "Connecting";
  if (isGone) {
    // A server that was started again may be elsewhere.
    const now = await readConfig().catch(() => config);
    if (now.server !== config.server || now.secret !== config.secret) location.reload();
    // The service worker knows more: it has received the reason.
    const { [TROUBLE]: trouble } = await chrome.storage.session.get(TROUBLE);
    text = `The server is ${trouble ? `${trouble}.` : "not connected. Start it: opentabs start"}`;
    if (byId("state").dataset.state !== state) return;
  }
  write(byId("state-text"), text);
  byId("gone").hidden = !isGone;
  write(byId("gone"), isGone ? text : "");
}

async function readProfile() {
  const { browserId } = await chrome.storage.local.get("browserId");
  profile = typeof browserId === "string" ? browserId : null;
}

const announceQuestions = announcer(store);
store.subscribe((changed) => {
  router.update(changed);
  if (changed.has("questions")) announceQuestions();
});
await readProfile();
chrome.storage.local.onChanged.addListener(readProfile);
router.start(views);
link.follow((update) => store.apply(update), showState, new Turn());
