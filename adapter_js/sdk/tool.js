/** @import { z } from "zod" */
/** @import { ToolDefinition } from "./shapes.js" */

/**
 * How far a tool has got. Everything is optional: even an empty report resets the timer that ends
 * silent calls.
 *
 * @typedef {object} ProgressOptions
 * @property {number | undefined} [progress] how much is done; should increase
 * @property {number | undefined} [total] how much there is in total, in the unit of `progress`
 * @property {string | undefined} [message] what is being done, for users; truncated at 4096
 *   characters
 */

/**
 * The second argument of a handler.
 *
 * @typedef {object} ToolHandlerContext
 * @property {(options?: ProgressOptions) => void} reportProgress
 *   Reports progress to the caller. Never throws, and never blocks.
 * @property {AbortSignal} signal
 *   Fires when the call is cancelled, times out or loses its page; `signal.reason` says which. Pass it on to
 *   `fetchJSON`, `sleep`, `waitForSelector` and so on, so that they stop too.
 */

/**
 * Defines a tool. Returns its argument unchanged, with the types of `params` and of the result
 * inferred from the schemas.
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
