const DEPTH = 6;
const ENTRIES = 100; // of one object, array, map or set
const STRING = 4000; // characters of one string
const WHOLE = 8000; // characters in total, roughly: the host truncates records here

/**
 * Converts any value to plain JSON data of bounded size, including cycles, getters that throw,
 * proxies and DOM nodes. Values that JSON cannot represent are described in brackets.
 *
 * @param {unknown} value
 * @returns {unknown}
 */
export function serialize(value) {
  return show(() => value, { above: [], left: WHOLE });
}

/** @typedef {{above: object[], left: number}} Walk the objects around a value; characters left */

/**
 * @param {() => unknown} get
 * @param {Walk} walk
 */
function show(get, walk) {
  try {
    const value = get();
    const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
    const shown = isObject ? showObject(value, walk) : showPrimitive(value);
    walk.left -= typeof shown === "string" ? shown.length : 1;
    return shown;
  } catch (error) {
    return `[threw ${reason(error)}]`;
  }
}

/** @param {unknown} value */
function showPrimitive(value) {
  switch (typeof value) {
    case "string":
      return cut(value);
    case "bigint":
      return `${value}n`;
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : `[${value}]`;
    default:
      return value === null ? null : `[${String(value)}]`;
  }
}

/**
 * @param {object} value
 * @param {Walk} walk
 */
function showObject(value, walk) {
  if (walk.above.includes(value)) {
    return "[circular]";
  }
  if (walk.above.length === DEPTH) {
    return `[${className(value)}]`;
  }
  walk.above.push(value);
  try {
    return showMembers(value, walk);
  } finally {
    walk.above.pop();
  }
}

/**
 * @param {object} value
 * @param {Walk} walk
 */
function showMembers(value, walk) {
  if (Array.isArray(value)) {
    return list(value, value.length, walk);
  }
  if (value instanceof Set) {
    return list(value, value.size, walk);
  }
  if (value instanceof Map) {
    const items = new Map([...value].map(([key, item]) => [String(key), item]));
    return record([...items.keys()], (key) => items.get(key), walk);
  }
  if (typeof value === "function") {
    return cut(`[function ${value.name}]`);
  }
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? "[invalid date]" : value.toISOString();
  }
  if (value instanceof URL || value instanceof RegExp) {
    return cut(String(value));
  }
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return `[${className(value)} of ${value.byteLength} bytes]`;
  }
  if (typeof Node === "function" && value instanceof Node) {
    return showNode(value);
  }
  if ("window" in value && value.window === value) {
    return "[Window]"; // nobody means to log the whole page
  }
  const member = (/** @type {string} */ key) => /** @type {any} */ (value)[key];
  const keys = Object.keys(value);
  if (value instanceof Error) {
    const cause = "cause" in value ? ["cause"] : [];
    return record([...new Set(["name", "message", ...keys, ...cause, "stack"])], member, walk);
  }
  const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(value));
  return isPlain || keys.length > 0 ? record(keys, member, walk) : `[${className(value)}]`;
}

/**
 * @param {Iterable<unknown>} items
 * @param {number} size
 * @param {Walk} walk
 */
function list(items, size, walk) {
  /** @type {unknown[]} */
  const shown = [];
  for (const item of items) {
    if (shown.length === ENTRIES || walk.left <= 0) {
      shown.push(`[${size - shown.length} more]`);
      break;
    }
    shown.push(show(() => item, walk));
  }
  return shown;
}

/**
 * @param {string[]} keys
 * @param {(key: string) => unknown} get
 * @param {Walk} walk
 */
function record(keys, get, walk) {
  /** @type {[string, unknown][]} */
  const shown = [];
  for (const key of keys) {
    if (shown.length === ENTRIES || walk.left <= 0) {
      shown.push(["…", `[${keys.length - shown.length} more]`]);
      break;
    }
    const name = cut(key);
    walk.left -= name.length;
    shown.push([name, show(() => get(key), walk)]);
  }
  return Object.fromEntries(shown);
}

/** @param {Node} node as in `<a#home.link>` */
function showNode(node) {
  const name = node.nodeName.toLowerCase();
  if (!(node instanceof Element)) {
    return `[${name}]`;
  }
  const classes = [...node.classList].map((each) => `.${each}`).join("");
  return cut(`<${name}${node.id && `#${node.id}`}${classes}>`);
}

/** @param {object} value */
function className(value) {
  return cut(String(value.constructor?.name || "Object"));
}

/** @param {unknown} error */
function reason(error) {
  try {
    return cut(String(error));
  } catch {
    return "an error that cannot be shown";
  }
}

/** @param {string} text */
function cut(text) {
  return text.length <= STRING
    ? text
    : `${text.slice(0, STRING).toWellFormed()}… (${text.length} characters)`;
}
