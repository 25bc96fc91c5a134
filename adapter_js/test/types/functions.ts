// The parameter and return types of the SDK's functions, where they say more than the names.

import {
  definePreScript,
  type ErrorCategory,
  fetchFromPage,
  fetchJSON,
  type getAuthCache,
  getConfig,
  type getPageGlobal,
  type getPreScriptValue,
  log,
  postForm,
  postJSON,
  type querySelectorAll,
  retry,
  sleep,
  stripUndefined,
  ToolError,
  type ToolHandlerContext,
  waitForSelector,
  waitUntil,
} from "@opentabs-dev/plugin-sdk";
import type { definePreScript as fromItsOwnModule } from "@opentabs-dev/plugin-sdk/pre-script";
import { z } from "zod";
import { type Equal, is } from "./equal.js";

interface User {
  id: string;
  name?: string;
}

export async function answers(context?: ToolHandlerContext): Promise<void> {
  const signal = context?.signal;

  const untyped = await fetchJSON("/api/me");
  is<Equal<typeof untyped, unknown>>(true);
  const typed = await fetchJSON<User>("/api/me", { signal, timeout: 5000 });
  is<Equal<typeof typed, User | undefined>>(true);
  const checked = await fetchJSON("/api/me", undefined, z.object({ id: z.string() }));
  is<Equal<typeof checked, { id: string }>>(true);
  const posted = await postJSON("/api/me", { a: 1 }, {}, z.array(z.number()));
  is<Equal<typeof posted, number[]>>(true);
  const sent = await postForm<User>(new URL("https://a.example/"), { tag: ["a", "b"], page: 1 });
  is<Equal<typeof sent, User | undefined>>(true);
  const response = await fetchFromPage("/", { headers: { a: "b" }, method: "HEAD" });
  is<Equal<typeof response, Response>>(true);

  // @ts-expect-error an answer may be empty
  typed.id;
  // @ts-expect-error a limit is a number
  fetchJSON("/api/me", { timeout: "5 s" });
  // @ts-expect-error a form has fields
  postForm("/api/me", "a=b");
  // @ts-expect-error the schema returns another type
  fetchJSON<User>("/api/me", {}, z.string());

  const attempt = await retry(async (count) => `${count.toFixed()}`, { signal, backoff: 1.5 });
  is<Equal<typeof attempt, string>>(true);
  await retry(() => 1, { maxAttempts: 2, delay: 10, maxDelay: 100, backoff: true });
  await sleep(10, { signal });
  await waitUntil(() => document.title !== "", { interval: 50, timeout: 1000, signal });
  const button = await waitForSelector<HTMLButtonElement>("button", { visible: true, signal });
  is<Equal<typeof button, HTMLButtonElement>>(true);
}

is<Equal<ReturnType<typeof querySelectorAll<HTMLLinkElement>>, HTMLLinkElement[]>>(true);
is<Equal<ReturnType<typeof getAuthCache<User>>, User | null>>(true);
is<Equal<ReturnType<typeof getPageGlobal>, unknown>>(true);
is<Equal<ReturnType<typeof getPreScriptValue<string>>, string | undefined>>(true);
export const site: string | undefined = getConfig("site");
export const anySetting: string | number | boolean | undefined = getConfig("other");

const body = stripUndefined({ a: 1, b: undefined as string | undefined });
is<Equal<typeof body.a, number>>(true);
export const withoutUndefined: { a: number; b?: string } = body;

const error = new ToolError("message", "CODE", { category: "auth", retryAfterMs: undefined });
is<Equal<typeof error.category, ErrorCategory | undefined>>(true);
is<Equal<typeof error.retryable, boolean>>(true);
ToolError.rateLimited("message", undefined, "CODE");
// @ts-expect-error a category that does not exist
new ToolError("message", "CODE", { category: "fatal" });
// @ts-expect-error an error has a code
new ToolError("message");
// @ts-expect-error fields are read
error.code = "OTHER";

log.warn("message", { any: "thing" }, Symbol("x"), 1n);
// @ts-expect-error there is no such level
log.trace("message");

definePreScript(({ set, log }) => {
  set("token", 1);
  log.info("kept");
  // @ts-expect-error a key is a string
  set(1, 1);
});
is<Equal<typeof definePreScript, typeof fromItsOwnModule>>(true);
