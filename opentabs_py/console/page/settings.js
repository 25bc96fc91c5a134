/**
 * The settings of a plugin, as a form.
 */

/** @import {Link} from "./link.js" */
/** @import {Part} from "./plugin.js" */

import { h, write } from "./dom.js";
import { whyFailed } from "./link.js";
import { readNumber } from "./values.js";

/**
 * @typedef {object} Setting
 * @property {string} key
 * @property {"url" | "string" | "number" | "boolean" | "select"} type
 * @property {string | null} label
 * @property {string | null} description
 * @property {string | null} placeholder
 * @property {(string | {value: string, label?: string})[] | null} options
 * @property {boolean} required
 * @property {unknown} default
 * @property {boolean} isSecret
 * @property {boolean} isSet
 * @property {boolean} isWritten
 * @property {boolean} isElsewhere
 * @property {unknown} value
 *
 * @typedef {object} FormField
 * @property {string} key
 * @property {HTMLElement} element
 * @property {() => boolean} isChanged
 * @property {() => unknown} changed the new value; undefined for no change
 */

/**
 * @param {Link} link
 * @param {string} plugin
 * @returns {Part}
 */
export function settingsForm(link, plugin) {
  const place = h("details", { class: "settings" }, h("summary", {}, "Settings"));
  let drawn = ""; // what the form was drawn from
  /** @type {FormField[]} */
  let fields = [];
  /** @param {{file: string, isServed: boolean, settings: Setting[]}} described */
  const show = (described) => {
    drawn = JSON.stringify(described);
    fields = described.settings.map((setting) => fieldOf(setting));
    const feedback = h("p", { role: "status" });
    const save = h("button", { type: "submit", class: "primary" }, "Save");
    const form = h(
      "form",
      {},
      ...fields.map(({ element }) => element),
      h("div", { class: "actions" }, save, feedback),
      h("p", { class: "quiet" }, "Saved in ", h("code", {}, described.file)),
    );
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        // JSON leaves out what is undefined, because it has not changed.
        const values = Object.fromEntries(fields.map(({ key, changed }) => [key, changed()]));
        save.disabled = true;
        const now = await link.post("/settings", { plugin, values });
        show(now);
        const status = place.querySelector("[role=status]");
        if (status !== null) {
          status.className = "said-ok";
          write(status, now.isServed ? "Saved, and in use" : "Saved");
        }
      } catch (error) {
        save.disabled = false;
        feedback.className = "wrong";
        write(feedback, error instanceof Error ? error.message : String(error));
      }
    });
    place.replaceChildren(h("summary", {}, "Settings"), form);
    if (described.settings.some((each) => each.required && !each.isSet)) place.open = true;
  };
  async function read() {
    try {
      const described = await link.get(`/settings/${encodeURIComponent(plugin)}`);
      const isChanged = fields.some((field) => field.isChanged()); // by the user, who has not saved it
      if (!isChanged && JSON.stringify(described) !== drawn) show(described);
    } catch (error) {
      const why = whyFailed(error);
      if (drawn === "")
        place.replaceChildren(h("summary", {}, "Settings"), h("p", { class: "notice" }, why));
    }
  }
  return { element: place, read };
}

/**
 * @param {Setting} setting
 * @returns {FormField}
 */
function fieldOf(setting) {
  const { key, label, description, isSecret, isSet, value } = setting;
  const input = inputOf(setting);
  let touched = false;
  let removed = false;
  const remove = h("button", { type: "button" }, "Remove");
  /** @param {boolean} isRemoved */
  const showRemoved = (isRemoved) => {
    removed = isRemoved;
    remove.disabled = isRemoved;
    remove.textContent = isRemoved ? "Removed when saved" : "Remove";
  };
  remove.addEventListener("click", () => showRemoved(true));
  for (const type of ["input", "change"]) {
    input.addEventListener(type, () => {
      touched = true;
      showRemoved(false); // whoever writes a value after that wants it saved
    });
  }
  const element = h(
    "div",
    { class: "field" },
    h(
      "label",
      { class: "field-label", for: input.id },
      h("span", { class: "field-name" }, label ?? key),
      h("code", { class: "quiet" }, key),
      setting.required && h("span", { class: "required" }, "required"),
      isSecret && isSet && h("span", { class: "badge ready" }, "set"),
    ),
    description !== null && description !== label && h("p", { class: "quiet hint" }, description),
    input,
    setting.isElsewhere &&
      h(
        "p",
        { class: "notice" },
        "The command line, the environment or pyproject.toml sets another value, which takes precedence.",
      ),
    setting.isWritten && !setting.required && h("div", {}, remove),
  );
  return {
    key,
    element,
    isChanged: () => touched || removed,
    changed() {
      if (removed) return null;
      if (!touched) return undefined;
      if (input instanceof HTMLInputElement && input.type === "checkbox") return input.checked;
      const text = input.value;
      if (text === "" && !isSecret) return null;
      if (setting.type === "number") return readNumber(text, label ?? key);
      if (setting.type === "url" && text.startsWith("{")) return JSON.parse(text);
      return text === textOf(value) ? undefined : text;
    },
  };
}

/** @param {Setting} setting */
function inputOf({ key, type, placeholder, options, isSecret, isSet, value, default: usual }) {
  const id = `setting-${key}`;
  if (type === "boolean") {
    return h("input", { id, type: "checkbox", checked: value === true });
  }
  if (type === "select") {
    const known = (options ?? []).map((each) =>
      typeof each === "string"
        ? { value: each, label: each }
        : { value: each.value, label: each.label ?? each.value },
    );
    const select = h(
      "select",
      { id },
      !isSet && h("option", { value: "" }, "Not set"),
      ...known.map((each) => h("option", { value: each.value }, each.label)),
    );
    select.value = textOf(value);
    return select;
  }
  const hint = isSecret && isSet ? "Set; type a new value to replace it" : placeholder;
  const input = h("input", {
    id,
    type: isSecret ? "password" : "text",
    autocomplete: isSecret ? "new-password" : "off",
    spellcheck: "false",
    placeholder: hint ?? (usual === null ? false : textOf(usual)),
  });
  input.value = textOf(value);
  return input;
}

/** @param {unknown} value */
function textOf(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
