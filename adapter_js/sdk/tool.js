/** @import { z } from "zod" */
/** @import { ToolDefinition } from "./shapes.js" */

/**
 * How far a tool has come. Everything is optional: a report with nothing still says that the tool
 * is alive, and resets the time after which a silent call ends.
 *
 * @typedef {object} ProgressOptions
 * @property {number | undefined} [progress] how much is done; should grow
 * @property {number | undefined} [total] how much there is, in the unit of `progress`
 * @property {string | undefined} [message] what is being done, for people; cut at 4096 characters
 */

/**
 * What a handler is given beside its parameters.
 *
 * @typedef {object} ToolHandlerContext
 * @property {(options?: ProgressOptions) => void} reportProgress
 *   Tells the caller how far the tool has come. Never throws and never waits.
 * @property {AbortSignal} signal
 *   Fires when the call was cancelled or timed out; `signal.reason` says which. Pass it on to
 *   `fetchJSON`, `sleep`, `waitForSelector` and the like, so that they stop too.
 */

/**
 * Defines a tool. It gives back what it is given: what it adds are the types of `params` and of
 * the result, which follow from the schemas.
 *
 * @example
 * export const sendMessage = defineTool({
 *   name: "send_message",
 *   description: "Send a message to a channel",
 *   icon: "message-square",
 *   input: z.object({ channel: z.string(), text: z.string() }),
 *   output: z.object({ ok: z.boolean() }),
 *   handle: async ({ channel, text }, context) => {
 *     await postJSON(`/api/channels/${channel}`, { text }, { signal: context?.signal });
 *     return { ok: true };
 *   },
 * });
 *
 * @template {z.ZodObject} Input
 * @template {z.ZodType} Output
 * @param {ToolDefinition<Input, Output>} tool
 * @returns {ToolDefinition<Input, Output>}
 */
export function defineTool(tool) {
  return tool;
}
