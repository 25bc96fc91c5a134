/**
 * One plugin: what it is, its problems and its tools.
 *
 * @typedef {object} Part of what is shown of a plugin
 * @property {HTMLElement} element
 * @property {() => void} [read] reads what it shows from the server, at first and whenever tools may have changed
 */

/** @import {Link} from "./link.js" */
/** @import {Console} from "./main.js" */
/** @import {ProblemRow, PluginRow, TabRow} from "./store.js" */
/** @import {Change, ToolInShort} from "./tool_list.js" */

import { closableNotice, copyButton, h, keepingFocus, pluginPath, plural, site } from "./dom.js";
import { glyph, pluginIcon } from "./icons.js";
import { whyFailed } from "./link.js";
import { reviewSection } from "./review.js";
import { settingsForm } from "./settings.js";
import { needsReview, READINESS } from "./store.js";
import { toolList } from "./tool_list.js";

const STATUS = { ready: "Ready", unavailable: "Not ready", closed: "No tab open" };
/** Why a plugin's tools are off until the user has reviewed it. */
export const STANDING = {
  unreviewed: "Never reviewed",
  changed: "Changed",
  reviewed: "",
  named: "",
};
export const KIND = {
  plugin: "",
  page: "Registered by the site's own pages",
  python: "Python tools",
  remote: "In the fleet's workers",
  "built-in": "Part of OpenTabs",
};

/**
 * @param {Pick<Console, "store" | "link">} console_
 * @param {HTMLElement} content where the plugin is shown
 */
export function pluginView({ store, link }, content) {
  /** @type {Map<string, Part & {from: string, revision: number}>} of the opened plugin */
  const parts = new Map();

  /** @param {string} opened */
  function show(opened) {
    const plugin = store.rows("plugins").get(opened);
    const tabs = [...store.rows("tabs").values()].filter((tab) =>
      tab.plugins.some(({ name }) => name === opened),
    );
    const problems = [...store.rows("problems").values()].filter((each) => each.plugin === opened);
    const hasSettings = plugin === undefined ? problems.length > 0 : plugin.settings > 0;
    if (plugin === undefined && !store.isFilled) return content.replaceChildren();
    const shown = [
      part("back", "", () => ({ element: back() })),
      plugin !== undefined &&
        part("about", JSON.stringify([{ ...plugin, revision: 0 }, tabs]), () => ({
          element: about(plugin, tabs, link),
        })),
      problems.length > 0 &&
        part("problems", JSON.stringify(problems), () => ({
          element: problemList(problems),
        })),
      plugin !== undefined &&
        needsReview(plugin) &&
        part("review", plugin.standing, () => reviewSection(link, plugin)),
      hasSettings && part("settings", "", () => settingsForm(link, opened)),
      plugin === undefined
        ? part("gone", "", () => ({ element: notServed(opened) }))
        : part("tools", "", () => toolsOf(plugin.name, link, content)),
    ];
    keepingFocus(content, () =>
      arrange(
        content,
        shown.filter((each) => each !== false),
      ),
    );
  }

  /**
   * A part of what is shown of the opened plugin: drawn again only if what it is drawn from has changed, because the
   * user may be typing in it.
   * @param {string} name
   * @param {string} from
   * @param {() => Part} draw
   */
  function part(name, from, draw) {
    let known = parts.get(name);
    if (known?.from !== from) {
      known = { ...draw(), from, revision: -1 };
      parts.set(name, known);
    }
    if (known.revision !== store.toolsRevision) {
      known.revision = store.toolsRevision;
      known.read?.();
    }
    return known.element;
  }

  return { show, clear: () => parts.clear() };
}

/**
 * Show elements in this order, without moving those that are shown: that would take the focus from them.
 * @param {Element} content
 * @param {readonly HTMLElement[]} elements
 */
function arrange(content, elements) {
  for (const each of [...content.children])
    if (!elements.includes(/** @type {HTMLElement} */ (each))) each.remove();
  elements.forEach((each, at) => {
    const there = content.children[at] ?? null;
    if (there !== each) content.insertBefore(each, there);
  });
}

/** @param {string} name */
function notServed(name) {
  return h(
    "div",
    { class: "empty" },
    h("p", {}, `No plugin ${name} is served now`),
    h("a", { href: "#/plugins" }, "All plugins"),
  );
}

/**
 * @param {string} name
 * @param {Link} link
 * @param {Element} area that scrolls
 * @returns {Part}
 */
function toolsOf(name, link, area) {
  const notice = closableNotice();
  const lists = h("div", {}, h("p", { class: "quiet" }, "Loading its tools"));
  const element = h("div", { class: "tools-of" }, notice.element, lists);
  let drawn = "";
  async function read() {
    try {
      const found = /** @type {ToolInShort[]} */ (
        await link.get(`/tools?owner=${encodeURIComponent(name)}`)
      );
      const text = JSON.stringify(found);
      if (text === drawn) return;
      drawn = text;
      keepingFocus(area, () =>
        lists.replaceChildren(...grouped(found, { link, tell: notice.show })),
      );
    } catch (error) {
      drawn = "";
      lists.replaceChildren(h("p", { class: "notice" }, whyFailed(error)));
    }
  }
  return { element, read };
}

