"""Built plugins on disk."""

from pathlib import Path

from tests.fakes import a_tool, package_json, tools_json


def build(
    directory: Path,
    *,
    name: str = "chat",
    tools: str | None = None,
    script: bytes = b"/* adapter */",
) -> Path:
    """Write a built plugin."""
    (directory / "dist").mkdir(parents=True, exist_ok=True)
    (directory / "package.json").write_text(package_json(name))
    (directory / "dist" / "tools.json").write_text(tools or tools_json(a_tool("send")))
    (directory / "dist" / "adapter.iife.js").write_bytes(script)
    return directory
