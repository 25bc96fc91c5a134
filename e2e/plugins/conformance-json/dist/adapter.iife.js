(() => {
  const tools = [{ name: "schema_2020_12_tool", handle: async (params) => params }];
  globalThis.__openTabs ??= {};
  globalThis.__openTabs.adapters ??= {};
  globalThis.__openTabs.adapters.json = { tools, isReady: async () => true };
})();
