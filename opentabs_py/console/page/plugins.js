/**
 * The plugins as cards, and one of them with its tools.
 */

/** @import {Console, View} from "./main.js" */
/** @import {ProblemRow, PluginRow, TabRow} from "./store.js" */

import { copyButton, h, matches, plural, site, wordsOf, write } from "./dom.js";
import { glyph, pluginIcon, toolIcon } from "./icons.js";
import { whyFailed } from "./link.js";
import { reviewSection } from "./review.js";
import { settingsForm } from "./settings.js";

/**
 * @typedef {object} ToolInShort
 * @property {string} name
 * @property {string} owner
 * @property {string} title
 * @property {string} summary
 * @property {string} group
 * @property {string} icon
 * @property {"off" | "ask" | "auto" | null} permission
 * @property {string | null} because
 * @property {string} rule that names its permission
 * @property {boolean} readOnly
 *
 * @typedef {object} Part of what is shown of a plugin
 * @property {HTMLElement} element
 * @property {() => void} [read] reads what it shows from the server, at first and whenever tools may have changed
 */

const STATUS = { ready: "Ready", unavailable: "Not ready", closed: "No tab open" };
const KIND = {
  plugin: "",
  page: "Registered by the site's own pages",
  python: "Python tools",
  remote: "In the fleet's workers",
  "built-in": "Part of OpenTabs",
};

/**
 * @param {Console} console_
 * @returns {View}
 */
