/**
 * A form for a value that a JSON Schema describes. What a form cannot express is edited as JSON.
 */

/** @import {Schema} from "./schema.js" */
/** @import {Context, Field} from "./schema_fields.js" */

import { h } from "./dom.js";
import { glyph } from "./icons.js";
import { DEEPEST, fits, resolve, typeText } from "./schema.js";
import { choice, jsonField, numberField, textField } from "./schema_fields.js";
import { FieldError, keeps } from "./values.js";

const MOST = 1000; // fields that one step of the user makes; more would freeze the page

let names = 0; // of elements, which have to be unique in the page

/**
 * @param {Schema} root whose type is `object`
 * @param {() => void} onChange
 * @returns {Field}
 */
export function schemaForm(root, onChange) {
  const made = { fields: 0 };
  const change = () => {
    made.fields = 0;
    onChange();
  };
  const field = fieldOf(root, { root, made, onChange: change, depth: 0, label: "The arguments" });
  made.fields = 0;
  return {
    ...field,
    set(value) {
      field.set(value);
      made.fields = 0;
      if (!showsAll(field, value))
        throw new FieldError("The form cannot show these arguments unchanged. Send them as JSON.");
    },
  };
}

/**
 * @param {Field} field
 * @param {unknown} value
 */
function showsAll(field, value) {
  try {
    return keeps(field.get(), value);
  } catch {
    return true; // a field shows what is not valid, and says so when it is sent
  }
}

/**
 * @param {Schema} given
 * @param {Context} context
 * @returns {Field}
 */
function fieldOf(given, context) {
  const schema = resolve(given, context.root);
  context.made.fields += 1;
  if (context.depth > DEEPEST || context.made.fields > MOST) return jsonField(schema, context);
  if ("const" in schema) return choice([schema.const], schema, context);
  if (Array.isArray(schema.enum)) return choice(schema.enum, schema, context);
  const variants = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(variants)) return variantField(variants, context);
  if (Array.isArray(schema.type)) {
    return variantField(
      schema.type.map((type) => ({ ...schema, type })),
      context,
    );
  }
  switch (schema.type) {
    case "object":
      return objectField(schema, context);
    case "array":
      return arrayField(schema, context);
    case "string":
      return textField(schema, context);
    case "number":
    case "integer":
      return numberField(schema, context);
    case "boolean":
      return choice([true, false], schema, context);
    case "null":
      return { element: h("span", { class: "quiet" }, "null"), get: () => null, set: () => {} };
    default:
      return jsonField(schema, context);
  }
}

// --- objects and lists ---

/**
 * @param {Schema} schema
 * @param {Context} context
 * @returns {Field}
 */
function objectField(schema, context) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const properties = Object.entries(
    /** @type {Record<string, Schema>} */ (schema.properties ?? {}),
  );
  properties.sort(([a], [b]) => Number(required.has(b)) - Number(required.has(a)));
  const isOpen =
    schema.additionalProperties !== false &&
    (properties.length === 0 || typeof schema.additionalProperties === "object");
  /** @type {{name: string, member: Member}[]} */
  const members = properties.map(([name, inner]) => ({
    name,
    member: memberField(name, inner, required.has(name), context),
  }));
  const others = isOpen ? jsonField({}, { ...context, label: "Other members" }) : null;
  /** @type {Record<string, unknown>} */
  let unknown = {};
  const element = h("div", { class: "fields" }, ...members.map(({ member }) => member.element));
  if (others !== null) {
    element.append(
      h(
        "div",
        { class: "field" },
        h(
          "div",
          { class: "field-label" },
          h("span", { class: "field-name" }, properties.length === 0 ? "Members" : "Other members"),
          h("span", { class: "quiet" }, "an object, as JSON"),
        ),
        others.element,
      ),
    );
    others.set({});
  } else if (properties.length === 0) {
    element.append(h("p", { class: "quiet" }, "No arguments"));
  }
  return {
    element,
    get() {
      const included = members.filter(({ member }) => member.isIncluded());
      const values = included.map(({ name, member }) => [name, member.get()]);
      const more = others === null ? unknown : others.get();
      if (typeof more !== "object" || more === null || Array.isArray(more))
        throw new FieldError("Write the other members as a JSON object.");
      return Object.fromEntries([...values, ...Object.entries(more)]); // even `__proto__`
    },
    set(value) {
      const given =
        typeof value === "object" && value !== null
          ? /** @type {Record<string, unknown>} */ (value)
          : {};
      unknown = Object.fromEntries(
        Object.entries(given).filter(([name]) => !members.some((known) => known.name === name)),
      );
      for (const { name, member } of members) {
        if (Object.hasOwn(given, name)) member.set(given[name]);
        else member.leaveOut();
      }
      others?.set(unknown);
    },
  };
}

/** @typedef {Field & {isIncluded: () => boolean, leaveOut: () => void}} Member */

/**
 * @param {string} name
 * @param {Schema} given
 * @param {boolean} isRequired
 * @param {Context} context
 * @returns {Member}
 */
