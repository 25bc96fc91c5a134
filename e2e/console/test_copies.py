"""Calls that are copied from the console run in each format."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from playwright.async_api import expect

from e2e.console.opened import console_page, go
from e2e.console.plugins import write_forms
from e2e.live_page import chromium
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.daemon.state import ServeCommand, claim
from opentabs_py.session.registration import registered
from opentabs_py.session.session import OpenTabs

ARGUMENTS: dict[str, Any] = {
    "title": 'it\'s "quoted" $HOME `id` \\ \n <b>',
    "people": [{"name": "'", "boss": {"name": "\u202eAda"}}],
    "more": [None, True, 1.5, {"-": ""}],
}


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    return write_forms(tmp_path)


@pytest.fixture
async def server(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[OpenTabs]:
    """A server that commands can find."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(plugins=[plugin], settings=settings) as tabs:
        await tabs.open_start_page("forms")
        with claim("default", ServeCommand([], Path.cwd())) as claimed:
            async with registered(tabs, claimed, stop=lambda: None):
                yield tabs


async def copies(server: OpenTabs) -> dict[str, str]:
    """Return what the page copies to the clipboard."""
    found: dict[str, str] = {}
    async with chromium(server.settings) as browser, console_page(browser, server) as page:
        await go(page, "try/forms_where")
        await page.get_by_role("button", name="JSON", exact=True).click()
        await page.get_by_label("The arguments, as JSON").fill(json.dumps(ARGUMENTS))
        for button in ("pytest test", "Command", "Python", "MCP request"):
            await page.get_by_role("button", name=button).click()
            shown = page.get_by_label("Copied code")
            await expect(shown).not_to_have_text("")
            if found:
                await expect(shown).not_to_have_text([*found.values()][-1])
            await page.wait_for_function(
                "async () => (await navigator.clipboard.readText()) === "
                "document.querySelector('.copy-place pre').textContent"
            )
            found[button] = await page.evaluate("navigator.clipboard.readText()")
    return found


async def run(command: list[str] | str, **more: Any) -> str:
    """Run a program, and return what it prints."""
    bin_ = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}

    def run_() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            shell=isinstance(command, str),
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            env=environment,
            **more,
        )

    ended = await anyio.to_thread.run_sync(run_)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


async def test_each_copy_makes_the_call_that_was_shown(
    server: OpenTabs, plugin: Path, tmp_path: Path
) -> None:
    code = await copies(server)

    printed = json.loads(await run(code["Command"], cwd=tmp_path))
    assert printed["params"] == ARGUMENTS

    headers = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENT) as client:
        about = {"name": "t", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        answer = await client.post(server.mcp_url, json=hello)
        client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await client.post(server.mcp_url, json=ready)
        client.headers["content-type"] = "application/json"
        answer = await client.post(server.mcp_url, content=code["MCP request"])
        data = [each[6:] for each in answer.text.splitlines() if each.startswith("data: {")]
        assert json.loads(data[-1])["result"]["structuredContent"]["params"] == ARGUMENTS

    test = plugin / "tests" / "test_copied.py"
    await anyio.to_thread.run_sync(write, test, code["pytest test"])
    said = await run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=plugin)
    assert "1 passed" in said

    program = tmp_path / "copied.py"
    wrong = "print(await tabs.call("
    assert wrong in code["Python"]
    text = code["Python"].replace("print(await", "print('params:', await")
    await anyio.to_thread.run_sync(write, program, text)
    said = await run([sys.executable, str(program)], cwd=tmp_path)
    assert repr(ARGUMENTS["title"]) in said


def write(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


async def test_the_command_prints_an_address_that_lets_a_browser_in(server: OpenTabs) -> None:
    url = (await run([sys.executable, "-m", "opentabs_py", "ui", "--print"])).strip()
    assert url.startswith(server.mcp_url.removesuffix("/mcp") + "/?token=")
    async with httpx2.AsyncClient() as client:
        assert (await client.get(url)).status_code == 200
        assert (await client.get(server.mcp_url.removesuffix("mcp"))).status_code == 200


async def test_without_a_server_the_command_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run_() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "opentabs_py", "ui"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    ended = await anyio.to_thread.run_sync(run_)
    assert ended.returncode == 2
    assert "opentabs start" in ended.stderr
