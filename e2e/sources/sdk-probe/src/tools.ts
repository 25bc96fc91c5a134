import * as sdk from "@opentabs-dev/plugin-sdk";
import { z } from "zod";

type Context = sdk.ToolHandlerContext | undefined;

/** One use of each function of the SDK, by name; each returns what the test expects. */
const uses: Record<string, (context: Context) => unknown> = {
  // --- fetch: the test's site answers /api/echo with what it was sent
  fetchFromPage: async () => (await sdk.fetchFromPage("/api/echo")).status,
  fetchJSON: async () =>
    (await sdk.fetchJSON("/api/echo", {}, z.object({ method: z.string(), cookie: z.string() })))
      .cookie,
  fetchText: () => sdk.fetchText("/api/text"),
  postJSON: () => sdk.postJSON("/api/echo", { a: 1 }),
  putJSON: () => sdk.putJSON("/api/echo", { a: 2 }),
  patchJSON: () => sdk.patchJSON("/api/echo", { a: 3 }),
  deleteJSON: () => sdk.deleteJSON("/api/echo"),
  postForm: () => sdk.postForm("/api/echo", { a: "b c", list: [1, 2] }),
  postFormData: async () => {
    const form = new FormData();
    form.append("file", new Blob(["text"]), "a.txt");
    const { type } = (await sdk.postFormData<{ type: string }>("/api/echo", form)) ?? {};
    return type?.split(";")[0];
  },
  httpStatusToToolError: () => {
    const { code, retryable } = sdk.httpStatusToToolError(new Response("", { status: 503 }), "no");
    return { code, retryable };
  },
  parseRetryAfterMs: () => sdk.parseRetryAfterMs("2"),
  parseRateLimitHeader: () =>
    sdk.parseRateLimitHeader(new Headers({ "x-ratelimit-remaining": "7" })).remaining,
  buildQueryString: () => sdk.buildQueryString({ q: "a b", tag: ["x", "y"], none: undefined }),
  stripUndefined: () => Object.keys(sdk.stripUndefined({ a: 1, b: undefined })),
  ToolError: () => {
    throw sdk.ToolError.rateLimited("slow down", 1500);
  },

  // --- what fetch() itself refuses
  "an invalid URL": () => sdk.fetchText("http://[::1"),
  "an invalid method": () => sdk.fetchFromPage("/api/text", { method: "B D" }),
  "an invalid header": () => sdk.fetchJSON("/api/text", { headers: { "a b": "c" } }),

  // --- the page
  waitForSelector: async () => {
    setTimeout(() => document.body.append(document.createElement("late-one")), 20);
    return (await sdk.waitForSelector("late-one", { timeout: 5000 })).localName;
  },
  waitForSelectorRemoval: async () => {
    setTimeout(() => document.querySelector("late-one")?.remove(), 20);
    await sdk.waitForSelectorRemoval("late-one", { timeout: 5000 });
    return document.querySelector("late-one");
  },
  querySelectorAll: () => sdk.querySelectorAll("li").map((item) => item.textContent),
  getTextContent: () => sdk.getTextContent("h1"),
  getMetaContent: () => sdk.getMetaContent("og:site_name"),
  observeDOM: () =>
    new Promise((resolve) => {
      const stop = sdk.observeDOM("ul", (mutations) => {
        stop();
        resolve(mutations.length);
      });
      document.querySelector("ul")?.append(document.createElement("li"));
    }),
  getPageGlobal: () => [sdk.getPageGlobal("APP.user.name"), sdk.getPageGlobal("APP.a.b")],
  getCurrentUrl: () => new URL(sdk.getCurrentUrl()).pathname,
  getPageTitle: () => sdk.getPageTitle(),

  // --- storage
  setLocalStorage: () => sdk.setLocalStorage("probe", "1"),
  getLocalStorage: () => sdk.getLocalStorage("probe"),
  findLocalStorageEntry: () => sdk.findLocalStorageEntry((key) => key.startsWith("pro")),
  removeLocalStorage: () => {
    sdk.removeLocalStorage("probe");
    return sdk.getLocalStorage("probe");
  },
  setSessionStorage: () => sdk.setSessionStorage("probe", "2"),
  getSessionStorage: () => sdk.getSessionStorage("probe"),
  removeSessionStorage: () => {
    sdk.removeSessionStorage("probe");
    return sdk.getSessionStorage("probe");
  },
  getCookie: () => sdk.getCookie("session"),
  setAuthCache: () => sdk.setAuthCache("probe", { token: "t" }),
  getAuthCache: () => sdk.getAuthCache("probe"),
  clearAuthCache: () => {
    sdk.clearAuthCache("probe");
    return sdk.getAuthCache("probe");
  },

  // --- timing
  sleep: (context) => sdk.sleep(1, { signal: context?.signal }),
  retry: () =>
    sdk.retry(
      (attempt) => {
        if (attempt < 3) throw sdk.ToolError.timeout("again");
        return attempt;
      },
      { delay: 1 },
    ),
  waitUntil: async () => {
    let looks = 0;
    await sdk.waitUntil(() => ++looks === 3, { interval: 1 });
    return looks;
  },

  // --- the host
  log: () => {
    const loop: Record<string, unknown> = {};
    loop["itself"] = loop;
    sdk.log.debug("a debug line", loop, document.body, () => 1, 10n, new Error("shown"));
    sdk.log.info("an info line");
    sdk.log.warn("a warning line");
    sdk.log.error("an error line");
  },
  getConfig: () => sdk.getConfig("colour"),
  notifyReadinessChanged: () => {
    document.body.dataset["signedOut"] = "";
    sdk.notifyReadinessChanged();
  },
  getPreScriptValue: () => sdk.getPreScriptValue("beforeThePage"),

  // --- those that every plugin uses already
  defineTool: () => sdk.defineTool(attempt) === attempt,
  definePreScript: () => typeof sdk.definePreScript,
  OpenTabsPlugin: () => typeof sdk.OpenTabsPlugin,
};

