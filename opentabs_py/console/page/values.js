/**
 * What users write into fields, as values; and values as they are shown.
 */

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i; // RFC 8259, section 6
const INTEGER = /^-?\d+$/;

/** A field contains something that is not a valid value. */
export class FieldError extends Error {}

/**
 * Read a number as JSON has it. What JavaScript also takes for one, such as `0x10` or `Infinity`, would arrive as
 * another value or as null.
 * @param {string} text
 * @param {string} label of the field
 */
export function readNumber(text, label) {
  const trimmed = text.trim();
  if (!NUMBER.test(trimmed))
    throw new FieldError(`${label}: write a number, for example 12, -0.5 or 1e3.`);
  const number = Number(trimmed);
  if (!Number.isFinite(number)) throw new FieldError(`${label}: this number is too large.`);
  if (INTEGER.test(trimmed) && !Number.isSafeInteger(number))
    throw new FieldError(`${label}: this number is too large to be sent exactly.`); // 2^53 + 1 would be 2^53
  return number;
}

/**
 * Read JSON, with its numbers as `readNumber` reads them.
 * @param {string} text
 * @param {string} label of the field
 * @returns {any}
 */
export function readJson(text, label) {
  /**
   * @param {string} _
   * @param {unknown} value
   * @param {{source?: string}} [context] older browsers have none
   */
  const exact = (_, value, context) =>
    typeof value === "number" ? readNumber(context?.source ?? String(value), label) : value;
  try {
    return JSON.parse(text, exact);
  } catch (error) {
    if (error instanceof FieldError) throw error;
    throw new FieldError(
      `${label}: this is not valid JSON. ${/** @type {Error} */ (error).message}`,
    );
  }
}

/**
 * Parse JSON to show it: an integer that JavaScript would round is a BigInt, in browsers that have its text.
 * @param {string} text
 * @returns {any}
 */
export function parseExactly(text) {
  /**
   * @param {string} _
   * @param {unknown} value
   * @param {{source?: string}} [context]
   */
  const exact = (_, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && INTEGER.test(context?.source ?? "")
      ? BigInt(/** @type {string} */ (context?.source))
      : value;
  return JSON.parse(text, exact);
}

/**
 * Write a value of `parseExactly` as JSON that is easy to read.
 * @param {unknown} value
 */
export function writeExactly(value) {
  const { rawJSON } = /** @type {any} */ (JSON); // where texts of numbers are known, there is this too
  return JSON.stringify(
    value,
    (_, each) => (typeof each === "bigint" ? rawJSON(`${each}`) : each),
    2,
  );
}

/**
 * Return whether a value has all that was given; it may have more members.
 * @param {unknown} value
 * @param {unknown} given
 * @returns {boolean}
 */
export function keeps(value, given) {
  if (typeof given !== "object" || given === null || typeof value !== "object" || value === null)
    return value === given;
  if (Array.isArray(given) !== Array.isArray(value)) return false;
  if (Array.isArray(given) && given.length !== /** @type {unknown[]} */ (value).length)
    return false;
  const members = /** @type {Record<string, unknown>} */ (value);
  return Object.entries(given).every(
    ([name, each]) => Object.hasOwn(members, name) && keeps(members[name], each),
  );
}
