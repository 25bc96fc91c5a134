/**
 * Elements, and how numbers, times and addresses are written. Whatever a page or a plugin wrote is text here and is
 * only ever set as text.
 */

/** @typedef {Node | string | null | undefined | false} Child */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [props] attributes; `on…` are listeners, false and null are left out
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.filter(isShown));
  return element;
}

/**
 * @param {Child} child
 * @returns {child is Node | string}
 */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/**
 * Make an icon of 24 × 24 units from the outline of its strokes.
 * @param {string} d
 * @param {string} [className]
 */
export function outline(d, className = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", `glyph ${className}`.trim());
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", d);
  svg.append(path);
  return svg;
}

/**
 * Set an element's text, and leave it alone if it has it: screen readers read what changes.
 * @param {Element} target
 * @param {string} text
 */
export function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/**
 * Replace an element, unless the other one is the same: the focus or a selection may be in it.
 * @param {Element | null} old
 * @param {Element | null} now
 */
export function swap(old, now) {
  if (old !== null && now !== null && !old.isEqualNode(now)) old.replaceWith(now);
}

const SAID_FOR = 3000; // ms; what stays would be read again by those who read the whole page

/**
 * Have screen readers say something, wherever the focus is.
 * @param {string} text
 */
export function announce(text) {
  const place = byId("announced");
  write(place, text);
  setTimeout(() => place.textContent === text && write(place, ""), SAID_FOR);
}

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found;
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/**
 * How many there are, and how many of them a filter shows.
 * @param {number} shown
 * @param {number} all
 * @param {string} one
 * @param {string} [many]
 */
export function shownOf(shown, all, one, many) {
  const whole = plural(all, one, many);
  return shown === all ? whole : `${shown.toLocaleString("en")} of ${whole}`;
}

/** @param {number} seconds since the epoch */
export function clock(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}

/**
 * The part of a URL that users recognize.
 * @param {string | null} url
 */
export function site(url) {
  if (url === null) return "";
  try {
    const { host, pathname } = new URL(url);
    return host + (pathname === "/" ? "" : pathname);
  } catch {
    return url;
  }
}

/**
 * The address of a plugin in the console.
 * @param {string} plugin
 */
export function pluginPath(plugin) {
  return `#/plugins/${encodeURIComponent(plugin)}`;
}

/**
 * Return whether every word of a query is in a string.
 * @param {readonly string[]} words in lower case
 * @param {string} text
 */
export function matches(words, text) {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

/** @param {string} query */
export function wordsOf(query) {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/**
 * Return whether keys go to a field, so that they are not commands.
 * @param {EventTarget | null} target
 */
export function isTyping(target) {
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type))
  );
}

/**
 * The field that filters a view.
 * @param {string} label
 * @param {string} hint what to write there
 * @param {() => void} onInput
 */
export function searchField(label, hint, onInput) {
  return h("input", {
    type: "search",
    class: "filter",
    placeholder: `${hint}  ( / )`,
    "aria-label": label,
    autocomplete: "off",
    spellcheck: "false",
    oninput: onInput,
  });
}

/**
 * Offer names in a `select`, after its other choices. What is chosen stays so while it is offered.
 * @param {HTMLSelectElement} select
 * @param {[string, string][]} others values and texts
 * @param {(string | null)[]} given the names, each any number of times
 */
export function offerNames(select, others, given) {
  const names = [...new Set(given)].filter((name) => name !== null).sort();
  const choices = [...others, ...names.map((name) => /** @type {const} */ ([name, name]))];
  const { options, value: chosen } = select;
  if (
    options.length === choices.length &&
    choices.every(([value], at) => options[at]?.value === value)
  )
    return;
  select.replaceChildren(...choices.map(([value, text]) => h("option", { value }, text)));
  if (choices.some(([value]) => value === chosen)) select.value = chosen;
}

/**
 * What is shown where there is nothing else.
 * @param {string} what
 * @param {...Child} why or what to do
 */
export function emptyState(what, ...why) {
  return h("div", { class: "empty" }, h("p", {}, what), h("p", { class: "quiet" }, ...why));
}

/**
 * The terms of a list and their values, without those that have none.
 * @param {[string, string | null | undefined][]} rows
 */
export function terms(rows) {
  return rows.flatMap(([name, value]) => (value ? [h("dt", {}, name), h("dd", {}, value)] : []));
}

/**
 * A button that copies a string, and says so.
 * @param {() => string} text
 * @param {string} label
 */
export function copyButton(text, label) {
  const button = h("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => {
      button.textContent = label;
    }, 1600);
  });
  return button;
}

/**
 * Buttons of which one is pressed.
 * @param {string} label
 * @param {[string, string][]} choices
 * @param {(choice: string) => void} onChoose
 */
export function switcher(label, choices, onChoose) {
  const buttons = choices.map(([value, text]) =>
    h("button", { type: "button", "data-value": value }, text),
  );
  /** @param {string | undefined} value */
  const mark = (value) => {
    for (const each of buttons)
      each.setAttribute("aria-pressed", String(each.dataset.value === value));
  };
  mark(choices[0]?.[0]);
  for (const each of buttons) {
    each.addEventListener("click", () => {
      mark(each.dataset.value);
      onChoose(each.dataset.value ?? "");
    });
  }
  return {
    element: h("div", { class: "switcher", role: "group", "aria-label": label }, ...buttons),
    mark,
  };
}

/**
 * Draw something again, and give the focus to what takes the place of what has it: what has the same `data-keep`.
 * @param {Element} area in which it is
 * @param {() => void} draw
 */
export function keepingFocus(area, draw) {
  const focused =
    document.activeElement instanceof HTMLElement ? document.activeElement.dataset.keep : undefined;
  const { scrollTop } = area;
  draw();
  area.scrollTop = scrollTop;
  if (focused !== undefined) focusOn(area, focused, { preventScroll: true });
}

/**
 * Give the focus to an element, if there is one.
 * @param {Element} area in which it is
 * @param {string} keep its `data-keep`
 * @param {FocusOptions} [options]
 */
export function focusOn(area, keep, options) {
  const found = area.querySelector(`[data-keep="${CSS.escape(keep)}"]`);
  /** @type {HTMLElement | null} */ (found)?.focus(options);
}

/** A notice about something the user has done, until it is replaced or until they close it. */
export function closableNotice() {
  const text = h("span", { role: "alert" });
  const close = h("button", { type: "button" }, "Close");
  const element = h("p", { class: "notice closable", hidden: true }, text, close);
  close.addEventListener("click", () => {
    element.hidden = true;
  });
  /** @param {string} what empty for no notice */
  function show(what) {
    element.hidden = what === "";
    write(text, what);
  }
  return { element, show };
}
