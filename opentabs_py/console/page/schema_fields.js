/**
 * The fields for single values that a JSON Schema describes.
 *
 * @typedef {object} Field
 * @property {HTMLElement} element
 * @property {() => unknown} get throws a `FieldError`
 * @property {(value: unknown) => void} set
 *
 * @typedef {object} Context
 * @property {Schema} root
 * @property {{fields: number}} made since the user's last step
 * @property {() => void} onChange
 * @property {number} depth
 * @property {string} label
 */

/** @import {Schema} from "./schema.js" */

import { h } from "./dom.js";
import { boundsText } from "./schema.js";
import { readJson, readNumber } from "./values.js";

const LONG_TEXT = 200; // characters; longer ones get a field of several lines

/**
 * @param {readonly unknown[]} given
 * @param {Schema} schema
 * @param {Context} context
 * @returns {Field}
 */
export function choice(given, schema, context) {
  const values = [...given];
  const select = h(
    "select",
    { "aria-label": context.label, onchange: context.onChange },
    ...values.map((value, index) =>
      h("option", { value: index }, typeof value === "string" ? value : JSON.stringify(value)),
    ),
  );
  const field = {
    element: select,
    get: () => values[Number(select.value)],
    /** @param {unknown} value */
    set(value) {
      const text = JSON.stringify(value);
      let index = values.findIndex((each) => JSON.stringify(each) === text);
      if (index < 0) {
        index = values.push(value) - 1;
        select.append(h("option", { value: index }, text));
      }
      select.value = String(index);
    },
  };
  if (schema.type === "boolean") field.set(false);
  return field;
}

/**
 * @param {Schema} schema
 * @param {Context} context
 * @returns {Field}
 */
export function textField(schema, context) {
  const isLong =
    (schema.maxLength ?? 0) > LONG_TEXT ||
    ["body", "text", "content", "html", "markdown"].includes(context.label);
  const [example] = Array.isArray(schema.examples) ? schema.examples : [];
  const attributes = {
    "aria-label": context.label,
    placeholder: typeof example === "string" ? example : false,
    spellcheck: "false",
    autocomplete: "off",
    oninput: context.onChange,
  };
  const lines = () => h("textarea", { rows: 3, ...attributes });
  let input = isLong ? lines() : h("input", { type: "text", ...attributes });
  let given = ""; // the text that was set
  let shown = ""; // as the field has it: a textarea turns each CRLF into LF
  return {
    get element() {
      return input;
    },
    get: () => (input.value === shown ? given : input.value),
    set(value) {
      given = typeof value === "string" ? value : JSON.stringify(value);
      if (/[\r\n]/.test(given)) {
        const old = input; // an input would remove the line breaks
        input = lines();
        old.replaceWith(input);
      }
      input.value = given;
      shown = input.value;
    },
  };
}

/**
 * @param {Schema} schema
 * @param {Context} context
 * @returns {Field}
 */
export function numberField(schema, context) {
  const input = h("input", {
    type: "text",
    inputmode: "decimal",
    "aria-label": context.label,
    autocomplete: "off",
    placeholder: boundsText(schema),
    oninput: context.onChange,
  });
  return {
    element: input,
    get: () => readNumber(input.value, context.label),
    set(value) {
      input.value = JSON.stringify(value); // String(value) may call a member of an object that is not a number
    },
  };
}

/**
 * @param {Schema} schema
 * @param {Context} context
 * @returns {Field}
 */
export function jsonField(schema, context) {
  const input = h("textarea", {
    class: "json",
    rows: 2,
    "aria-label": `${context.label}, as JSON`,
    spellcheck: "false",
    oninput: context.onChange,
  });
  input.value = JSON.stringify(schema.default ?? null);
  return {
    element: input,
    get: () => readJson(input.value, context.label),
    set(value) {
      input.value = JSON.stringify(value, null, 2);
      input.rows = Math.min(12, Math.max(2, input.value.split("\n").length));
    },
  };
}
