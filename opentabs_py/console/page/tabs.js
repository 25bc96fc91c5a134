/**
 * The browsers, and the tabs in which plugins run.
 */

/** @import {Console, View} from "./main.js" */
/** @import {BrowserRow, TabRow} from "./store.js" */

import {
  emptyState,
  h,
  keepingFocus,
  matches,
  pluginPath,
  searchField,
  shownOf,
  site,
  wordsOf,
  write,
} from "./dom.js";
import { EXPOSED, isExposed, READINESS } from "./store.js";

/**
 * @param {Console} console_
 * @returns {View}
 */
export function tabsView({ store }) {
  const query = searchField("Filter tabs", "Filter by title, URL or plugin", () => show());
  const count = h("span", { class: "quiet count" });
  const content = h("div", { class: "scroll-area" });
  const element = h(
    "div",
    { class: "view tabs" },
    h("header", {}, h("h1", {}, "Tabs"), count, h("div", { class: "filters" }, query)),
    content,
  );

  function show() {
    const words = wordsOf(query.value);
    const tabs = [...store.rows("tabs").values()];
    const shown = tabs
      .filter((tab) =>
        matches(words, `${tab.title} ${tab.url} ${tab.plugins.map(({ name }) => name).join(" ")}`),
      )
      .sort((a, b) => a.id - b.id);
    const browsers = [...store.rows("browsers").values()].sort((a, b) => a.number - b.number);
    write(count, shownOf(shown.length, tabs.length, "tab"));
    keepingFocus(content, () =>
      content.replaceChildren(
        ...browsers.map((browser) =>
          section(
            browser,
            shown.filter((tab) => tab.browser === browser.name),
          ),
        ),
        ...(browsers.length > 0
          ? []
          : [
              emptyState(
                "This server has no browser",
                "Its tools run beside it, or in the browsers of a fleet's workers.",
              ),
            ]),
      ),
    );
  }

  /**
   * @param {BrowserRow} browser
   * @param {TabRow[]} tabs
   */
  function section(browser, tabs) {
    const state = browser.connected ? "connected" : "not connected";
    return h(
      "section",
      { class: "group", "aria-label": `Browser ${browser.name}` },
      h(
        "h2",
        {},
        h("span", { class: `light ${browser.connected ? "on" : "off"}` }),
        browser.name,
        h("span", { class: "quiet" }, state),
      ),
      browser.userAction !== "" && h("p", { class: "notice" }, browser.userAction),
      tabs.length > 0
        ? h("ul", { class: "rows" }, ...tabs.map(item))
        : h("p", { class: "quiet none" }, query.value === "" ? why(browser) : "No tab matches."),
    );
  }

  /** @param {TabRow} tab */
  function item(tab) {
    return h(
      "li",
      { class: "tab" },
      h(
        "div",
        { class: "what" },
        h("strong", {}, tab.loading ? "Loading" : tab.title || "No title"),
        h("span", { class: "quiet", title: tab.url }, site(tab.url)),
      ),
      h("span", { class: "quiet number" }, `tab ${tab.id}`),
      h(
        "ul",
        { class: "badges", "aria-label": "Plugins" },
        tab.focused && tab.active && h("li", { class: "badge" }, "active"),
        isExposed(tab) &&
          h(
            "li",
            {},
            h("span", { class: "badge warn" }, "not protected"),
            h("span", { class: "quiet reason" }, EXPOSED),
          ),
        ...tab.plugins.map((plugin) =>
          h(
            "li",
            {},
            h(
              "a",
              {
                class: `badge ${plugin.readiness}`,
                href: pluginPath(plugin.name),
                title: plugin.reason ?? "",
                "data-keep": `${tab.id} ${plugin.name}`,
              },
              `${plugin.name} ${READINESS[plugin.readiness].toLowerCase()}`,
            ),
            plugin.reason !== null &&
              plugin.readiness !== "ready" &&
              h("span", { class: "quiet reason" }, plugin.reason),
          ),
        ),
      ),
    );
  }

  return {
    element,
    search: query,
    show,
    update(changed) {
      if (changed.has("tabs") || changed.has("browsers")) show();
    },
  };
}

/**
 * Why a browser has no tabs here, and what to do.
 * @param {BrowserRow} browser
 */
function why({ connected }) {
  return connected
    ? "No tab in which a plugin runs. Open a page of a plugin's site in this browser."
    : "Its tabs are shown once it has connected. If OpenTabs launched it, the next call starts it again.";
}
