"""`opentabs dev`: a plugin and Python tools that change while an agent uses them."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from e2e.documents import run
from e2e.on_disk import change
from e2e.processes import alive, descendants
from e2e.terminals import Terminal, terminal
from e2e.waiting import PATIENT

TOOLS = """
from opentabs_py import tool

@tool
def greet(name: str) -> dict[str, str]:
    return {"text": "hello " + name}
"""


@pytest.fixture
def project(short_path: Path) -> Path:
    made = run(["opentabs", "new", "chat", "--js"], short_path)
    assert made.returncode == 0, made.stderr
    (short_path / "tools.py").write_text(TOOLS)
    return short_path


async def wait_for(shown: Terminal, *texts: str) -> None:
    await anyio.to_thread.run_sync(shown.wait_for, *texts)


async def greeting(client: Client) -> Any:
    return (await value_of(client, "chat_hello"))["greeting"]


async def value_of(client: Client, tool: str) -> Any:
    result = await client.call_tool(tool, {"name": "Ada"})
    assert not result.is_error, result.content
    return result.structured_content


async def test_the_plugin_is_built_and_served_and_each_change_of_it_is_there_at_once(
    project: Path,
) -> None:
    plugin = project / "chat" / "src" / "index.js"
    change(plugin, "  async isReady", "  onActivate() { throw new Error('no'); }\n  async isReady")
    place = plugin.read_text().partition("throw new")[0]
    command = ["opentabs", "dev", "chat", "--tools", "tools.py", "--port", "0"]
    with terminal(command, project) as shown:
        where = f"(src/index.js:{len(place.splitlines())}:24)"  # of the hook's error
        await wait_for(shown, "/mcp", where)
        url = shown.output.partition("MCP at ")[2].split()[0]
        hello = project / "chat" / "src" / "tools" / "hello.js"
        with anyio.fail_after(PATIENT):
            async with Client(streamable_http_client(url)) as client:
                assert await greeting(client) == "Hello, Ada!"
                assert await value_of(client, "greet") == {"text": "hello Ada"}
                await wait_for(shown, "greet")  # each call is shown
                found = ["opentabs", "call", "greet", '{"name": "Bob"}']  # only it has the tool
                called = await anyio.to_thread.run_sync(run, found, project)
                assert called.stdout.strip() == '{"text":"hello Bob"}', called.stderr

                change(hello, "Hello, ", "Good morning, ")
                await wait_for(shown, "Reloaded chat")  # from here on, it watches
                assert await greeting(client) == "Good morning, Ada!"

                change(project / "tools.py", "hello ", "hi ")
                await wait_for(shown, "tools loaded again")
                assert await value_of(client, "greet") == {"text": "hi Ada"}

                change(hello, "export const", "export cnst")
                await wait_for(shown, "src/tools/hello.js changed")
                await wait_for(shown, "dist/ is unchanged")
                change(project / "tools.py", "def greet", "deff greet")
                await wait_for(shown, "still there")
                assert await greeting(client) == "Good morning, Ada!"
                assert await value_of(client, "greet") == {"text": "hi Ada"}

                change(project / "tools.py", "deff greet", "def welcome")
                await wait_for(shown, "tools loaded again")
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert "welcome" in names
                assert "greet" not in names

                change(hello, "export cnst", "export const")
                change(plugin, "return document", "return document.nowhere")
                await wait_for(shown, "chat: isReady() failed")
        family = {shown.process.pid, *descendants(shown.process.pid)}
        os.killpg(shown.process.pid, signal.SIGINT)
        assert await anyio.to_thread.run_sync(shown.wait) == 0
    assert alive(family) == {}


def test_what_may_not_be_read_for_a_while_does_not_end_it(project: Path) -> None:
    source, hello = project / "chat" / "src", project / "chat" / "src" / "tools" / "hello.js"
    # Root may read everything, unless it starts a program without that right.
    restrict = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    command = ["opentabs", "dev", "chat", "--tools", "tools.py", "--port", "0"]
    with terminal([*(restrict if os.geteuid() == 0 else []), *command], project) as shown:
        shown.wait_for("MCP at ")
        change(hello, "Hello, ", "Good morning, ")
        shown.wait_for("Reloaded chat")  # from here on, it watches

        source.chmod(0)
        shown.wait_for("Cannot build the plugin: ")
        source.chmod(0o755)
        change(hello, "Good morning, ", "Hi, ")
        shown.wait_for("Reloaded chat")

        project.chmod(0)  # with the tools
        shown.wait_for("Removed chat")
        project.chmod(0o755)
        shown.wait_for("Added chat")
        change(project / "tools.py", "hello ", "hi ")
        shown.wait_for("tools loaded again")
        change(hello, "Hi, ", "Hello, ")
        shown.wait_for("Reloaded chat")


async def test_a_module_outside_src_and_one_outside_the_plugin_are_built_when_they_change(
    project: Path,
) -> None:
    chat = project / "chat"
    hello = chat / "src" / "tools" / "hello.js"
    (chat / "lib").mkdir()
    (chat / "lib" / "near.js").write_text('export const near = "Hello, ";')
    (project / "far.js").write_text('export const far = "";')
    imports = "import { near } from '../../lib/near.js'; import { far } from '../../../far.js';\n"
    hello.write_text(imports + hello.read_text().replace("Hello, ", "${near}${far}"))
    with terminal(["opentabs", "dev", "chat", "--port", "0"], project) as shown:
        await wait_for(shown, "MCP at ")
        await wait_for(shown, "/mcp")
        url = shown.output.partition("MCP at ")[2].split()[0]
        with anyio.fail_after(PATIENT):
            async with Client(streamable_http_client(url)) as client:
                assert await greeting(client) == "Hello, Ada!"

                change(chat / "lib" / "near.js", "Hello", "Hi")
                await wait_for(shown, "Reloaded chat")  # from here on, it watches
                change(chat / "lib" / "near.js", "Hi", "Good day")
                await wait_for(shown, "lib/near.js changed")
                await wait_for(shown, "Reloaded chat")
                assert await greeting(client) == "Good day, Ada!"

                change(project / "far.js", '""', '"dear "')
                await wait_for(shown, "../far.js changed")
                await wait_for(shown, "Reloaded chat")
                assert await greeting(client) == "Good day, dear Ada!"


async def test_a_plugin_whose_first_build_fails_is_served_and_shown_once_it_is_fixed(
    project: Path,
) -> None:
    hello = project / "chat" / "src" / "tools" / "hello.js"
    change(hello, "export const", "export cnst")
    with terminal(["opentabs", "dev", "chat", "--port", "0"], project) as shown:
        await wait_for(shown, "dist/ is unchanged")
        await wait_for(shown, "MCP at ")
        await wait_for(shown, "/mcp")
        url = shown.output.partition("MCP at ")[2].split()[0]
        change(hello, "export cnst", "export const")
        await wait_for(shown, "chat: 1 tool")
        with anyio.fail_after(PATIENT):
            async with Client(streamable_http_client(url)) as client:
                await wait_for(shown, "opened http://127.0.0.1")
                assert await greeting(client) == "Hello, Ada!"


async def test_a_start_page_that_cannot_be_opened_is_reported(project: Path) -> None:
    chat = project / "chat"
    hello = chat / "src" / "tools" / "hello.js"
    shutil.rmtree(chat / "playground")
    change(
        chat / "package.json", '"opentabs": {', '"opentabs": { "homepage": "http://127.0.0.1:1/",'
    )
    change(hello, "export const", "export cnst")
    with terminal(["opentabs", "dev", "chat", "--port", "0"], project) as shown:
        await wait_for(shown, "MCP at ")
        change(hello, "export cnst", "export const")
        await wait_for(shown, "warning: Cannot open http://127.0.0.1:1/")

        change(hello, "Hello, ", "Good morning, ")
        await wait_for(shown, "✓ chat: 1 tool")


async def test_a_build_that_is_deleted_is_built_again(project: Path) -> None:
    dist = project / "chat" / "dist"
    hello = project / "chat" / "src" / "tools" / "hello.js"
    with terminal(["opentabs", "dev", "chat", "--port", "0"], project) as shown:
        await wait_for(shown, "MCP at ")
        change(hello, "Hello, ", "Good morning, ")
        await wait_for(shown, "Reloaded chat")  # from here on, it watches
        # It may have built that change as it began to watch, and be about to build it once more.
        (project / "chat" / "src" / "note.js").write_text("")
        await wait_for(shown, "note.js")
        await wait_for(shown, "✓ chat")
        built = sorted(each.name for each in dist.iterdir())

        shutil.rmtree(dist)

        await wait_for(shown, "dist changed")
        await wait_for(shown, "✓ chat")
        assert sorted(each.name for each in dist.iterdir()) == built


def test_a_directory_without_a_plugin_is_refused_with_what_to_do(short_path: Path) -> None:
    ended = run(["opentabs", "dev", "."], short_path)
    assert ended.returncode == 2
    assert "opentabs new NAME" in ended.stderr
