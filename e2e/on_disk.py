"""Plugins that tests write and rewrite, in all forms of built plugins."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Its tools return `VERSION`. Its lifecycle is recorded on the window, which a reload of the page
# would clear.
_TOOLS = """
  const note = (what) => (window.notes ??= []).push(`${what} VERSION`);
  const config = { ...globalThis.__openTabs.pluginConfig };
  const handlers = {
    version: () => ({ version: "VERSION" }),
    config: () => ({ config }),
    where: (params) => ({ url: location.href, params }),
    wait: async (_params, context) => {
      note("waits in");
      context.reportProgress({ message: "waiting" });
      await new Promise((resolve) => { window.release = resolve; });
      return { version: "VERSION" };
    },
  };
  const plugin = {
    tools: TOOLS.map((name) => ({ name, handle: async (...args) => handlers[name](...args) })),
    isReady: async () => true,
    teardown() { note("torn down"); TEARDOWN },
  };
  note("came");
"""

PLAIN = f"""
(() => {{
  globalThis.__openTabs ??= {{}};
  {_TOOLS}
  (globalThis.__openTabs.adapters ??= {{}})["NAME"] = plugin;
}})();
"""

# The end of a file built by the ecosystem's tooling: it tears down an old adapter itself, replaces
# what is frozen, and then freezes everything.
BUILT = f"""
(() => {{
  const existing = globalThis.__openTabs;
  const descriptor = existing && Object.getOwnPropertyDescriptor(existing, "adapters");
  if (descriptor && !descriptor.writable) {{
    globalThis.__openTabs = {{ ...existing, adapters: {{ ...existing.adapters }} }};
  }}
  globalThis.__openTabs ??= {{}};
  {_TOOLS}
  const registry = globalThis.__openTabs;
  registry.adapters ??= {{}};
  registry.adapters["NAME"]?.teardown();
  plugin.tools.forEach(Object.freeze);
  Object.freeze(plugin.tools);
  Object.freeze(plugin);
  registry.adapters["NAME"] = plugin;
  Object.defineProperty(registry.adapters, "NAME", {{ writable: false, configurable: false }});
  Object.defineProperty(registry, "adapters", {{ writable: false, configurable: false }});
}})();
"""


def write_plugin(
    directory: Path,
    version: str = "1",
    *,
    form: str = BUILT,
    tools: Sequence[str] = ("version", "wait"),
    patterns: Sequence[str] = ("http://127.0.0.1/*",),
    excluded: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    pre_script: str | None = None,
    teardown: str = "",
    icon: str | None = None,
) -> Path:
    """Write or rewrite a built plugin; its name is that of its directory."""
    name = directory.name
    dist = directory / "dist"
    dist.mkdir(parents=True, exist_ok=True)
    about = {
        "displayName": name,
        "description": name,
        "urlPatterns": list(patterns),
        "excludePatterns": list(excluded),
        "configSchema": dict(settings or {}),
        **({} if icon is None else {"iconSvg": icon}),
    }
    package = {"name": f"opentabs-plugin-{name}", "version": "1.0.0", "opentabs": about}
    listed: dict[str, Any] = {
        "tools": [
            {
                "name": tool,
                "displayName": tool,
                "description": f"Tell the {tool}",
                "input_schema": {"type": "object", "properties": {}},
                "output_schema": {"type": "object"},
            }
            for tool in tools
        ]
    }
    if pre_script is not None:
        _replace(dist / "pre-script.iife.js", pre_script)
        listed["preScriptFile"] = "pre-script.iife.js"
    adapter = form.replace("TOOLS", json.dumps(list(tools))).replace("TEARDOWN", teardown)
    adapter = adapter.replace("VERSION", version).replace("NAME", name)
    _replace(dist / "adapter.iife.js", adapter)
    _replace(dist / "tools.json", json.dumps(listed))
    _replace(directory / "package.json", json.dumps(package))
    return directory


def delete_plugin(directory: Path) -> None:
    """Remove a plugin's directory."""
    shutil.rmtree(directory)


def change(file: Path, old: str, new: str) -> None:
    """Replace a text in a file; it must be there."""
    text = file.read_text()
    assert old in text
    _replace(file, text.replace(old, new))


def _replace(file: Path, text: str) -> None:
    """Write a file at once, so that what watches it sees no half of it."""
    aside = file.with_name(f".{file.name}")
    aside.write_text(text)
    aside.replace(file)