export const attempt = sdk.defineTool({
  name: "attempt",
  description: "Use one function of the SDK",
  input: z.object({ what: z.string() }),
  output: z.object({ value: z.unknown() }),
  handle: async ({ what }, context) => {
    const use = uses[what];
    if (use === undefined) throw sdk.ToolError.notFound(`no use of ${what}`);
    return { value: (await use(context)) ?? null };
  },
});

export const names = sdk.defineTool({
  name: "names",
  description: "List what the SDK exports",
  input: z.object({}),
  output: z.object({ names: z.array(z.string()) }),
  handle: () => ({ names: Object.keys(sdk).sort() }),
});

export const sum = sdk.defineTool({
  name: "sum",
  description: "Add up; shows what Zod makes of the arguments",
  input: z.object({
    numbers: z.array(z.number()).refine((all) => !all.includes(13), "no thirteen, please"),
    start: z.number().default(100),
  }),
  output: z.object({ sum: z.number() }),
  handle: async ({ numbers, start }, context) => {
    let total = start;
    for (const [index, number] of numbers.entries()) {
      total += number;
      context?.reportProgress({ progress: index + 1, total: numbers.length });
    }
    return { sum: total };
  },
});

function textOf(selector: string) {
  const element = document.querySelector(selector) as Element;
  return element.textContent ?? "";
}

export const broken = sdk.defineTool({
  name: "broken",
  description: "Read what is not in the page, which throws",
  input: z.object({}),
  output: z.object({ text: z.string() }),
  handle: async () => ({ text: textOf("#not-there") }),
});

export const wrapped = sdk.defineTool({
  name: "wrapped",
  description: "Fail with an error that has a cause",
  input: z.object({}),
  output: z.object({ text: z.string() }),
  async handle() {
    try {
      return { text: textOf("#not-there") };
    } catch (cause) {
      throw new sdk.ToolError("There is no text.", "NO_TEXT", { cause });
    }
  },
});
