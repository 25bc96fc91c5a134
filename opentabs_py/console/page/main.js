/**
 * The console: connects to the server, and shows one view at a time.
 *
 * @typedef {object} Console what a view gets
 * @property {Store} store
 * @property {Link} link
 * @property {(path: string, replace?: boolean) => void} go
 *
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {HTMLInputElement} [search] the field that `/` goes to
 * @property {(path: string[]) => void} show called with the rest of its path, whenever it is shown or that changes
 * @property {(changed: ReadonlySet<Section>) => void} update called with what has changed, while it is shown
 * @property {() => void} [leave] Escape
 */

/** @import {LinkState} from "./link.js" */
/** @import {Section} from "./store.js" */

import { announcer, approvalsView } from "./approvals.js";
import { callsView } from "./calls.js";
import { byId, h, write } from "./dom.js";
import { glyph } from "./icons.js";
import { ownKey } from "./key.js";
import { Link } from "./link.js";
import { logsView } from "./logs.js";
import { pluginsView } from "./plugins.js";
import { Router } from "./router.js";
import { Store } from "./store.js";
import { tabsView } from "./tabs.js";
import { tryView } from "./try.js";
import { Turn } from "./turn.js";

/** @type {Record<LinkState, string>} */
const STATES = {
  connecting: "Connecting",
  live: "Live",
  gone: "The server is not running",
  "signed out": "Run opentabs ui",
};

const store = new Store();
const link = new Link({ key: ownKey() });

const router = new Router("plugins", () => count());
const console_ = { store, link, go: router.go };
const views = {
  plugins: { title: "Plugins", view: pluginsView(console_) },
  try: { title: "Try it", view: tryView(console_) },
  calls: { title: "Calls", view: callsView(console_) },
  approvals: { title: "Approvals", view: approvalsView(console_) },
  tabs: { title: "Tabs", view: tabsView(console_) },
  logs: { title: "Logs", view: logsView(console_) },
};

/** @typedef {keyof typeof views} Name */

const names = /** @type {Name[]} */ (Object.keys(views));
/** @type {Record<string, HTMLElement>} */
const counts = {};

byId("nav").append(
  ...names.map((name) => {
    const count = h("span", { class: "count", hidden: true });
    counts[name] = count;
    return h(
      "li",
      {},
      h(
        "a",
        { href: `#/${name}`, "data-view": name },
        glyph(name),
        h("span", {}, views[name].title),
        count,
      ),
    );
  }),
);

function count() {
  const running = [...store.rows("calls").values()].filter(({ state }) => state === "running");
  const problems = store.rows("problems").size;
  const questions = store.rows("questions").size;
  const { current, opened } = router;
  const opens = current === "calls" ? store.rows("calls").get(opened)?.name : opened;
  const title = [opens, views[/** @type {Name} */ (current)].title, "OpenTabs"]
    .filter(Boolean)
    .join(" · ");
  document.title = questions > 0 ? `(${questions}) ${title}` : title;
  for (const [name, number, what] of /** @type {const} */ ([
    ["calls", running.length, "running"],
    ["plugins", problems, "with a problem"],
    ["approvals", questions, "waiting for you"],
  ])) {
    const place = counts[name];
    if (place === undefined) continue;
    place.hidden = number === 0;
    write(place, String(number));
    place.setAttribute("aria-label", `${number} ${what}`);
    place.classList.toggle("warn", name !== "calls");
  }
}

/** @param {LinkState} state */
function showState(state) {
  byId("state").dataset.state = state;
  write(byId("state-text"), STATES[state]);
  if (state !== "live") store.disconnect();
}

const announceQuestions = announcer(store);
store.subscribe((changed) => {
  count();
  if (changed.has("questions")) announceQuestions();
  router.update(changed);
});
router.start(views);
link.follow((update) => store.apply(update), showState, new Turn());