/**
 * A plugin's status in words; the tabs of a fleet's workers are not known here.
 * @param {PluginRow} plugin
 */
export function statusOf({ kind, status }) {
  if (status === null) return "";
  return STATUS[kind === "remote" && status === "closed" ? "unavailable" : status];
}

function back() {
  return h(
    "a",
    { class: "back", href: "#/plugins", "data-keep": "back" },
    glyph("back"),
    "All plugins",
  );
}

/**
 * @param {PluginRow} plugin
 * @param {TabRow[]} tabs
 * @param {Link} link
 */
function about(plugin, tabs, link) {
  const copy = copyButton(() => plugin.directory ?? "", "Copy");
  copy.dataset.keep = "copy";
  return h(
    "section",
    { class: "about", "aria-label": plugin.title },
    pluginIcon(plugin, link),
    h(
      "div",
      { class: "what" },
      h(
        "h2",
        {},
        plugin.title,
        plugin.version !== null && h("span", { class: "quiet version" }, plugin.version),
        plugin.status !== null && h("span", { class: `badge ${plugin.status}` }, statusOf(plugin)),
      ),
      h("p", {}, plugin.description || KIND[plugin.kind]),
      h(
        "dl",
        {},
        plugin.patterns.length > 0 &&
          h(
            "div",
            {},
            h("dt", {}, "Sites"),
            h(
              "dd",
              {},
              ...plugin.patterns.map((each) => h("code", {}, each)),
              plugin.morePatterns > 0 && ` and ${plugin.morePatterns} more`,
            ),
          ),
        plugin.status !== null &&
          h("div", {}, h("dt", {}, "Tabs"), h("dd", {}, ...tabsOf(plugin, tabs))),
        plugin.directory !== null &&
          h(
            "div",
            {},
            h("dt", {}, "Directory"),
            h("dd", {}, h("code", {}, plugin.directory), copy),
          ),
      ),
    ),
  );
}

/**
 * @param {PluginRow} plugin
 * @param {TabRow[]} tabs
 */
function tabsOf(plugin, tabs) {
  if (plugin.kind === "remote") {
    return plugin.status === "ready"
      ? ["In the browsers of the workers. ", h("a", { href: "#/try/tabs_list" }, "List them")]
      : ["It is ready in no worker. See ", h("code", {}, "opentabs fleet status"), "."];
  }
  if (tabs.length === 0) {
    return [
      "None is open. ",
      plugin.homepage !== null &&
        isWeb(plugin.homepage) &&
        h(
          "a",
          {
            href: plugin.homepage,
            target: "_blank",
            rel: "noreferrer noopener",
            "data-keep": "homepage",
          },
          `Open ${site(plugin.homepage)}`,
        ),
      plugin.homepage === null && "Open one of its sites in the browser that has the extension.",
    ];
  }
  return [
    h(
      "ul",
      { class: "plain" },
      ...tabs.map((tab) => {
        const state = tab.plugins.find(({ name }) => name === plugin.name);
        const readiness = state?.readiness ?? "missing";
        return h(
          "li",
          {},
          h("span", { class: `badge ${readiness}` }, READINESS[readiness]),
          h("span", {}, tab.title || site(tab.url)),
          h("span", { class: "quiet" }, `tab ${tab.id}`),
          state?.reason && h("span", { class: "quiet" }, state.reason),
        );
      }),
    ),
  ];
}

/**
 * @param {ToolInShort[]} tools
 * @param {Change} change
 */
function grouped(tools, change) {
  const sorted = [...Map.groupBy(tools, ({ group }) => group)].sort(([a], [b]) =>
    a === "" ? 1 : b === "" ? -1 : a.localeCompare(b),
  );
  return sorted.map(([group, mine]) => {
    const title = group || (sorted.length === 1 ? "Tools" : "Others");
    return h(
      "section",
      { class: "group", "aria-label": title },
      h("h3", {}, title, h("span", { class: "quiet" }, String(mine.length))),
      toolList(mine, change),
    );
  });
}

/** @param {ProblemRow[]} problems */
export function problemList(problems) {
  return h(
    "section",
    { class: "problems", "aria-label": "Problems" },
    h("h2", {}, glyph("warning"), plural(problems.length, "problem")),
    h(
      "ul",
      {},
      ...problems.map((problem) =>
        h(
          "li",
          {},
          problem.plugin === null
            ? h("strong", {}, problem.directory?.split(/[\\/]/).at(-1) ?? "The fleet")
            : h(
                "a",
                { href: pluginPath(problem.plugin), "data-keep": `plugin ${problem.id}` },
                problem.plugin,
              ),
          h(
            "span",
            { class: "quiet" },
            problem.directory ?? (problem.tab === null ? "" : `in tab ${problem.tab}`),
          ),
          h("pre", { tabindex: "0", "data-keep": `why ${problem.id}` }, problem.reason),
        ),
      ),
    ),
  );
}

/** @param {string} url */
function isWeb(url) {
  return /^https?:/i.test(url);
}
