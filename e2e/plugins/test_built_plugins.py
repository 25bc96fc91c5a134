"""Plugins built elsewhere run unchanged: we survive what their adapters do to the page."""

import json
from pathlib import Path

import anyio

from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.core.protocol import LogParams
from opentabs_py.session.session import OpenTabs

# The end of a file built by the ecosystem's tooling: the registry is created or replaced, hooks are
# wired by wrapping `handle`, and everything is frozen.
ADAPTER = """
(() => {
  document.body.dataset.NAME = "registered with a body";
  const log = [];
  const plugin = {
    name: "NAME",
    tools: [{ name: "whoami", handle: async (params, context) => {
      context?.reportProgress();
      return { plugin: "NAME", sees: Object.keys(globalThis.__openTabs.adapters).length };
    } }],
    isReady: () => Promise.resolve(true),
    teardown() {},
  };
  const existing = globalThis.__openTabs;
  const descriptor = existing && Object.getOwnPropertyDescriptor(existing, "adapters");
  if (descriptor && !descriptor.writable) {
    globalThis.__openTabs = { ...existing, adapters: { ...existing.adapters } };
  }
  globalThis.__openTabs ??= {};
  const registry = globalThis.__openTabs;
  registry.adapters ??= {};
  registry.adapters["NAME"]?.teardown();
  for (const tool of plugin.tools) {
    const { handle } = tool;
    tool.handle = async (...args) => {
      window.postMessage({ type: "opentabs:plugin-logs", plugin: "NAME", nonce: registry._logNonce,
        entries: [{ level: "info", message: "NAME called", data: [], ts: Date.now() }] }, "*");
      return handle(...args);
    };
    Object.freeze(tool);
  }
  Object.freeze(plugin.tools);
  Object.freeze(plugin);
  registry.adapters["NAME"] = plugin;
  Object.defineProperty(registry.adapters, "NAME", { writable: false, configurable: false });
  Object.defineProperty(registry, "adapters", { writable: false, configurable: false });
})();
"""


def build(directory: Path, name: str, *patterns: str) -> Path:
    (directory / "dist").mkdir(parents=True)
    about = {
        "displayName": name,
        "description": name,
        "urlPatterns": list(patterns or ["http://127.0.0.1/*"]),
        "someNewField": 1,
    }
    package = {"name": f"@acme/opentabs-plugin-{name}", "version": "2.0.0", "opentabs": about}
    tool = {
        "name": "whoami",
        "displayName": "Who am I",
        "description": "Say which plugin answers",
        "icon": "user",
        "input_schema": {"type": "object", "properties": {}},
        "output_schema": {"type": "object"},
    }
    (directory / "package.json").write_text(json.dumps(package))
    (directory / "dist" / "tools.json").write_text(json.dumps([tool]))  # as an old build has it
    adapter = ADAPTER.replace("dataset.NAME", f"dataset.{name}").replace("NAME", f"acme-{name}")
    (directory / "dist" / "adapter.iife.js").write_text(adapter)
    return directory


async def test_frozen_adapters_that_replace_the_registry_work_side_by_side(
    tmp_path: Path, site: str
) -> None:
    plugins = [build(tmp_path / name, name) for name in ("one", "two", "three")]
    async with OpenTabs(plugins=plugins, settings=load_settings(port=0)) as tabs:
        assert tabs.skipped_plugins == []
        await tabs.open(f"{site}/built")

        values = [await tabs.call(f"acme_{name}_whoami") for name in ("one", "two", "three")]

    assert [value["plugin"] for value in values] == ["acme-one", "acme-two", "acme-three"]


async def test_the_logs_of_a_built_plugin_arrive(tmp_path: Path, site: str) -> None:
    plugin = build(tmp_path / "one", "one")
    got: list[LogParams] = []
    logged = anyio.Event()

    def note(params: LogParams) -> None:
        got.append(params)
        logged.set()

    async with OpenTabs(plugins=[plugin], settings=load_settings(port=0)) as tabs:
        tabs.internals.bridge.on_log = note
        await tabs.open(f"{site}/built")
        await tabs.call("acme_one_whoami")
        with anyio.fail_after(PATIENT):
            await logged.wait()

    assert [(params.plugin, params.entries[0].message) for params in got] == [
        ("acme-one", "acme-one called")
    ]


async def test_a_plugin_whose_patterns_chrome_refuses_keeps_nobody_else_out(
    tmp_path: Path, site: str
) -> None:
    refused = build(tmp_path / "one", "one", "*://example.com:8000/*")
    plugins = [refused, build(tmp_path / "two", "two")]
    async with OpenTabs(plugins=plugins, settings=load_settings(port=0)) as tabs:
        await tabs.open(f"{site}/built")
        value = await tabs.call("acme_two_whoami")

        problems = [problem.plugin for problem in tabs.internals.bridge.plugin_sync.problems]

    assert value["plugin"] == "acme-two"
    assert problems == ["acme-one"]


async def test_a_plugin_follows_the_path_of_a_single_page_application(
    tmp_path: Path, site: str
) -> None:
    plugin = build(tmp_path / "one", "one", "http://127.0.0.1/inbox/*")
    async with OpenTabs(plugins=[plugin], settings=load_settings(port=0)) as tabs:
        page = await tabs.open(f"{site}/inbox/first")
        await tabs.call("acme_one_whoami")

        await page.evaluate("history.pushState({}, '', '/elsewhere')")
        with anyio.fail_after(PATIENT):
            while tabs.internals.bridge.tabs.serving("acme-one"):
                await tabs.internals.bridge.changed().wait()
        await page.evaluate("history.pushState({}, '', '/inbox/second')")
        with anyio.fail_after(PATIENT):
            document = await tabs.internals.bridge.wait_ready("acme-one")

    assert document.url == f"{site}/inbox/second"
