// The suite prints descriptions of what its scenarios require of these tools.
(() => {
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  const log = (message) => {
    const entries = [{ level: "info", message, data: [], ts: Date.now() }];
    const nonce = globalThis.__openTabs._logNonce;
    window.postMessage({ type: "opentabs:plugin-logs", plugin: "test", entries, nonce }, "*");
  };

  const tools = {
    simple_text: async () => "This is a simple text response for testing.",

    async error_handling() {
      throw new Error("This tool intentionally returns an error for testing");
    },

    async tool_with_progress(_params, context) {
      for (const progress of [0, 50, 100]) {
        context?.reportProgress({ progress, total: 100 });
        await wait(50);
      }
      return "Progress was reported.";
    },

    async tool_with_logging() {
      for (const message of ["started", "processing data", "completed"]) {
        log(`Tool execution ${message}`);
        await wait(50);
      }
      return "Logs were written.";
    },

    // Its client requested no logs, so it must not receive these.
    async logging_tool() {
      log("Nobody asked for this");
      await wait(50);
      return "A log was written.";
    },

    // Page tools cannot elicit; the scenario checks what else is in the response's stream.
    async streaming_elicitation(_params, context) {
      context?.reportProgress({ progress: 1, total: 1 });
      await wait(50);
      return "Nothing was asked.";
    },

    custom_header: async ({ region }) => `The region is ${region}.`,

    // The site rebuilds another plugin, which `opentabs serve` notices.
    async trigger_tool_change() {
      await fetch("/rebuild", { method: "POST" });
      return "A plugin was built.";
    },
  };

  globalThis.__openTabs ??= {};
  globalThis.__openTabs.adapters ??= {};
  globalThis.__openTabs.adapters.test = {
    tools: Object.entries(tools).map(([name, handle]) => ({ name, handle })),
    isReady: async () => true,
  };
})();
