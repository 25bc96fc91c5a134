/**
 * Validates a value: any schema of Zod or Zod Mini.
 *
 * @template T
 * @typedef {{parse(value: unknown): T}} Schema
 */

/** @typedef {{path: PropertyKey[], message: string}} Issue */

/**
 * @template T
 * @param {Schema<T>} schema
 * @param {unknown} value
 * @param {(issues: string) => Error} refuse creates the error for a value that does not match
 * @returns {Promise<T>} the value parsed by the schema, with its defaults
 */
export async function parse(schema, value, refuse) {
  const checker = /** @type {Schema<T> & {parseAsync?: (value: unknown) => Promise<T>}} */ (schema);
  try {
    return await (checker.parseAsync ? checker.parseAsync(value) : checker.parse(value));
  } catch (error) {
    const { issues } = /** @type {{issues?: Issue[]}} */ (error ?? {});
    throw Array.isArray(issues) ? refuse(issues.map(describe).join("; ")) : error;
  }
}

/** @param {Issue} issue */
function describe({ path, message }) {
  return path.length === 0 ? message : `${formatPath(path)}: ${message}`;
}

/** @param {PropertyKey[]} path as in `messages[0].text` */
function formatPath(path) {
  return path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .replace(/^\./, "");
}
