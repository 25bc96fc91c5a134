/**
 * The plugins as cards, and one of them with its tools.
 */

/** @import {Console, View} from "./main.js" */
/** @import {ProblemRow, PluginRow} from "./store.js" */
/** @import {ToolInShort} from "./tool_list.js" */

import {
  emptyState,
  focusOn,
  h,
  keepingFocus,
  matches,
  pluginPath,
  plural,
  searchField,
  shownOf,
  wordsOf,
  write,
} from "./dom.js";
import { pluginIcon } from "./icons.js";
import { KIND, pluginView, problemList, STANDING, statusOf } from "./plugin.js";
import { byTitle, needsReview } from "./store.js";
import { toolList } from "./tool_list.js";

/**
 * @param {Console} console_
 * @returns {View}
 */
export function pluginsView({ store, link, go }) {
  const what = "Find a plugin or a tool";
  const query = searchField(what, what, () => (opened === "" ? show() : go("plugins")));
  const count = h("span", { class: "quiet count" });
  const content = h("div", { class: "scroll-area" });
  const element = h(
    "div",
    { class: "view plugins" },
    h("header", {}, h("h1", {}, "Plugins"), count, h("div", { class: "filters" }, query)),
    content,
  );
  content.addEventListener("keydown", moveAmongCards);
  const one = pluginView({ store, link }, content);
  let opened = "";
  /** @type {{revision: number, tools: ToolInShort[]} | null} */
  let all = null;

  function show() {
    if (opened === "") return showCards();
    write(count, "");
    one.show(opened);
  }

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
      [
        store.isFilled && shownOf(shown.length, plugins.length, "plugin"),
        tools.length > 0 && plural(tools.length, "tool"),
        problems.length > 0 && plural(problems.length, "problem"),
      ]
        .filter(Boolean)
        .join(", "),
    );
    keepingFocus(content, () =>
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
    if (plugins > 0) return emptyState("Nothing matches.", "Search for other words.");
    if (store.isEndpoint) {
      const command = h("code", {}, "opentabs worker --plugin DIR");
      return emptyState("No worker serves a plugin", "Start one: ", command);
    }
    return emptyState(
      "No plugin is served",
      "Serve one: ",
      h("code", {}, "opentabs serve --plugin DIR"),
      ", or write one: ",
      h("code", {}, "opentabs new NAME"),
    );
  }

  /** @param {readonly string[]} words */
  function foundTools(words) {
    const revision = store.toolsRevision;
    if (all?.revision !== revision) {
      all = { revision, tools: all?.tools ?? [] };
      link.get("/tools").then(
        (tools) => {
          all = { revision, tools };
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
      { class: "card-link", href: pluginPath(plugin.name), "data-keep": plugin.name },
      pluginIcon(plugin, link),
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
          needsReview(plugin) && h("span", { class: "badge warn" }, STANDING[plugin.standing]),
          plugin.status !== null &&
            h("span", { class: `badge ${plugin.status}` }, statusOf(plugin)),
          h("span", { class: "badge" }, plural(plugin.tools, "tool")),
          mine > 0 && h("span", { class: "badge warn" }, plural(mine, "problem")),
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

  return {
    element,
    search: query,
    show([name = ""]) {
      const left = opened;
      const hadFocus = content.contains(document.activeElement);
      if (name !== opened) {
        one.clear();
        content.replaceChildren();
        content.scrollTop = 0;
      }
      opened = name;
      show();
      if (hadFocus && name !== left) focusOn(content, name === "" ? left : "back");
    },
    update(changed) {
      if (changed.has("plugins") || changed.has("problems") || changed.has("tabs")) show();
    },
    leave: () => go("plugins"),
  };
}