function memberField(name, given, isRequired, context) {
  const schema = resolve(given, context.root);
  const title = `field-${++names}`;
  const include = h("input", { type: "checkbox", "aria-label": `Send ${name}` });
  /** @type {Field | null} */
  let made = null;
  const place = h("div", { class: "field-value" });
  const change = () => {
    include.checked = true;
    context.onChange();
  };
  // A member that is left out is made when it is wanted: a schema may contain itself.
  const field = () => {
    if (made === null) {
      made = fieldOf(schema, {
        ...context,
        depth: context.depth + 1,
        label: name,
        onChange: change,
      });
      place.replaceChildren(made.element);
    }
    return made;
  };
  const isBranch =
    schema.type === "object" ||
    schema.type === "array" ||
    Array.isArray(schema.type) ||
    Array.isArray(schema.anyOf ?? schema.oneOf);
  // Null by default is how pydantic writes a member that may be left out.
  const isOffered = isBranch && !isRequired && schema.default === null;
  const hasDefault = schema.default !== undefined && !isOffered;
  if (isRequired || hasDefault || !isBranch) field();
  if (hasDefault) field().set(schema.default);
  include.checked = isRequired || hasDefault;
  include.addEventListener("change", () => {
    if (include.checked) field();
    show();
    context.onChange();
  });
  const element = h(
    "div",
    { class: "field" },
    h(
      "div",
      { class: "field-label" },
      !isRequired && include,
      h("span", { class: "field-name", id: title }, name),
      h("span", { class: "quiet" }, typeText(schema)),
      isRequired && h("span", { class: "required" }, "required"),
    ),
    typeof schema.description === "string" &&
      schema.description !== "" &&
      h("p", { class: "quiet hint" }, schema.description),
    place,
  );
  const show = () => element.classList.toggle("left-out", isBranch && !include.checked);
  show();
  if (isBranch) {
    element.setAttribute("role", "group");
    element.setAttribute("aria-labelledby", title);
  }
  return {
    element,
    isIncluded: () => isRequired || include.checked,
    get: () => field().get(),
    set(value) {
      include.checked = true;
      show();
      field().set(value);
    },
    leaveOut() {
      include.checked = false;
      show();
    },
  };
}

/**
 * @param {Schema} schema
 * @param {Context} context
 * @returns {Field}
 */
function arrayField(schema, context) {
  /** @type {{field: Field, row: HTMLElement}[]} */
  const items = [];
  const list = h("ol", { class: "items" });
  const inner = typeof schema.items === "object" && schema.items !== null ? schema.items : {};
  const add = () => {
    const field = fieldOf(inner, {
      ...context,
      depth: context.depth + 1,
      label: `${context.label} ${items.length + 1}`,
    });
    const remove = h(
      "button",
      { type: "button", class: "bare", "aria-label": `Remove from ${context.label}` },
      glyph("minus"),
    );
    const row = h("li", {}, field.element, remove);
    const item = { field, row };
    remove.addEventListener("click", () => {
      items.splice(items.indexOf(item), 1);
      row.remove();
      context.onChange();
    });
    items.push(item);
    list.append(row);
    return field;
  };
  const more = h(
    "button",
    { type: "button", class: "add" },
    glyph("plus"),
    `Add to ${context.label}`,
  );
  more.addEventListener("click", () => {
    const { element } = add();
    const controls = "input, select, textarea";
    const first = element.matches(controls) ? element : element.querySelector(controls);
    if (first instanceof HTMLElement) first.focus();
    context.onChange();
  });
  for (let index = 0; index < Math.min(Number(schema.minItems ?? 0), 5); index++) add();
  return {
    element: h("div", { class: "array" }, list, more),
    get: () => items.map(({ field }) => field.get()),
    set(value) {
      items.length = 0;
      list.replaceChildren();
      for (const each of Array.isArray(value) ? value : []) add().set(each);
    },
  };
}

/**
 * One of several kinds of value, of which the user chooses.
 * @param {Schema[]} variants
 * @param {Context} context
 * @returns {Field}
 */
function variantField(variants, context) {
  const schemas = variants.map((each) => resolve(each, context.root));
  /** @type {Map<number, Field>} */
  const made = new Map();
  const place = h("div", { class: "variant" });
  const kind = h(
    "select",
    { "aria-label": `Kind of ${context.label}` },
    ...schemas.map((schema, index) =>
      h(
        "option",
        { value: index },
        String(
          schema.title ??
            (schema.const !== undefined ? JSON.stringify(schema.const) : typeText(schema)),
        ),
      ),
    ),
  );
  const field = () => {
    const index = Number(kind.value);
    const known =
      made.get(index) ?? fieldOf(schemas[index] ?? {}, { ...context, depth: context.depth + 1 });
    made.set(index, known);
    if (place.firstChild !== known.element) place.replaceChildren(known.element);
    return known;
  };
  kind.addEventListener("change", () => {
    field();
    context.onChange();
  });
  field();
  return {
    element: h("div", { class: "variants" }, kind, place),
    get: () => field().get(),
    set(value) {
      const index = variants.findIndex((variant) => fits(value, variant, context.root));
      kind.value = String(Math.max(0, index));
      field().set(value);
    },
  };
}