export function pluginsView({ store, link, go }) {
  const query = h("input", {
    type: "search",
    class: "filter",
    placeholder: "Find a plugin or a tool  ( / )",
    "aria-label": "Find a plugin or a tool",
    autocomplete: "off",
    oninput: () => (opened === "" ? show() : go("plugins")),
  });
  const count = h("span", { class: "quiet count", role: "status" });
  const content = h("div", { class: "scroll-area" });
  const element = h(
    "div",
    { class: "view plugins" },
    h("header", {}, h("h1", {}, "Plugins"), count, h("div", { class: "filters" }, query)),
    content,
  );
  content.addEventListener("keydown", moveAmongCards);
  let opened = "";
  let revision = 0; // of all tools
  /** @type {Map<string, Part & {from: string, revision: number}>} of the opened plugin */
  const parts = new Map();
  /** @type {{revision: number, tools: ToolInShort[]} | null} */
  let all = null;

  /** @param {string} plugin */
  function path(plugin) {
    return `#/plugins/${encodeURIComponent(plugin)}`;
  }

  function show() {
    const [first] = store.rows("plugins").values();
    revision = first?.revision ?? 0;
    if (opened === "") showCards();
    else showOne();
  }

  // --- all ---------------------------------------------------------------------------------

  function showCards() {
    const plugins = [...store.rows("plugins").values()].sort(byTitle);
    const problems = [...store.rows("problems").values()];
    const words = wordsOf(query.value);
    const shown = plugins.filter((each) =>
      matches(words, `${each.name} ${each.title} ${each.description}`),
    );
    const tools = words.length === 0 ? [] : foundTools(words);
    write(
      count,
      `${plural(plugins.length, "plugin")}${problems.length > 0 ? `, ${plural(problems.length, "problem")}` : ""}`,
    );
    keepingFocus(() =>
      content.replaceChildren(
        ...(words.length === 0 && problems.length > 0 ? [problemList(problems)] : []),
        ...(shown.length > 0
          ? [h("ul", { class: "cards" }, ...shown.map((each) => h("li", {}, card(each, problems))))]
          : []),
        ...(tools.length > 0
          ? [
              h(
                "section",
                { class: "group", "aria-label": "Tools" },
                h("h2", {}, plural(tools.length, "tool")),
                toolList(tools.slice(0, 100)),
              ),
            ]
          : []),
        ...(shown.length === 0 && tools.length === 0 && store.isFilled
          ? [nothing(plugins.length)]
          : []),
      ),
    );
  }

  /** @param {number} plugins */
  function nothing(plugins) {
    if (plugins > 0)
      return h(
        "div",
        { class: "empty" },
        h("p", {}, "Nothing matches."),
        h("p", { class: "quiet" }, "Search for other words."),
      );
    return h(
      "div",
      { class: "empty" },
      h("p", {}, "No plugin is served"),
      h(
        "p",
        { class: "quiet" },
        "Serve one: ",
        h("code", {}, "opentabs serve --plugin DIR"),
        ", or write one: ",
        h("code", {}, "opentabs new NAME"),
      ),
    );
  }

  /** @param {readonly string[]} words */
  function foundTools(words) {
    if (all === null || all.revision !== revision) {
      const asked = revision;
      all = { revision: asked, tools: all?.tools ?? [] };
      link.get("/tools").then(
        (tools) => {
          all = { revision: asked, tools };
          if (opened === "") show();
        },
        () => {
          all = null; // asked for again at the next key
        },
      );
    }
    return all.tools.filter((each) => matches(words, `${each.name} ${each.title} ${each.summary}`));
  }

  /**
   * @param {PluginRow} plugin
   * @param {ProblemRow[]} problems
   */
  function card(plugin, problems) {
    const mine = problems.filter((each) => each.plugin === plugin.name).length;
    return h(
      "a",
      { class: "card-link", href: path(plugin.name), "data-keep": plugin.name },
      pluginIcon(plugin, link, `/icons/${encodeURIComponent(plugin.name)}.svg`),
      h(
        "span",
        { class: "what" },
        h(
          "span",
          { class: "title" },
          h("strong", {}, plugin.title),
          plugin.version !== null && h("span", { class: "quiet version" }, plugin.version),
        ),
        h("span", { class: "quiet description" }, plugin.description || KIND[plugin.kind]),
        h(
          "span",
          { class: "badges" },
          plugin.status !== null &&
            h("span", { class: `badge ${plugin.status}` }, STATUS[plugin.status]),
          h("span", { class: "badge" }, plural(plugin.tools, "tool")),
          mine > 0 && h("span", { class: "badge warn" }, plural(mine, "problem")),
        ),
      ),
    );
  }

  /** @param {ProblemRow[]} problems */
  function problemList(problems) {
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
              ? h("strong", {}, problem.directory?.split(/[\\/]/).at(-1) ?? "A plugin")
              : h("a", { href: path(problem.plugin) }, problem.plugin),
            h("span", { class: "quiet" }, problem.directory ?? `in tab ${problem.tab}`),
            h("pre", { tabindex: "0" }, problem.reason),
          ),
        ),
      ),
    );
  }

  /** @param {KeyboardEvent} event */
  function moveAmongCards(event) {
    const steps = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1 });
    const cards = /** @type {HTMLElement[]} */ ([
      ...content.querySelectorAll(".cards .card-link, .tools .tool-link"),
    ]);
    const at = cards.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (at < 0) return;
    let to = at + (steps[event.key] ?? 0);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      // The nearest card of the next row.
      const from = /** @type {HTMLElement} */ (cards[at]).getBoundingClientRect();
      const sign = event.key === "ArrowDown" ? 1 : -1;
      const ways = cards
        .map((card, index) => ({ index, box: card.getBoundingClientRect() }))
        .filter(({ box }) => sign * (box.top - from.top) > 4)
        .map(({ index, box }) => ({
          index,
          way: sign * (box.top - from.top) * 1000 + Math.abs(box.left - from.left),
        }))
        .sort((a, b) => a.way - b.way);
      to = ways[0]?.index ?? at;
    }
    const card = cards[to];
    if (to === at || card === undefined) return;
    event.preventDefault();
    card.focus();
  }

  // --- one ---------------------------------------------------------------------------------

  function showOne() {
    const plugin = store.rows("plugins").get(opened);
    const tabs = [...store.rows("tabs").values()].filter((tab) =>
      tab.plugins.some(({ name }) => name === opened),
    );
    const problems = [...store.rows("problems").values()].filter((each) => each.plugin === opened);
    const hasSettings = plugin === undefined ? problems.length > 0 : plugin.settings > 0;
    const needsReview = plugin?.standing === "unreviewed" || plugin?.standing === "changed";
    write(count, "");
    if (plugin === undefined && !store.isFilled) return content.replaceChildren();
    const shown = [
      part("back", "", () => ({ element: back() })),
      plugin !== undefined &&
        part("about", JSON.stringify([{ ...plugin, revision: 0 }, tabs]), () => ({
          element: about(plugin, tabs),
        })),
      problems.length > 0 &&
        part("problems", JSON.stringify(problems), () => ({ element: problemList(problems) })),
      plugin !== undefined &&
        needsReview &&
        part("review", plugin.standing, () => reviewSection(link, plugin)),
      hasSettings && part("settings", "", () => settingsForm(link, opened)),
      plugin === undefined
        ? part("gone", "", () => ({ element: notServed() }))
        : part("tools", "", () => toolsOf(plugin.name)),
    ];
    keepingFocus(() => arrange(shown.filter((each) => each !== false)));
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
    if (known.revision !== revision) {
      known.revision = revision;
      known.read?.();
    }
    return known.element;
  }

  /**
   * Show elements in this order, without moving those that are shown: that would take the focus from them.
   * @param {readonly HTMLElement[]} elements
   */
  function arrange(elements) {
    for (const each of [...content.children])
      if (!elements.includes(/** @type {HTMLElement} */ (each))) each.remove();
    elements.forEach((each, at) => {
      const there = content.children[at] ?? null;
      if (there !== each) content.insertBefore(each, there);
    });
  }

  /**
   * Draw something again, and give the focus to what takes the place of what has it: what has the same `data-keep`.
   * @param {() => void} draw
   */
  function keepingFocus(draw) {
    const focused =
      document.activeElement instanceof HTMLElement
        ? document.activeElement.dataset.keep
        : undefined;
    const { scrollTop } = content;
    draw();
    content.scrollTop = scrollTop;
    if (focused === undefined) return;
    const again = content.querySelector(`[data-keep="${CSS.escape(focused)}"]`);
    /** @type {HTMLElement | null} */ (again)?.focus({ preventScroll: true });
  }

  function notServed() {
    return h(
      "div",
      { class: "empty" },
      h("p", {}, `No plugin ${opened} is served now`),
      h("a", { href: "#/plugins" }, "All plugins"),
    );
  }

  /**
   * @param {string} name
   * @returns {Part}
   */
  function toolsOf(name) {
    const element = h(
      "div",
      { class: "tools-of" },
      h("p", { class: "quiet" }, "Loading its tools"),
    );
    let drawn = "";
    async function read() {
      try {
        const found = /** @type {ToolInShort[]} */ (
          await link.get(`/tools?owner=${encodeURIComponent(name)}`)
        );
        const text = JSON.stringify(found);
        if (text === drawn) return;
        drawn = text;
        keepingFocus(() => element.replaceChildren(...grouped(found)));
      } catch (error) {
        drawn = "";
        element.replaceChildren(h("p", { class: "notice" }, whyFailed(error)));
      }
    }
    return { element, read };
  }

  function back() {
    return h("a", { class: "back", href: "#/plugins" }, glyph("back"), "All plugins");
  }

  /**
   * @param {PluginRow} plugin
   * @param {TabRow[]} tabs
   */
  function about(plugin, tabs) {
    const copy = copyButton(() => plugin.directory ?? "", "Copy");
    copy.dataset.keep = "copy";
    return h(
      "section",
      { class: "about", "aria-label": plugin.title },
      pluginIcon(plugin, link, `/icons/${encodeURIComponent(plugin.name)}.svg`),
      h(
        "div",
        { class: "what" },
        h(
          "h2",
          {},
          plugin.title,
          plugin.version !== null && h("span", { class: "quiet version" }, plugin.version),
          plugin.status !== null &&
            h("span", { class: `badge ${plugin.status}` }, STATUS[plugin.status]),
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
          return h(
            "li",
            {},
            h(
              "span",
              { class: `badge ${state?.readiness ?? ""}` },
              state?.readiness === "ready"
                ? "ready"
                : state?.readiness === "pending"
                  ? "starting"
                  : "not ready",
            ),
            h("span", {}, tab.title || site(tab.url)),
            h("span", { class: "quiet" }, `tab ${tab.id}`),
            state?.reason && h("span", { class: "quiet" }, state.reason),
          );
        }),
      ),
    ];
  }

  /** @param {ToolInShort[]} tools */
  function grouped(tools) {
    /** @type {Map<string, ToolInShort[]>} */
    const groups = new Map();
    for (const tool of tools) groups.set(tool.group, [...(groups.get(tool.group) ?? []), tool]);
    const sorted = [...groups].sort(([a], [b]) =>
      a === "" ? 1 : b === "" ? -1 : a.localeCompare(b),
    );
    return sorted.map(([group, mine]) => {
      const title = group || (sorted.length === 1 ? "Tools" : "Others");
      return h(
        "section",
        { class: "group", "aria-label": title },
        h("h3", {}, title, h("span", { class: "quiet" }, String(mine.length))),
        toolList(mine, link),
      );
    });
  }

  return {
    element,
    search: query,
    show([name = ""]) {
      if (name !== opened) {
        parts.clear();
        content.replaceChildren();
        content.scrollTop = 0;
      }
      opened = name;
      show();
      if (name === "") query.placeholder = "Find a plugin or a tool  ( / )";
    },
    update(changed) {
      if (["plugins", "problems", "tabs"].some((each) => changed.has(/** @type {any} */ (each))))
        show();
    },
    leave: () => go("plugins"),
  };
}

