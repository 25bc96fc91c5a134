"""A client that follows the output of `opentabs config` starts the server."""

import ast
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from opentabs_py.demo import demo_plugin_dir
from tests.cli.in_process import opentabs_here
from tests.cli.test_authoring import ENVIRONMENT

KEYS = {
    "claude-code": "mcpServers",
    "claude-desktop": "mcpServers",
    "inspector": "mcpServers",
    "cursor": "mcpServers",
    "vscode": "servers",
}


PYTHON = ["openai-agents", "google-adk", "autogen", "llama-index"]
JAVASCRIPT = ["typescript-sdk", "typescript-sdk-1", "langchain-js", "mastra"]
RUNNING = ["--http", "http://127.0.0.1:8377/mcp"]


def block(client: str, *options: str, cwd: Path) -> str:
    printed = opentabs_here("config", "--client", client, *options, cwd=cwd)
    assert printed.returncode == 0, printed.stderr
    return printed.stdout


def entry(client: str, *options: str, cwd: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(block(client, *options, cwd=cwd))
    [(key, servers)] = document.items()
    assert key == KEYS[client]
    found: dict[str, Any] = servers["opentabs"]
    return found


def test_an_unknown_client_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    refused = opentabs_here("config", "--client", "bogus", cwd=tmp_path)
    assert refused.returncode == 2
    said = " ".join(refused.stderr.replace("│", " ").split())
    assert "Invalid value for '--client': 'bogus' is not one of 'claude-code'," in said


@pytest.mark.parametrize("client", KEYS)
def test_every_block_has_the_absolute_path_of_the_command_and_of_the_plugin(
    tmp_path: Path, client: str
) -> None:
    (tmp_path / "chat").mkdir()

    told = entry(client, "--plugin", "chat", "--profile", "./here", "--headed", cwd=tmp_path)

    assert told["command"] == str(Path(sys.executable).parent / "opentabs")
    plugin, profile = str(tmp_path / "chat"), str(tmp_path / "here")
    assert told["args"] == [
        *("serve", "--stdio", "--plugin", plugin),
        *("--headed", "--profile", profile),
    ]


def test_the_plugin_of_the_current_directory_is_in_the_block(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"opentabs": {}}')

    told = entry("cursor", cwd=tmp_path)

    assert told["args"] == ["serve", "--stdio", "--plugin", str(tmp_path)]


def test_a_block_whose_browser_opens_no_page_comes_with_a_warning(tmp_path: Path) -> None:
    plugin = ["--client", "cursor", "--plugin", str(demo_plugin_dir())]

    without = opentabs_here("config", *plugin, cwd=tmp_path)
    with_page = opentabs_here("config", *plugin, "--open", "http://127.0.0.1:9/", cwd=tmp_path)

    assert "Add --open URL" in " ".join(without.stderr.split())
    assert "Add --open URL" not in with_page.stderr


def test_a_block_with_a_plugin_that_is_not_built_comes_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "chat" / "src").mkdir(parents=True)
    (tmp_path / "chat" / "package.json").write_text('{"opentabs": {}}')
    (tmp_path / "chat" / "src" / "index.ts").touch()

    printed = opentabs_here("config", "--client", "cursor", "--plugin", "chat", cwd=tmp_path)

    assert printed.returncode == 0
    said = " ".join(printed.stderr.split())
    assert f"chat has not been built: run `opentabs build {tmp_path / 'chat'}`." in said


