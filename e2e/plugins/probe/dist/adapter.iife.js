(() => {
  const wait = (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal?.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    });

  // What tests read in the page: how often each key ran, and why each was aborted.
  // Tests write `released` themselves.
  const seen = { runs: {}, aborted: {}, released: {}, finished: {} };
  globalThis.probe = seen;

  const errors = {
    plain: () => new Error("something broke"),
    tool: () =>
      Object.assign(new Error("slow down"), {
        code: "RATE_LIMITED",
        category: "rate_limit",
        retryable: true,
        retryAfterMs: 1500,
      }),
    string: () => "just text",
    disguised: () => Object.assign(new Error("not the chain's fault"), { code: "TAB_NOT_FOUND" }),
    trap: () =>
      new Proxy(
        {},
        {
          get() {
            throw new Error("a trap");
          },
        },
      ),
  };

  const circular = {};
  circular.self = circular;
  const values = {
    circular: () => circular,
    bigint: () => ({ n: 1n }),
    response: async () => ({ data: { response: await fetch(location.href) } }),
    promise: () => [fetch(location.href)],
    element: () => ({ title: document.title, main: document.createElement("form") }),
    empty: () => {
      const made = document.createElement("a");
      return [made.dataset, made.classList, new Float32Array(), {}, new (class Empty {})()];
    },
    undefined: () => undefined,
    map: () => ({ map: new Map([["z", 1], ["a", new Set([1, 2])]]) }),
    deep: () => JSON.parse("[".repeat(5000) + "]".repeat(5000)),
    visibility: () => ({ visibility: document.visibilityState }),
    order: () => ({ z: 1, a: 2, m: 3 }),
    text: () => 'a "quoted" text: ☃ 😀 \ud800',
  };

  const tools = {
    echo: async ({ value }) => ({ value }),

    async run(params, context) {
      const { key = "", steps = [], result = null } = params;
      seen.params = params;
      seen.runs[key] = (seen.runs[key] ?? 0) + 1;
      seen.report = (report = {}) => context?.reportProgress(report);
      context?.signal.addEventListener("abort", () => {
        seen.aborted[key] = String(context.signal.reason?.message);
      });
      const flood = ({ flood: count = 0, size = 100 }) => {
        for (let i = 0; i < count; i++) {
          context?.reportProgress({ progress: i + 1, total: count, message: `report ${i + 1} of ${count}, ${"x".repeat(size)}` });
        }
      };
      for (const step of steps) {
        if (step.wait !== undefined) {
          await wait(step.wait, context?.signal);
        }
        while (step.until !== undefined && !(key in seen[step.until])) {
          await wait(5); // whatever its signal says
          flood(step);
        }
        if (step.log !== undefined) {
          const entries = [{ level: "warn", message: step.log, data: [], ts: Date.now() }];
          window.postMessage({ type: "opentabs:plugin-logs", plugin: "probe", entries, nonce: globalThis.__openTabs._logNonce }, "*");
        }
        if (step.report !== undefined) {
          context?.reportProgress(step.report);
        }
        if (step.hostile !== undefined) {
          for (const value of [undefined, null, 7, "x", { progress: Number.NaN }, { total: "3" }, { progress: 1, message: "m".repeat(5000) }, { get progress() { throw new Error("no"); } }]) {
            context?.reportProgress(value);
          }
        }
        if (step.until === undefined) {
          flood(step);
        }
        if (step.fetch !== undefined) {
          await fetch(step.fetch, { method: step.method, signal: context?.signal });
        }
        if (step.block !== undefined) {
          const until = performance.now() + step.block;
          while (performance.now() < until);
        }
      }
      seen.finished[key] = (seen.finished[key] ?? 0) + 1;
      return { key, result };
    },

    async fail({ kind }) {
      throw errors[kind]();
    },

    give: async ({ kind }) => values[kind](),

    big: async ({ size }) => ({ text: "0123456789abcde\u00e9".repeat(size / 16) }),

    // For tests that cannot access the page, because their server runs in another process.
    async await({ what, key }, context) {
      while (!(key in seen[what])) await wait(5, context?.signal);
      return { seen: seen[what][key] };
    },

    async log({ count }) {
      const entries = Array.from({ length: count }, (_, i) => ({ level: "warn", message: `log ${i}`, data: [], ts: Date.now() }));
      window.postMessage({ type: "opentabs:plugin-logs", plugin: "probe", entries, nonce: globalThis.__openTabs._logNonce }, "*");
      return {};
    },
  };

  const plugin = {
    name: "probe",
    tools: Object.entries(tools).map(([name, handle]) => ({ name, handle })),
    isReady: async () => document.body.dataset.ready !== "no",
    teardown() {
      document.body.dataset.tornDown = "yes";
    },
  };
  globalThis.__openTabs ??= {};
  globalThis.__openTabs.adapters ??= {};
  globalThis.__openTabs.adapters.probe = plugin;
})();