const PERMISSIONS = { auto: "Runs", ask: "Asks you", off: "Off" };

/**
 * @param {ToolInShort[]} tools
 * @param {import("./link.js").Link} [link] to change their permissions
 */
export function toolList(tools, link) {
  return h(
    "ul",
    { class: "tools" },
    ...tools.map((tool) =>
      h(
        "li",
        {},
        h(
          "a",
          {
            class: "tool-link",
            href: `#/try/${encodeURIComponent(tool.name)}`,
            "data-keep": `tool ${tool.name}`,
          },
          toolIcon(tool.icon),
          h(
            "span",
            { class: "what" },
            h("strong", {}, tool.title || tool.name),
            h("code", { class: "quiet" }, tool.name),
            tool.summary !== "" && h("span", { class: "quiet summary" }, tool.summary),
          ),
          link === undefined && mark(tool),
        ),
        link !== undefined && permissionOf(tool, link),
      ),
    ),
  );
}

/** @param {ToolInShort} tool */
function mark({ permission, because }) {
  if (permission === null || permission === "auto") return null;
  const kind = permission === "off" ? "badge" : "badge warn";
  return h("span", { class: kind, title: because ?? "" }, PERMISSIONS[permission]);
}

/**
 * @param {ToolInShort} tool
 * @param {import("./link.js").Link} link
 */
