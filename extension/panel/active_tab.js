/**
 * The active tab: the plugins that work on it, and their tools.
 */

/** @import {Console} from "./console/main.js" */
/** @import {PluginRow, TabRow} from "./console/store.js" */
/** @import {ToolInShort} from "./console/tool_list.js" */

import { h, keepingFocus, pluginPath, plural, site } from "./console/dom.js";
import { pluginIcon } from "./console/icons.js";
import { byTitle, EXPOSED, isExposed, needsReview, READINESS } from "./console/store.js";
import { toolList } from "./console/tool_list.js";

const TOOLS = 12; // of one plugin; the rest are on its own page
const OTHERS = 8; // plugins that do not work on this tab, in each list

/**
 * @param {Console} console_
 * @param {() => string | null} profile the id of this browser
 */
export function activeTabView({ store, link }, profile) {
  const element = h("section", { "aria-label": "The active tab" });
  /** @type {chrome.tabs.Tab | undefined} */
  let tab;
  let looks = 0;
  let drawn = ""; // what was drawn
  /** @type {Map<string, {revision: number, tools: ToolInShort[] | null}>} */
  const known = new Map();

  async function look() {
    const mine = ++looks;
    const [found] = await chrome.tabs.query({ active: true, currentWindow: true });
    if (mine !== looks) return;
    tab = found;
    show();
  }

  /** The tab as the server knows it; undefined if no plugin works on it. */
  function activeRow() {
    const browser = [...store.rows("browsers").values()].find(
      (each) => each.profile !== null && each.profile === profile(),
    );
    if (browser === undefined || tab?.id === undefined) return undefined;
    return store.rows("tabs").get(String(browser.firstTab + tab.id));
  }

  /** @param {PluginRow} plugin */
  function toolsOf(plugin) {
    const { name, revision } = plugin;
    const had = known.get(name);
    if (had?.revision === revision) return had.tools;
    const entry = { revision, tools: had?.tools ?? null };
    known.set(name, entry);
    link.get(`/tools?owner=${encodeURIComponent(name)}`).then(
      (/** @type {ToolInShort[]} */ tools) => {
        entry.tools = tools;
        show();
      },
      () => known.delete(name), // asked for again at the next change
    );
    return entry.tools;
  }

  function show() {
    if (!store.isFilled || tab === undefined) return;
    const row = activeRow();
    const plugins = (row?.plugins ?? []).flatMap(({ name }) => {
      const plugin = store.rows("plugins").get(name);
      return plugin === undefined ? [] : [plugin];
    });
    const version = JSON.stringify([
      row ?? [tab.id, tab.url],
      plugins,
      plugins.map(toolsOf),
      plugins.length > 0 || others(),
    ]);
    if (version === drawn) return;
    drawn = version;
    keepingFocus(element, () =>
      element.replaceChildren(
        ...(row === undefined || plugins.length === 0 ? nothing() : found(row, plugins)),
      ),
    );
  }

  /**
   * @param {TabRow} row
   * @param {PluginRow[]} plugins
   */
  function found(row, plugins) {
    return [
      h("h2", {}, "The active tab"),
      h(
        "p",
        { class: "active-title" },
        h("strong", {}, row.loading ? "Loading" : row.title || "No title"),
        h("span", { class: "quiet" }, site(row.url)),
      ),
      isExposed(row) && h("p", { class: "notice" }, EXPOSED),
      ...plugins.map((plugin) => ofPlugin(row, plugin)),
    ].filter((each) => each !== false);
  }

  /**
   * @param {TabRow} row
   * @param {PluginRow} plugin
   */
  function ofPlugin(row, plugin) {
    const state = row.plugins.find(({ name }) => name === plugin.name);
    const tools = toolsOf(plugin);
    const readiness = state?.readiness ?? "pending";
    return h(
      "section",
      { class: "of-plugin", "aria-label": plugin.title },
      h(
        "header",
        {},
        pluginIcon(plugin, link),
        h("a", { href: pluginPath(plugin.name), "data-keep": plugin.name }, plugin.title),
        h("span", { class: `badge ${readiness}` }, READINESS[readiness]),
      ),
      state !== undefined &&
        state.reason !== null &&
        readiness !== "ready" &&
        h("p", { class: "quiet reason" }, state.reason),
      tools === null
        ? h("p", { class: "quiet" }, "Loading its tools")
        : toolList(tools.slice(0, TOOLS)),
      tools !== null &&
        tools.length > TOOLS &&
        h(
          "a",
          { href: pluginPath(plugin.name), "data-keep": `all of ${plugin.name}` },
          `All ${plural(tools.length, "tool")}`,
        ),
    );
  }

  function nothing() {
    const where = tab?.url && /^https?:/i.test(tab.url) ? site(tab.url).split("/")[0] : "this page";
    const all = others();
    const off = all.filter(needsReview);
    const elsewhere = all.filter((plugin) => !needsReview(plugin));
    return [
      h("h2", {}, "The active tab"),
      h("p", { class: "lead" }, `No plugin works on ${where}.`),
      ...(off.length > 0 ? [listOf("Plugins that are off until you review them:", off)] : []),
      ...(elsewhere.length > 0 ? [listOf("Plugins that work elsewhere:", elsewhere)] : []),
      all.length === 0 &&
        h(
          "p",
          { class: "quiet" },
          "The server has no plugin. Serve one: ",
          h("code", {}, "opentabs serve --plugin DIR"),
        ),
    ].filter((each) => each !== false);
  }

  /**
   * @param {string} title
   * @param {PluginRow[]} plugins
   */
  function listOf(title, plugins) {
    return h(
      "div",
      { class: "others" },
      h("p", { class: "quiet lead" }, title),
      h("ul", { class: "rows" }, ...plugins.slice(0, OTHERS).map(itemOf)),
      plugins.length > OTHERS &&
        h("a", { href: "#/plugins", "data-keep": title }, `${plugins.length - OTHERS} more`),
    );
  }

  function others() {
    const plugins = [...store.rows("plugins").values()].filter(({ kind }) => kind === "plugin");
    return plugins.sort(byTitle);
  }

  /** @param {PluginRow} plugin */
  function itemOf(plugin) {
    const [first = ""] = plugin.patterns;
    const more = plugin.patterns.length - 1 + plugin.morePatterns;
    return h(
      "li",
      {},
      pluginIcon(plugin, link),
      h(
        "span",
        { class: "what" },
        h("a", { href: pluginPath(plugin.name), "data-keep": plugin.name }, plugin.title),
        h("code", { class: "quiet" }, more > 0 ? `${first} and ${more} more` : first),
      ),
    );
  }

  chrome.tabs.onActivated.addListener(look);
  chrome.tabs.onAttached.addListener(look);
  chrome.tabs.onUpdated.addListener((tabId, { status, url }) => {
    if (tabId === tab?.id && (status !== undefined || url !== undefined)) look();
  });
  look();
  return { element, show };
}
