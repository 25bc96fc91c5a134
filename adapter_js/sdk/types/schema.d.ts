/**
 * Validates a value: any schema of Zod or Zod Mini.
 *
 * @template T
 * @typedef {{parse(value: unknown): T}} Schema
 */
export type Schema<T> = {
    parse(value: unknown): T;
};
export type Issue = {
    path: PropertyKey[];
    message: string;
};
/** @typedef {{path: PropertyKey[], message: string}} Issue */
/**
 * @template T
 * @param {Schema<T>} schema
 * @param {unknown} value
 * @param {(issues: string) => Error} refuse creates the error for a value that does not match
 * @returns {Promise<T>} the value parsed by the schema, with its defaults
 */
export declare function parse<T>(schema: Schema<T>, value: unknown, refuse: (issues: string) => Error): Promise<T>;