def test_a_folder_of_plugins_has_its_absolute_path_in_the_block(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    told = entry("cursor", "--plugins", "mine", cwd=tmp_path)
    assert told["args"] == ["serve", "--stdio", "--plugins", str(tmp_path / "mine")]


def test_tools_settings_and_the_ceiling_go_to_the_server_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    options = [
        *("--tools", "mine.py:one", "--tools", "json.tool"),
        *("--set", "chat.site=http://localhost/", "--ceiling", "600"),
    ]

    told = entry("cursor", *options, cwd=tmp_path)

    assert told["args"] == [
        *("serve", "--stdio", "--tools", f"{tmp_path / 'mine.py'}:one", "--tools", "json.tool"),
        *("--set", "chat.site=http://localhost/", "--ceiling", "600"),
    ]


def test_the_inspectors_block_waits_as_long_as_a_call_may_take(tmp_path: Path) -> None:
    assert entry("inspector", "--ceiling", "600", cwd=tmp_path)["requestTimeout"] == 610_000


@pytest.mark.parametrize("token", [[], ["--token"]])
def test_codexs_block_waits_as_long_as_a_call_may_take(tmp_path: Path, token: list[str]) -> None:
    starts = tomllib.loads(block("codex", "--open", 'http://é/"\\', cwd=tmp_path))
    connects = tomllib.loads(block("codex", *RUNNING, *token, cwd=tmp_path))

    assert starts["mcp_servers"]["opentabs"] == {
        "command": str(Path(sys.executable).parent / "opentabs"),
        "args": ["serve", "--stdio", "--open", 'http://é/"\\'],
        "tool_timeout_sec": 310,
    }
    assert connects["mcp_servers"]["opentabs"] == {
        "url": "http://127.0.0.1:8377/mcp",
        **({"bearer_token_env_var": "OPENTABS_TOKEN"} if token else {}),
        "tool_timeout_sec": 310,
    }


@pytest.mark.parametrize("client", PYTHON)
@pytest.mark.parametrize("options", [["--headed"], RUNNING, [*RUNNING, "--token"]])
def test_code_for_a_python_framework_waits_as_long_as_a_call_may_take(
    tmp_path: Path, client: str, options: list[str]
) -> None:
    module = ast.parse(block(client, *options, cwd=tmp_path))

    given = [each for each in ast.walk(module) if isinstance(each, ast.keyword)]
    waits = {each.arg for each in given if getattr(each.value, "value", None) == 310}
    assert waits & {
        *("client_session_timeout_seconds", "timeout"),
        *("read_timeout_seconds", "sse_read_timeout"),
    }
    reads = [each.attr for each in ast.walk(module) if isinstance(each, ast.Attribute)]
    assert ("environ" in reads) == ("--token" in options)


@pytest.mark.parametrize("client", JAVASCRIPT)
@pytest.mark.parametrize("options", [["--headed"], RUNNING, [*RUNNING, "--token"]])
def test_code_for_a_javascript_framework_waits_as_long_as_a_call_may_take(
    tmp_path: Path, client: str, options: list[str]
) -> None:
    program = tmp_path / "agent.mjs"
    program.write_text(block(client, *options, cwd=tmp_path))

    node = Path(sys.executable).with_name("node")
    subprocess.run([node, "--check", program], check=True, timeout=50)
    assert "imeout: 310000" in program.read_text()
    assert ("process.env.OPENTABS_TOKEN" in program.read_text()) == ("--token" in options)


@pytest.mark.parametrize("client", ["claude-code", "cursor", "inspector", "vscode"])
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
        ["--client", "cursor", "--http", "http://127.0.0.1:8377"],
        ["--client", "cursor", "--http", "http://127.0.0.1:8377/"],
        ["--client", "cursor", "--http", "127.0.0.1:8377/mcp"],
        ["--client", "cursor", "--http", "http://127.0.0.1:8377/mcp", "--headed"],
        ["--client", "cursor", "--http", "http://127.0.0.1:8377/mcp", "--tools", "json.tool"],
        ["--client", "inspector", "--http", "http://127.0.0.1:8377/mcp", "--token"],
        ["--client", "cursor", "--plugin", "nowhere"],
        ["--client", "cursor", "--tools", "nowhere.py"],
        ["--client", "cursor", "--tools", "nowhere"],
        ["--client", "cursor", "--set", "nonsense"],
        ["--client", "cursor", "--token"],
        [],
    ],
)
def test_what_cannot_be_is_refused_with_the_code_for_usage(
    tmp_path: Path, options: list[str]
) -> None:
    assert opentabs_here("config", *options, cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("options", [[], RUNNING])
def test_a_named_server_without_running_is_a_usage_error_that_says_what_to_add(
    tmp_path: Path, options: list[str]
) -> None:
    refused = opentabs_here(
        "config", "--client", "cursor", "--server", "work", *options, cwd=tmp_path
    )

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--server names a running server to connect to: add --running" in refused.stderr


def test_the_variable_that_names_a_server_is_for_other_commands_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENTABS_SERVER", "work")

    assert entry("cursor", cwd=tmp_path)["args"] == ["serve", "--stdio"]


async def test_a_client_with_the_block_lists_the_tools(tmp_path: Path) -> None:
    told = entry("claude-desktop", "--plugin", str(demo_plugin_dir()), cwd=tmp_path)
    arguments = [*told["args"], "--browser", "none", "--port", "0"]
    server = StdioServerParameters(command=told["command"], args=arguments, env=ENVIRONMENT)

    async with Client(server) as client:
        listed = await client.list_tools()

    assert "demo_send_message" in [tool.name for tool in listed.tools]
