"""The test that reproduces a broken promise, as text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opentabs_py.testing.fuzz.values import quoted, source


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a tool was called.

    Attributes:
        tool: Its MCP name.
        plugin: The plugin whose start page was open; None if the test opened another page.
        url: That other page; None if the tool needs none.
    """

    tool: str
    plugin: str | None = None
    url: str | None = None


def reproduction(setting: Setting, arguments: Any, options: Mapping[str, Any]) -> str:
    """Return a test that checks the same promise, ready to run.

    Args:
        setting: Where the tool was called.
        arguments: The arguments to check; None to draw them again.
        options: Those of `expect_contract` that differ from its own defaults.
    """
    name = re.sub(r"\W", "_", setting.tool)
    lines: list[str] = []
    if setting.plugin is not None:
        lines += [f"    opentabs.open_start_page({quoted(setting.plugin)})", ""]
    elif setting.url is not None:
        lines += [
            "    # Set up the page as the test does that found this.",
            f"    opentabs.page.goto({quoted(setting.url)})",
            "",
        ]
    tool = f"opentabs.tool({quoted(setting.tool)})"
    given = [f"{option}={source(value, 8)}" for option, value in options.items()]
    if arguments is not None:
        given.insert(0, source(arguments, 8))
    line = f"    expect_contract({', '.join([tool, *given])})"
    if len(line) > 88 or "\n" in line:
        parts = [each.replace("\n", "\n        ") for each in (tool, *given)]
        line = "\n".join(["    expect_contract(", *(f"        {part}," for part in parts), "    )"])
    body = "\n".join([*lines, line])
    return (
        "from opentabs_py.testing import SyncOpenTabs, expect_contract\n\n\n"
        f"def test_{name}_keeps_its_contract(opentabs: SyncOpenTabs) -> None:\n{body}\n"
    )
