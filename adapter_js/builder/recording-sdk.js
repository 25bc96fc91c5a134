/**
 * Replaces the SDK while a plugin is described: the same SDK, but it records where each tool was
 * defined, so that an error can name the file.
 */
import { defineTool as identity } from "../sdk/index.js";

export * from "../sdk/index.js";

/** @type {Map<unknown, string>} the stack at each call of `defineTool`, by the tool */
export const calls = new Map();

/** @type {typeof identity} */
export const defineTool = (tool) => {
  calls.set(tool, new Error().stack ?? "");
  return identity(tool);
};
