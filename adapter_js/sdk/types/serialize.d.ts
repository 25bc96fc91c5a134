/**
 * Converts any value to plain JSON data of bounded size, including cycles, getters that throw,
 * proxies and DOM nodes. Values that JSON cannot represent are described in brackets.
 *
 * @param {unknown} value
 * @returns {unknown}
 */
export declare function serialize(value: unknown): unknown;
export type Walk = {
    above: object[];
    left: number;
};
