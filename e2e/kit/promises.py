"""A plugin whose tools each break one promise for some inputs, or none once fixed."""

import json
import shutil
from pathlib import Path
from typing import Any

# What each tool does before it returns {n}; `broken` says whether it breaks its promise.
TOOLS = {
    "keeps_all": "await pause(n % 3, signal); report(1); report(2);",
    "returns_text": "if (broken && n > 100) return { n: String(n) };",
    "throws": "if (broken && n > 20) undefined.field;",
    "makes_up_a_code": "if (broken && n > 5) throw { code: 'ODD', message: 'no' };",
    "documents_its_code": "if (n > 5) throw { code: 'TOO_MANY', message: 'no' };",
    "goes_back": "for (let i = 0; i < n; i++) report(broken && i > 3 ? 2 : i);",
    "is_deaf": "await pause(n, broken ? undefined : signal);",
    "fetches": "if (broken && n > 10) await fetch('http://127.0.0.9:47/').catch(() => {});",
    "breaks_when_cancelled": """
      if (window.gone) throw new Error("the page is broken");
      signal.addEventListener("abort", () => { window.gone = broken; });
      await pause(800, signal); // longer than a busy machine takes to cancel it
    """,
    "affects_others": """
      if (!window.isWarm) await pause(200, signal); // as the first call of a page may be
      window.isWarm = true;
      if (window.isBroken) throw new Error("broken by an earlier call");
      if (broken && n > 50) window.isBroken = true;
    """,
    "breaks_the_page": """
      await pause(120, signal); // so slow that no second call follows each
      if (window.hasBroken) undefined.field;
      window.hasBroken = broken && n > 50;
    """,
    "never_ends": "if (broken && n > 30) await pause(3_600_000, signal);",
    "writes": "",  # it has no readOnlyHint
}
_ADAPTER = """
(() => {
  const broken = BROKEN;
  const pause = (ms, signal) => new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
  });
  const tools = {
    HANDLERS
  };
  globalThis.__openTabs ??= {};
  (globalThis.__openTabs.adapters ??= {})["NAME"] = {
    tools: Object.entries(tools).map(([name, handle]) => ({ name, handle })),
    isReady: async () => true,
  };
})();
"""
NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": 1000}


def write_promises(
    directory: Path, *names: str, broken: bool = True, read_only: bool = True
) -> Path:
    """Write a built plugin with some of the tools; its name is its directory's."""
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "dist").mkdir(parents=True)
    (directory / "playground").mkdir()
    (directory / "playground" / "index.html").write_text("<!doctype html><title>Try it</title>")
    about = {
        "displayName": directory.name,
        "description": "Tools that break a promise",
        "urlPatterns": ["http://127.0.0.1/*"],
    }
    package = {"name": f"opentabs-plugin-{directory.name}", "version": "1.0.0", "opentabs": about}
    (directory / "package.json").write_text(json.dumps(package))
    handlers = "\n".join(
        f"async {name}({{ n }}, {{ signal, reportProgress }}) {{\n"
        "const report = (progress) => reportProgress({ progress });\n"
        f"{TOOLS[name]}\nreturn {{ n }};\n}},"
        for name in names
    )
    adapter = _ADAPTER.replace("BROKEN", json.dumps(broken)).replace("HANDLERS", handlers)
    (directory / "dist" / "adapter.iife.js").write_text(adapter.replace("NAME", directory.name))
    described = [_described(name, read_only=read_only and name != "writes") for name in names]
    (directory / "dist" / "tools.json").write_text(json.dumps({"tools": described}))
    return directory


def _described(name: str, *, read_only: bool) -> dict[str, Any]:
    return {
        "name": name,
        "displayName": name,
        "description": "Return a number. Fails with TOO_MANY above 5.",
        "annotations": {"readOnlyHint": read_only},
        "input_schema": {
            "type": "object",
            "properties": {"n": NUMBER},
            "required": ["n"],
            "additionalProperties": False,
        },
        "output_schema": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        },
    }
