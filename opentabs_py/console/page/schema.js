/**
 * What a JSON Schema says, as far as a form needs it.
 *
 * @typedef {{[name: string]: any}} Schema
 */

export const DEEPEST = 12; // schemas may contain themselves

/**
 * Follow a reference within the schema, and merge `allOf` of objects.
 * @param {Schema} schema
 * @param {Schema} root
 * @param {number} [depth]
 * @returns {Schema}
 */
export function resolve(schema, root, depth = 0) {
  if (typeof schema !== "object" || schema === null || depth > DEEPEST) return {};
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#")) {
    const { $ref, ...more } = schema;
    const steps = $ref.slice(1).split("/").filter(Boolean);
    /** @type {any} */
    let found = root;
    for (const step of steps) {
      const name = memberName(step);
      found =
        typeof found === "object" && found !== null && name !== null && Object.hasOwn(found, name)
          ? found[name]
          : {};
    }
    return resolve({ ...found, ...more }, root, depth + 1);
  }
  if (Array.isArray(schema.allOf)) {
    const { allOf, ...merged } = schema;
    for (const part of allOf) {
      const { properties = {}, required = [], ...more } = resolve(part, root, depth + 1);
      Object.assign(merged, more);
      merged.properties = { ...merged.properties, ...properties };
      merged.required = [...(merged.required ?? []), ...required];
    }
    return merged;
  }
  return schema;
}

/**
 * Decode a step of a JSON Pointer in a URI fragment (RFC 6901, section 6).
 * @param {string} step
 * @returns {string | null} null if it is malformed
 */
function memberName(step) {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return null;
  }
}

/** @param {Schema} schema */
export function typeText(schema) {
  if (Array.isArray(schema.enum)) return "one of";
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  return schema.format ?? schema.type ?? "JSON";
}

/** @param {Schema} schema */
export function boundsText(schema) {
  const { minimum, maximum } = schema;
  if (minimum !== undefined && maximum !== undefined) return `${minimum} to ${maximum}`;
  if (minimum !== undefined) return `${minimum} or more`;
  return maximum === undefined ? "" : `${maximum} or less`;
}

const MOST_CHECKS = 2_000; // a schema may be made to need any number of them

/**
 * Return whether a value is of a schema's kind, as far as it takes to choose a variant.
 * @param {unknown} value
 * @param {Schema} given
 * @param {Schema} root
 * @param {{left: number}} [checks]
 * @param {number} [depth]
 * @returns {boolean}
 */
export function fits(value, given, root, checks = { left: MOST_CHECKS }, depth = 0) {
  if (depth > DEEPEST || checks.left-- <= 0) return true;
  const schema = resolve(given, root);
  if ("const" in schema) return isSame(value, schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.some((each) => isSame(value, each));
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) return false;
  /** @param {unknown} inner @param {unknown} part */
  const partFits = (inner, part) =>
    typeof part !== "object" || part === null || fits(inner, part, root, checks, depth + 1);
  for (const variants of [schema.anyOf, schema.oneOf])
    if (Array.isArray(variants) && !variants.some((each) => partFits(value, each))) return false;
  if (Array.isArray(value)) {
    const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
    return value.every((each, index) => partFits(each, first[index] ?? schema.items));
  }
  return typeof value !== "object" || value === null
    ? true
    : membersFit(/** @type {Record<string, unknown>} */ (value), schema, partFits);
}

/**
 * @param {Record<string, unknown>} value
 * @param {Schema} schema
 * @param {(inner: unknown, part: unknown) => boolean} partFits
 */
function membersFit(value, schema, partFits) {
  const required = /** @type {string[]} */ (schema.required ?? []);
  const properties = /** @type {Record<string, Schema>} */ (schema.properties ?? {});
  return (
    required.every((name) => Object.hasOwn(value, name)) &&
    Object.entries(value).every(([name, inner]) => {
      if (Object.hasOwn(properties, name)) return partFits(inner, properties[name]);
      return schema.additionalProperties !== false && partFits(inner, schema.additionalProperties);
    })
  );
}

/**
 * @param {unknown} value
 * @param {string} type
 */
function isOfType(value, type) {
  if (type === "integer") return Number.isInteger(value);
  if (value === null) return type === "null";
  return type === (Array.isArray(value) ? "array" : typeof value);
}

/**
 * @param {unknown} value
 * @param {unknown} other
 */
function isSame(value, other) {
  return JSON.stringify(value) === JSON.stringify(other);
}