function permissionOf(tool, link) {
  if (tool.permission === null) return null;
  const select = h(
    "select",
    {
      class: `permission ${tool.permission}`,
      "data-keep": `permission of ${tool.name}`,
      "aria-label": `Permission of ${tool.name}`,
    },
    ...Object.entries(PERMISSIONS).map(([value, text]) => h("option", { value }, text)),
  );
  /** @type {string} */
  let saved = tool.permission;
  const because = `Because ${tool.because}`;
  select.value = saved;
  select.title = because;
  select.addEventListener("change", async () => {
    const wanted = select.value;
    select.setCustomValidity("");
    select.title = because;
    try {
      await link.post("/permission", { rule: tool.rule, permission: wanted });
      saved = wanted;
      select.className = `permission ${saved}`;
    } catch (error) {
      select.value = saved;
      select.title = /** @type {Error} */ (error).message;
      select.setCustomValidity(select.title);
      select.reportValidity();
    }
  });
  return select;
}

/**
 * Plugins first, then what else has tools.
 * @param {PluginRow} a
 * @param {PluginRow} b
 */
function byTitle(a, b) {
  return (
    Number(a.kind === "built-in") - Number(b.kind === "built-in") || a.title.localeCompare(b.title)
  );
}

/** @param {string} url */
function isWeb(url) {
  return /^https?:/i.test(url);
}
