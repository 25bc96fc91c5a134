"""Before a tool may change something, its plugin is reviewed and a person is asked."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from e2e.on_disk import write_plugin
from e2e.terminals import terminal
from e2e.waiting import PATIENT

OPENTABS = [sys.executable, "-m", "opentabs_py"]


class Home:
    """A user's files: settings with one installed plugin, reviews and state."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "config" / "opentabs" / "config.toml"
        self.plugin = write_plugin(directory / "plugins" / "chat", tools=("version", "where"))
        self.settings = f"plugin_folders = [{json.dumps(str(self.plugin.parent))}]\n"
        self.write_settings("")
        self.variables = {
            "XDG_CONFIG_HOME": str(directory / "config"),
            "XDG_DATA_HOME": str(directory / "data"),
            "XDG_CACHE_HOME": str(directory / "cache"),
            "XDG_STATE_HOME": str(directory / "state"),
        }

    def write_settings(self, more: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(self.settings + more)

    def run(self, *args: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*OPENTABS, *args],
            capture_output=True,
            text=True,
            timeout=90,
            env={**os.environ, **self.variables},
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def start(self, *args: str) -> dict[str, Any]:
        """Start a server in the background, and return its status."""
        started = self.run("start", "--port", "0", *args)
        assert started.returncode == 0, started.stderr
        [status] = json.loads(self.run("status", "--json").stdout)
        assert isinstance(status, dict)
        return status

    def approve(self) -> None:
        approved = self.run("review", "chat", "--approve")
        assert approved.returncode == 0, approved.stderr

    def tools(self) -> list[str]:
        listed = json.loads(self.run("tools", "--json").stdout)
        return [each["name"] for each in listed if each["name"].startswith("chat")]

    def wait_until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENT
        while not holds():
            assert time.monotonic() < deadline, self.run("logs").stdout
            time.sleep(0.1)


@pytest.fixture
def home(short_path: Path) -> Generator[Home]:
    made = Home(short_path)
    yield made
    made.run("stop")


@pytest.fixture
def page() -> Generator[str]:
    """The address of a page that the plugin runs in, served from a separate thread."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>page</title>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/page"
        finally:
            server.shutdown()


def test_an_installed_plugin_is_off_until_it_is_reviewed_and_again_when_it_changes(
    home: Home, page: str
) -> None:
    home.start("--open", page)
    assert home.tools() == []
    call = home.run("call", "chat_version")
    assert call.returncode == 2
    assert "opentabs review chat" in call.stderr
    [tab] = json.loads(home.run("status", "--json").stdout)[0]["tabs"] or [{"plugins": []}]
    assert tab["plugins"] == []  # none of its code is in the page

    home.approve()
    home.write_settings('[permissions]\nchat = "auto"\n')
    home.wait_until(lambda: home.tools() == ["chat_version", "chat_where"])
    call = home.run("call", "chat_version")
    assert (call.returncode, json.loads(call.stdout)) == (0, {"version": "1"})

    write_plugin(home.plugin, "2", tools=("version", "where"))
    home.wait_until(lambda: home.tools() == [])
    call = home.run("call", "chat_version")
    assert "has changed since it was reviewed" in call.stderr
    changes = home.run("review", "chat")
    assert changes.returncode == 1
    assert '-    version: () => ({ version: "1" }),' in changes.stdout
    assert '+    version: () => ({ version: "2" }),' in changes.stdout

    home.approve()
    home.wait_until(lambda: home.tools() != [])
    call = home.run("call", "chat_version")
    assert json.loads(call.stdout) == {"version": "2"}
    assert home.run("review", "chat", "--revoke").returncode == 0
    home.wait_until(lambda: home.tools() == [])


def test_without_a_server_tools_lists_what_one_would_serve(home: Home) -> None:
    off = home.run("tools", "--json")
    assert "opentabs review chat" in off.stderr
    home.start()
    assert json.loads(home.run("tools", "--json").stdout) == json.loads(off.stdout)
    assert home.tools() == []
    assert home.run("stop").returncode == 0
    home.approve()
    assert home.tools() == ["chat_version", "chat_where"]


def test_a_plugin_named_on_the_command_line_needs_neither_review_nor_consent(
    home: Home, page: str
) -> None:
    home.start("--plugin", str(home.plugin), "--open", page)
    assert home.run("call", "chat_version").returncode == 0


def test_a_directory_under_development_needs_no_review_but_asks(home: Home, page: str) -> None:
    home.start("--no-review", str(home.plugin.parent), "--open", page)
    call = home.run("call", "chat_version")
    assert call.returncode == 2
    assert "The user has to allow chat_version" in call.stderr


def test_a_permission_on_the_command_line_wins_and_a_wrong_one_is_explained(
    home: Home, page: str
) -> None:
    home.approve()
    home.write_settings('[permissions]\n"chat.version" = "off"\n')
    home.start("--permission", "chat.version=auto", "--open", page)
    assert home.run("call", "chat_version").returncode == 0
    wrong = home.run("serve", "--permission", "chat.version=maybe")
    assert wrong.returncode == 2
    assert "chat.version cannot be 'maybe'; write off, ask, auto" in wrong.stderr


def test_opentabs_call_asks_at_its_terminal_and_always_is_remembered(home: Home, page: str) -> None:
    home.approve()
    home.start("--open", page)
    command = [*OPENTABS, "call", "chat_version"]
    with terminal(command, home.directory, **home.variables) as shown:
        shown.wait_for("opentabs call")
        shown.wait_for("chat_version")
        shown.wait_for("Allow it?")
        shown.type("what\n")
        shown.wait_for(">")
        shown.type("n\n")
        assert shown.wait() == 2
        assert "The user did not allow chat_version" in shown.output
    with terminal(command, home.directory, **home.variables) as shown:
        shown.wait_for("Allow it?")
        shown.type("a\n")
        assert shown.wait() == 0
    assert tomllib.loads(home.config.read_text())["permissions"] == {"chat.version": "auto"}
    assert home.run("call", "chat_version").returncode == 0


@pytest.mark.parametrize("more", [[], ["--fresh"]])
def test_always_says_at_the_terminal_that_another_source_takes_precedence(
    home: Home, page: str, more: Sequence[str]
) -> None:
    home.approve()
    rule = '[tool.opentabs.permissions]\n"chat.version" = "ask"\n'
    (home.directory / "pyproject.toml").write_text(rule)
    if not more:
        home.start("--open", page)
    command = [*OPENTABS, "call", "chat_version", *(more and [*more, "--open", page])]
    with terminal(command, home.directory, **home.variables) as shown:
        shown.wait_for("Allow it?")
        shown.type("always\n")
        assert shown.wait() == 0
    assert "chat_version is allowed only until the server stops" in shown.output
    assert "pyproject.toml, which takes precedence" in " ".join(shown.output.split())


def test_a_call_with_a_server_of_its_own_asks_at_the_terminal_too(home: Home, page: str) -> None:
    home.approve()
    command = [*OPENTABS, "call", "chat_version", "--fresh", "--open", page]
    with terminal(command, home.directory, **home.variables) as shown:
        shown.wait_for("Allow it?")
        shown.type("once\n")
        assert shown.wait() == 0
        assert '"version"' in shown.output


def test_ctrl_c_at_the_question_ends_the_call(home: Home, page: str) -> None:
    home.approve()
    home.start("--open", page)
    with terminal([*OPENTABS, "call", "chat_version"], home.directory, **home.variables) as shown:
        shown.wait_for("Allow it?")
        shown.process.send_signal(signal.SIGINT)
        assert shown.wait() == 130
    status = json.loads(home.run("status", "--json").stdout)
    assert status[0]["calls"] == 0


async def test_serve_in_a_terminal_asks_there_for_clients_that_cannot(
    home: Home, page: str
) -> None:
    home.approve()
    command = [*OPENTABS, "serve", "--port", "0", "--open", page]
    with terminal(command, home.directory, **home.variables) as shown:
        await anyio.to_thread.run_sync(shown.wait_for, "MCP at ")
        await anyio.to_thread.run_sync(shown.wait_for, "/mcp")
        url = shown.output.partition("MCP at ")[2].split()[0]
        results: list[types.CallToolResult] = []

        async def call(client: Client) -> None:
            results.append(await client.call_tool("chat_version", {}))

        with anyio.fail_after(PATIENT):
            async with (
                Client(streamable_http_client(url), mode="legacy") as client,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(call, client)
                await anyio.to_thread.run_sync(shown.wait_for, ">")
                # Not finished when a second call starts to wait, so it must not allow that one.
                await anyio.to_thread.run_sync(shown.type, "o")
                tasks.start_soon(call, client)
                await anyio.to_thread.run_sync(shown.wait_for, "2 calls wait for you.")
                await anyio.to_thread.run_sync(shown.wait_for, ">")
                await anyio.to_thread.run_sync(shown.type, "\n")
                await anyio.to_thread.run_sync(shown.wait_for, ">")
                assert results == []
                await anyio.to_thread.run_sync(shown.type, "o\n")
        # A client that asks its user itself does not involve this one.
        result, seen = await _call(url, "legacy", "yes")
        assert (result.is_error, len(seen)) == (False, 1)
        shown.process.send_signal(signal.SIGINT)
        assert await anyio.to_thread.run_sync(shown.wait) == 0
        assert shown.output.partition("2 calls wait for you.")[2].count("Allow it?") == 2
    assert [each.structured_content for each in results] == [{"version": "1"}] * 2


ANSWERS: Mapping[str, types.ElicitResult] = {
    "yes": types.ElicitResult(action="accept", content={"answer": "once"}),
    "no": types.ElicitResult(action="decline"),
}


async def test_mcp_clients_of_both_eras_ask_their_user(home: Home, page: str) -> None:
    home.approve()
    # With two tabs in which it could run, the question names the one in which it does.
    status = await anyio.to_thread.run_sync(home.start, "--open", page, "--open", page)
    for mode in ("legacy", "auto"):
        for said in ("yes", "no"):
            result, seen = await _call(status["mcpUrl"], mode, said)
            [question] = seen
            assert "on 127.0.0.1" in question
            assert '(tab "page")' in question
            assert result.is_error == (said == "no"), (mode, said, result.content)


async def _call(url: str, mode: Any, said: str) -> tuple[types.CallToolResult, list[str]]:
    seen: list[str] = []

    async def elicit(_context: Any, params: Any) -> Any:
        seen.append(params.message)
        return ANSWERS[said]

    callback: Any = elicit
    with anyio.fail_after(PATIENT):
        async with Client(
            streamable_http_client(url), mode=mode, elicitation_callback=callback
        ) as client:
            return await client.call_tool("chat_version", {}), seen
