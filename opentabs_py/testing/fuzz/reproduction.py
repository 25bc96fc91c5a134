"""The test that reproduces a broken promise, as text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opentabs_py.testing.fuzz.values import quoted, source


@dataclass(frozen=True, slots=True)
class FuzzedTool:
    """A tool, and where it was called.

    Attributes:
        name: Its MCP name.
        plugin: The plugin whose start page was open; None if the test opened another page.
        url: That other page; None if the tool needs none.
    """

    name: str
    plugin: str | None = None
    url: str | None = None


def reproduction(tool: FuzzedTool, arguments: Any, options: Mapping[str, Any]) -> str:
    """Return a test that checks the same promise, ready to run.

    Args:
        tool: The tool.
        arguments: The arguments to check; None to draw them again.
        options: Those of `expect_contract` that differ from its own defaults.
    """
    name = re.sub(r"\W", "_", tool.name)
    lines: list[str] = []
    if tool.plugin is not None:
        lines += [f"    opentabs.open_start_page({quoted(tool.plugin)})", ""]
    elif tool.url is not None:
        lines += [
            "    # Set up the page as the test does that found this.",
            f"    opentabs.page.goto({quoted(tool.url)})",
            "",
        ]
    handle = f"opentabs.tool({quoted(tool.name)})"
    given = [f"{option}={source(value, 8)}" for option, value in options.items()]
    if arguments is not None:
        given.insert(0, source(arguments, 8))
    line = f"    expect_contract({', '.join([handle, *given])})"
    if len(line) > 88 or "\n" in line:
        parts = [each.replace("\n", "\n        ") for each in (handle, *given)]
        line = "\n".join(["    expect_contract(", *(f"        {part}," for part in parts), "    )"])
    body = "\n".join([*lines, line])
    return (
        "from opentabs_py.testing import SyncOpenTabs, expect_contract\n\n\n"
        f"def test_{name}_keeps_its_contract(opentabs: SyncOpenTabs) -> None:\n{body}\n"
    )
