/**
 * A value as plain JSON data of bounded size. Whatever it is, it can be shown: cycles, getters that
 * throw, proxies, nodes. What JSON has no word for is named in brackets.
 *
 * @param {unknown} value
 * @returns {unknown}
 */
export declare function serialise(value: unknown): unknown;
export type Walk = {
    above: object[];
    left: number;
};
