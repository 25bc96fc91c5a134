/**
 * What waits for the user: calls that need approval, and plugins that need a review.
 */

/** @import {Console, View} from "./main.js" */
/** @import {PluginRow, QuestionRow} from "./store.js" */

import {
  announce,
  byId,
  closableNotice,
  emptyState,
  h,
  keepingFocus,
  pluginPath,
  plural,
  write,
} from "./dom.js";
import { whyFailed } from "./link.js";
import { STANDING } from "./plugin.js";
import { needsReview } from "./store.js";

/** @type {Record<string, string>} */
const ANSWERS = { once: "Allow once", session: "For this session", always: "Always", no: "Refuse" };
/** @type {Record<string, string>} */
const SIGNED_IN = { once: "I have signed in", no: "Not now" };
const SETTLES_AFTER = 500; // ms; longer than a hand needs to stop, shorter than reading takes

/**
 * @param {Console} console_
 * @returns {View}
 */
export function approvalsView({ store, link }) {
  const count = h("span", { class: "quiet count" });
  const notice = closableNotice(); // about the last answer; outlives its card
  const list = h("ul", { class: "questions", "aria-label": "Questions" });
  const rest = h("div", {});
  const content = h("div", { class: "scroll-area" }, notice.element, list, rest);
  const element = h(
    "div",
    { class: "view approvals" },
    h("header", {}, h("h1", {}, "Approvals"), count),
    content,
  );
  /** @type {Map<string, HTMLElement>} a question keeps its element, so that a focus in it stays */
  const shown = new Map();
  /** @type {HTMLElement | null} the card that the user has answered last */
  let answered = null;

  function show() {
    const questions = [...store.rows("questions").values()];
    for (const [id, card] of shown) {
      if (store.rows("questions").has(id)) continue;
      shown.delete(id);
      const next = card.nextElementSibling;
      card.remove();
      for (let below = next; below !== null; below = below.nextElementSibling) settle(below);
      if (card === answered) moveFocus(next);
    }
    for (const question of questions) {
      if (shown.has(question.id)) continue;
      const card = cardOf(question);
      shown.set(question.id, card);
      list.append(card);
      settle(card);
    }
    tick();
    const unreviewed = [...store.rows("plugins").values()].filter(needsReview);
    write(count, questions.length > 0 ? plural(questions.length, "call waits", "calls wait") : "");
    keepingFocus(content, () =>
      rest.replaceChildren(
        ...(unreviewed.length > 0 ? [reviewList(unreviewed)] : []),
        ...(questions.length === 0 && unreviewed.length === 0 ? [nothing(store.isGone)] : []),
      ),
    );
  }

  /** @param {QuestionRow} question */
  function cardOf(question) {
    const { id, tool, title, plugin, client, tabTitle, answers } = question;
    const signsIn = question.about === "sign_in";
    const wrong = h("p", { class: "wrong", role: "alert", hidden: true });
    const buttons = /** @type {string[]} */ (answers).map((answer) =>
      h(
        "button",
        {
          type: "button",
          class: answer === "once" ? "primary" : "",
          onclick: async () => {
            for (const each of buttons) each.disabled = true;
            answered = card;
            try {
              const { counts, note } = await link.post("/answer", { id, answer });
              notice.show(counts ? note : uncounted(title));
            } catch (error) {
              for (const each of buttons) each.disabled = false;
              wrong.hidden = false;
              write(wrong, whyFailed(error));
            }
          },
        },
        (signsIn ? SIGNED_IN : ANSWERS)[answer] ?? answer,
      ),
    );
    const card = h(
      "li",
      { class: "question", "data-until": question.until },
      h(
        "p",
        { class: "asks" },
        h("strong", {}, client ?? "An agent"),
        " wants to use ",
        h("strong", {}, title),
        placeOf(question),
        signsIn && ", but the page is not ready. Sign in there; then the call continues.",
      ),
      h(
        "p",
        { class: "badges" },
        h("code", { class: "quiet" }, tool),
        h("a", { class: "badge", href: pluginPath(plugin) }, plugin),
        tabTitle !== null && h("span", { class: "badge" }, tabTitle),
        h("span", { class: "quiet left", role: "timer" }),
      ),
      h("pre", { tabindex: "0", "aria-label": "The arguments" }, question.arguments),
      wrong,
      h("div", { class: "actions" }, ...buttons),
    );
    return card;
  }

  /** @param {PluginRow[]} plugins */
  function reviewList(plugins) {
    return h(
      "section",
      { class: "group", "aria-label": "Plugins to review" },
      h("h2", {}, plural(plugins.length, "plugin to review", "plugins to review")),
      h(
        "ul",
        { class: "rows" },
        ...plugins.map(({ name, title, standing }) =>
          h(
            "li",
            { class: "tab" },
            h("a", { href: pluginPath(name), "data-keep": name }, title),
            h("span", { class: "badge warn" }, STANDING[standing]),
            h("span", { class: "quiet" }, "Its tools are off until you approve it."),
          ),
        ),
      ),
    );
  }

  function tick() {
    for (const card of shown.values()) {
      const left = Math.max(0, Math.round(Number(card.dataset.until) - store.now()));
      const place = card.querySelector(".left");
      if (place !== null) write(place, `${left} s left`);
    }
  }

  setInterval(() => element.isConnected && tick(), 1000);
  return {
    element,
    show,
    update(changed) {
      if (changed.has("questions") || changed.has("plugins")) show();
    },
  };
}

/**
 * Have a question ignore the mouse for a moment, when it appears or moves: a click that is on its way is meant for
 * what was there before.
 * @param {Element} card
 */
function settle(card) {
  if (card.querySelector("button:active") !== null) return; // this click began before
  const ignores = { pointerEvents: "none" };
  card.animate([ignores, ignores], SETTLES_AFTER);
}

/**
 * Where a call would act, as the end of a sentence.
 * @param {QuestionRow} question
 */
function placeOf({ element, site }) {
  return `${element && ` on the ${element}`}${site === null ? "" : ` on ${site}`}`;
}

/**
 * Return a function that has screen readers say which questions are new, whatever view is shown.
 * @param {Console["store"]} store
 */
export function announcer(store) {
  let known = new Set();
  return () => {
    const questions = store.rows("questions");
    const added = [...questions.values()].filter(({ id }) => !known.has(id));
    known = new Set(questions.keys());
    const sentences = added.map(
      (each) => `${each.client ?? "An agent"} wants to use ${each.title}${placeOf(each)}.`,
    );
    if (sentences.length > 0) announce(`Waiting for your answer: ${sentences.join(" ")}`);
  };
}

/** @param {boolean} isGone whether the server is */
function nothing(isGone) {
  return isGone
    ? emptyState(
        "Questions cannot be shown now",
        "This page has no connection to the server. If the server has stopped, the calls that waited for you have ended.",
      )
    : emptyState(
        "Nothing is waiting for you",
        "A call that needs your permission appears here, as long as this page is open.",
      );
}

/** @param {string} title of the tool that an answer was about */
function uncounted(title) {
  const why = "it had been answered already, or it no longer waited";
  return `Your answer about ${title} did not count: ${why}.`;
}

/**
 * Keep the keyboard's place after an answer: at the arguments of the next question, and not at its buttons, where a
 * key pressed twice would allow what nobody has read.
 * @param {Element | null} next the next question
 */
function moveFocus(next) {
  if (document.activeElement !== document.body) return; // the user is elsewhere
  /** @type {HTMLElement} */ (next?.querySelector("pre") ?? byId("view")).focus();
}
