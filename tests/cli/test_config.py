"""What `opentabs config` prints starts the server when a client does as it says."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from opentabs_py.demo import demo_plugin_dir
from tests.cli.test_authoring import ENVIRONMENT, opentabs

KEYS = {
    "claude-code": "mcpServers",
    "claude-desktop": "mcpServers",
    "cursor": "mcpServers",
    "vscode": "servers",
}


def entry(client: str, *options: str, cwd: Path) -> dict[str, Any]:
    printed = opentabs("config", "--client", client, *options, cwd=cwd)
    assert printed.returncode == 0, printed.stderr
    document: dict[str, Any] = json.loads(printed.stdout)
    [(key, servers)] = document.items()
    assert key == KEYS[client]
    found: dict[str, Any] = servers["opentabs"]
    return found


@pytest.mark.parametrize("client", KEYS)
def test_every_client_is_told_the_whole_path_of_the_command_and_of_the_plugin(
    tmp_path: Path, client: str
) -> None:
    (tmp_path / "chat").mkdir()

    told = entry(client, "--plugin", "chat", "--profile", "here", "--headed", cwd=tmp_path)

    assert told["command"] == str(Path(sys.executable).parent / "opentabs")
    plugin, profile = str(tmp_path / "chat"), str(tmp_path / "here")
    assert told["args"] == [
        *("serve", "--stdio", "--plugin", plugin),
        *("--headed", "--profile", profile),
    ]


@pytest.mark.parametrize("client", ["claude-code", "cursor", "vscode"])
def test_a_server_that_runs_already_is_named_by_its_address(tmp_path: Path, client: str) -> None:
    told = entry(client, "--http", "http://127.0.0.1:8377/mcp", cwd=tmp_path)

    assert told["url"] == "http://127.0.0.1:8377/mcp"
    assert "command" not in told


@pytest.mark.parametrize(
    ("client", "variable"),
    [
        ("claude-code", "${OPENTABS_TOKEN}"),
        ("cursor", "${env:OPENTABS_TOKEN}"),
        ("vscode", "${env:OPENTABS_TOKEN}"),
    ],
)
def test_a_token_is_named_and_never_written_down(
    tmp_path: Path, client: str, variable: str
) -> None:
    told = entry(client, "--http", "http://127.0.0.1:8377/mcp", "--token", cwd=tmp_path)

    assert told["headers"] == {"Authorization": f"Bearer {variable}"}


@pytest.mark.parametrize(
    "options",
    [
        ["--client", "emacs"],
        ["--client", "claude-desktop", "--http", "http://127.0.0.1:8377/mcp"],
        ["--client", "cursor", "--http", "http://127.0.0.1:8377/mcp", "--headed"],
        ["--client", "cursor", "--plugin", "nowhere"],
        ["--client", "cursor", "--token"],
        [],
    ],
)
def test_what_cannot_be_is_refused_with_the_code_for_usage(
    tmp_path: Path, options: list[str]
) -> None:
    assert opentabs("config", *options, cwd=tmp_path).returncode == 2


async def test_a_client_that_does_as_it_is_told_lists_the_tools(tmp_path: Path) -> None:
    told = entry("claude-desktop", "--plugin", str(demo_plugin_dir()), cwd=tmp_path)
    arguments = [*told["args"], "--browser", "none", "--port", "0"]
    server = StdioServerParameters(command=told["command"], args=arguments, env=ENVIRONMENT)

    async with Client(server) as client:
        listed = await client.list_tools()

    assert "demo_send_message" in [tool.name for tool in listed.tools]
