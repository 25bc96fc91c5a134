// What a tool infers from its schemas, and what the types reject.

import type { ProgressOptions, ToolDefinition, ToolHandlerContext } from "@opentabs-dev/plugin-sdk";
import { defineTool, fetchJSON, postJSON, ToolError } from "@opentabs-dev/plugin-sdk";
import { z } from "zod";
import { type Equal, is } from "./equal.js";

const input = z.object({ id: z.string() });
const output = z.object({ ok: z.boolean() });
const base = { name: "a_tool", description: "Does something" };

// --- as an arrow function, with pages of answers and progress ---

export const listOrders = defineTool({
  name: "list_orders",
  displayName: "List Orders",
  description: "List all orders of a customer",
  summary: "List orders",
  icon: "list",
  group: "Orders",
  annotations: { readOnlyHint: true },
  input: z.object({
    customerId: z.string().describe("Whose orders"),
    limit: z.number().int().default(100),
    since: z.iso.datetime().optional(),
  }),
  output: z.object({
    orders: z.array(z.object({ id: z.string(), cents: z.number() })),
    total: z.number(),
  }),
  handle: async (params, context) => {
    is<Equal<typeof params, { customerId: string; limit: number; since?: string | undefined }>>(
      true,
    );
    is<Equal<typeof context, ToolHandlerContext | undefined>>(true);
    const orders: { id: string; cents: number }[] = [];
    let cursor: string | undefined;
    let page = 0;
    do {
      const result = await fetchJSON<{
        orders: { id: string; cents: number }[];
        next?: string;
        pages: number;
      }>(`/api/customers/${params.customerId}/orders?cursor=${cursor ?? ""}`);
      if (!result) throw ToolError.internal("The answer is empty");
      orders.push(...result.orders);
      cursor = result.next;
      page++;
      context?.reportProgress({ progress: page, total: result.pages, message: `Page ${page}` });
    } while (cursor);
    return { orders, total: orders.length };
  },
});

// --- as a method ---

export const addNote = defineTool({
  name: "add_note",
  description: "Add a note to an order",
  input: z.object({ orderId: z.string(), text: z.string() }),
  output: z.object({ ok: z.boolean() }),

  async handle(params, context?: ToolHandlerContext) {
    is<Equal<typeof params, { orderId: string; text: string }>>(true);
    const { orderId, text } = params;
    const result = await postJSON<{ ok: boolean }>(
      `/api/orders/${orderId}/notes`,
      { text },
      { signal: context?.signal },
    );
    return { ok: result?.ok ?? false };
  },
});

is<Equal<Parameters<typeof addNote.handle>[0], { orderId: string; text: string }>>(true);
addNote.handle({ orderId: "1", text: "" }); // a unit test passes no context

// --- every kind of object, sync and without parameters ---

defineTool({ ...base, input, output, handle: () => ({ ok: true }) });
defineTool({ ...base, input, output, handle: ({ id }) => ({ ok: id === "" }) });
defineTool({ ...base, input: z.object({}), output: z.void(), handle: async () => {} });
defineTool({ ...base, input, output: z.array(z.string()), handle: async ({ id }) => [id] });
defineTool({
  ...base,
  input: z.strictObject({ n: z.number() }),
  output,
  handle: ({ n }) => ({ ok: n > 0 }),
});
defineTool({
  ...base,
  input: z.looseObject({ n: z.number() }),
  output,
  handle: ({ n }) => ({ ok: n > 0 }),
});
defineTool({
  ...base,
  input: input.extend({ n: z.number() }),
  output,
  handle: ({ id, n }) => ({ ok: id.length === n }),
});
defineTool({
  ...base,
  input: input.partial().catchall(z.number()),
  output,
  handle: ({ id }) => ({ ok: id === undefined }),
});
defineTool({
  ...base,
  input: z.object({ from: z.number(), to: z.number() }).refine(({ from, to }) => from < to),
  output,
  handle: ({ from, to }) => ({ ok: to - from > 1 }),
});

// --- many in one array ---

export const tools: ToolDefinition[] = [listOrders, addNote];
const mixed = [listOrders, addNote];
export const alsoTools: readonly ToolDefinition[] = mixed;

// --- what a context accepts ---

export function report({ reportProgress, signal }: ToolHandlerContext): AbortSignal {
  reportProgress();
  reportProgress({});
  reportProgress({ progress: 1 });
  reportProgress({ progress: 1, total: undefined, message: undefined });
  const options: ProgressOptions = { message: "Half" };
  reportProgress(options);
  // @ts-expect-error a report is an object
  reportProgress("half");
  // @ts-expect-error numbers are numbers
  reportProgress({ progress: "1" });
  // @ts-expect-error a name that is not known
  reportProgress({ percent: 50 });
  return signal;
}

// --- what is rejected ---

// @ts-expect-error no description
defineTool({ name: "a_tool", input, output, handle: () => ({ ok: true }) });

// @ts-expect-error no name
defineTool({ description: "", input, output, handle: () => ({ ok: true }) });

// @ts-expect-error no input
defineTool({ ...base, output, handle: () => ({ ok: true }) });

// @ts-expect-error no output
defineTool({ ...base, input, handle: () => ({ ok: true }) });

// @ts-expect-error no handler
defineTool({ ...base, input, output });

// @ts-expect-error a field that does not exist
defineTool({ ...base, input, output, handel: 1, handle: () => ({ ok: true }) });

// @ts-expect-error an input that is not an object
defineTool({ ...base, input: z.string(), output, handle: () => ({ ok: true }) });

// @ts-expect-error an input that is not a schema
defineTool({ ...base, input: { id: "string" }, output, handle: () => ({ ok: true }) });

// @ts-expect-error a result of another type
defineTool({ ...base, input, output, handle: () => ({ ok: "yes" }) });

// @ts-expect-error a result of another type, later
defineTool({ ...base, input, output, handle: async () => ({ ok: "yes" }) });

// @ts-expect-error no result
defineTool({ ...base, input, output, handle: async () => {} });

// @ts-expect-error a parameter of another type
defineTool({ ...base, input, output, handle: (params: { id: number }) => ({ ok: !!params.id }) });

defineTool({
  ...base,
  input,
  output,
  // @ts-expect-error a parameter that the schema does not have
  handle: ({ name }) => ({ ok: name === "" }),
});

defineTool({
  ...base,
  input,
  output,
  handle: async (_params, context) => {
    // @ts-expect-error there is no context in a unit test
    context.reportProgress();
    return { ok: true };
  },
});

defineTool({
  ...base,
  // @ts-expect-error a hint that is not a boolean
  annotations: { readOnlyHint: "yes" },
  input,
  output,
  handle: () => ({ ok: true }),
});

// @ts-expect-error an argument of another type
addNote.handle({ orderId: 1, text: "" });
