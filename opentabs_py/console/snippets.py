"""A call as code, to be copied: a test, a command, a program, a request."""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from pprint import pformat
from typing import Any, Final

from opentabs_py.config.fleet import FleetOptions

WIDTH: Final = 92
_NAME: Final = re.compile(r"\W+", re.ASCII)


def snippets(
    tool: str,
    arguments: Mapping[str, Any],
    *,
    plugin: Path | None,
    owner: str = "",
    fleet: FleetOptions | None = None,
    name: str,
) -> dict[str, str]:
    """Return the same call as each kind of code.

    Args:
        tool: The tool's MCP name.
        arguments: Its arguments: JSON.
        plugin: The directory of the tool's plugin; None if it has none here.
        owner: The plugin or Python module that the tool belongs to.
        fleet: The fleet whose tool it is.
        name: The name of the running server that commands should use.
    """
    return {
        "pytest": _pytest(tool, arguments, has_page=plugin is not None),
        "cli": _command(tool, arguments, name),
        "python": _program(tool, arguments, plugin, owner, fleet),
        "mcp": _request(tool, arguments),
    }


def _literal(value: object, indent: int) -> str:
    """Return a Python literal that may have several lines."""
    text = pformat(value, width=WIDTH - indent, sort_dicts=False)
    return text.replace("\n", "\n" + " " * indent)


def _pytest(tool: str, arguments: Mapping[str, Any], *, has_page: bool) -> str:
    function = _NAME.sub("_", tool).strip("_") or "tool"
    given = f", {_literal(dict(arguments), 8)}" if arguments else ""
    opening = "    opentabs.open_start_page()\n\n" if has_page else ""
    return f"""\
from opentabs_py.testing import expect


def test_{function}(opentabs):
{opening}    call = opentabs.start({tool!r}{given})

    expect(call).to_succeed()
"""


def _command(tool: str, arguments: Mapping[str, Any], name: str) -> str:
    words = ["opentabs", "call", tool, json.dumps(arguments, ensure_ascii=False)]
    if name != "default":
        words += ["--server", name]
    return shlex.join(words) + "\n"


def _program(
    tool: str,
    arguments: Mapping[str, Any],
    plugin: Path | None,
    owner: str,
    fleet: FleetOptions | None,
) -> str:
    names, options = "OpenTabs", "" if plugin is None else f"plugins=[{str(plugin)!r}]"
    if fleet is not None:
        options = f"nats={fleet.addresses!r}"  # without passwords
        if fleet.fleet != "default" or fleet.labels:
            names = "FleetOptions, OpenTabs"
            chosen = f"fleet={fleet.fleet!r}, labels={dict(fleet.labels)!r}"
            options = f"nats=FleetOptions({fleet.addresses!r}, {chosen})"
    given = f", {_literal(dict(arguments), 32)}" if arguments else ""
    opening = "" if plugin is None else f"        await tabs.open_start_page({owner!r})\n"
    return f"""\
import asyncio

from opentabs_py import {names}


async def main() -> None:
    async with OpenTabs({options}) as tabs:
{opening}        print(await tabs.call({tool!r}{given}))


asyncio.run(main())
"""


def _request(tool: str, arguments: Mapping[str, Any]) -> str:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    return json.dumps(request, indent=2, ensure_ascii=False) + "\n"
