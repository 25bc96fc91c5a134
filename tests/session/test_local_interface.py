"""The local interface of a running server, as the commands that find it use it."""

import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from opentabs_py import Progress, __version__, tool
from opentabs_py.config.settings import Settings, load_settings
from opentabs_py.core.progress import Pace
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.daemon.local_client import Document, LocalClient
from opentabs_py.daemon.state import ServeCommand, ServerState, claim, read_state
from opentabs_py.errors import BrowserError, ChainError
from opentabs_py.plugins.plugin import SkippedPlugin
from opentabs_py.session.local_interface import LocalInterface
from opentabs_py.session.registration import registered
from opentabs_py.session.session import OpenTabs
from tests.another_user import get, on_linux
from tests.fakes import SignedOut, a_manifest, a_tool, tool_calls_of
from tests.session.built import build
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

NAME = "local"


class Tools:
    """Tools written in Python."""

    def __init__(self) -> None:
        self.began = anyio.Event()
        self.cancelled = anyio.Event()

    async def greet(self, name: str, progress: Progress) -> str:
        """Greet somebody."""
        progress.report("thinking", progress=1, total=2)
        await anyio.lowlevel.checkpoint()
        return f"Hello {name}"

    async def hang(self) -> None:
        """Wait for ever."""
        self.began.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()


class Server:
    """A running server, and the commands that use it, each in a thread."""

    def __init__(self, session: OpenTabs, state: ServerState, stops: list[str]) -> None:
        self.session = session
        self.state = state
        self.stops = stops
        self.client = LocalClient(state)

    async def ask(self, method: str, **arguments: Any) -> Any:
        ask = partial(getattr(self.client, method), **arguments)
        with anyio.fail_after(PATIENT):
            return await anyio.to_thread.run_sync(ask)

    async def call(self, tool: str, arguments: Any = None, **more: Any) -> Any:
        """Return the events of a call."""
        request: Document = {"tool": tool, "arguments": arguments or {}, **more}
        with anyio.fail_after(PATIENT):
            return await anyio.to_thread.run_sync(lambda: [*self.client.call(request)])


@asynccontextmanager
async def serving(
    *tools: Any,
    plugins: Sequence[Path] = (),
    settings: Settings | None = None,
    log: Path | None = None,
) -> AsyncGenerator[Server]:
    settings = settings or load_settings(port=0)
    session = OpenTabs(tools=tools, plugins=plugins, browser="none", settings=settings)
    stops: list[str] = []
    command = ServeCommand(["--plugin", "a b"], Path("/somewhere"), log)
    with claim(NAME, command) as claimed:
        async with session, registered(session, claimed, stop=partial(stops.append, "stop")):
            state = read_state(NAME)
            assert state is not None
            yield Server(session, state, stops)


async def test_a_server_is_recorded_with_all_that_commands_need_and_is_found_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENTABS_TOKEN", "t" * 32)
    async with serving(Tools().greet, log=Path("/logs/local.log")) as server:
        state = server.state
        assert (state.version, state.mcp_url) == (__version__, server.session.mcp_url)
        assert state.mcp_token == "t" * 32
        assert (state.arguments, state.directory) == (("--plugin", "a b"), "/somewhere")
        assert state.log == "/logs/local.log"
        assert (state.environment or {})["OPENTABS_TOKEN"] == "t" * 32
        assert server.session.internals.console.server_name == NAME
        assert (await server.ask("status"))["mcpUrl"] == state.mcp_url
        stranger = LocalClient(replace(state, local_token="0" * 64))
        with pytest.raises(ChainError, match=r"refused the request: Send the server's token"):
            await anyio.to_thread.run_sync(stranger.status)
    assert read_state(NAME) is None


async def test_the_status_says_what_is_served_and_what_is_skipped(tmp_path: Path) -> None:
    built = build(tmp_path / "chat")
    broken = build(tmp_path / "mail", name="mail", tools="[")
    async with serving(plugins=[built, broken]) as server:
        status = await server.ask("status")
        [skipped] = status.pop("skipped")
        assert "mail" in skipped
        assert status.pop("uptime") >= 0
        [browser] = status.pop("browsers")
        assert (browser["connected"], browser["attached"]) == (False, False)
        [plugin] = status.pop("plugins")
        assert plugin == {
            "name": "chat",
            "version": "1.2.0",
            "directory": str(built),
            "tools": 1,
            "status": "closed",
        }
        assert status == {
            "version": __version__,
            "mcpUrl": server.session.mcp_url,
            "extension": False,
            "tools": len(server.session.tools),
            "tabs": [],
            "fleet": None,
            "calls": 0,
            "warnings": [],
        }
        listed = {each["listing"]["name"]: each["isOfPlugin"] for each in await server.ask("tools")}
        assert listed.pop("chat_send") is True
        assert not any(listed.values())


async def test_the_status_warns_of_missing_reviews_and_of_settings_without_effect(
    tmp_path: Path, write_settings: Callable[[str], object]
) -> None:
    chat = build(tmp_path / "chat")
    settings = f'port = 0\nplugins = ["{chat}"]\n[permissions]\n"chat.sned" = "off"\n'
    write_settings(settings)
    async with serving(settings=load_settings(), plugins=[]) as server:
        review, rule = (await server.ask("status"))["warnings"]
        assert review.startswith("The plugin chat has not been reviewed, so its tools are off.")
        assert rule.startswith('permissions."chat.sned" has no effect')


async def test_a_call_is_answered_with_what_it_does_and_then_its_outcome() -> None:
    async with serving(Tools().greet) as server:
        [*before, last] = await server.call("greet", {"name": "Ann"})
        assert {"say": "greet"} in before
        [progress] = [each["progress"] for each in before if "progress" in each]
        told = (progress["progress"], progress["total"], progress["message"])
        assert told == (1, 2, "thinking")
        assert last["failed"] is None
        assert last["outcome"]["content"] == [{"type": "text", "text": "Hello Ann"}]
        assert last["outcome"]["isError"] is False
        [*_, last] = await server.call("greet", {})
        assert (last["failed"], last["outcome"]["isError"]) == ("caller", True)
        assert last["outcome"]["error"]["code"] == "INVALID_ARGUMENTS"


@pytest.mark.parametrize("timer", ["idle", "ceiling"])
async def test_a_call_ends_by_the_timer_that_its_command_gives(timer: str) -> None:
    tools = Tools()
    async with serving(tools.hang) as server:
        [*_, last] = await server.call("hang", **{timer: 0.05})
        assert last["outcome"]["error"]["code"] == f"TIMEOUT_{timer.upper()}"


async def test_a_timer_that_a_command_gives_leaves_the_other_to_the_tool() -> None:
    @tool(ceiling=0.05)
    async def hang_a_while() -> None:
        await anyio.sleep_forever()

    async with serving(hang_a_while) as server:
        [*_, last] = await server.call("hang_a_while", idle=60)
        assert last["outcome"]["error"]["code"] == "TIMEOUT_CEILING"


async def test_a_call_is_cancelled_when_its_command_goes_away() -> None:
    tools = Tools()
    async with serving(tools.hang) as server:
        calling = server.client.call({"tool": "hang", "arguments": {}})
        with anyio.fail_after(PATIENT):
            await anyio.to_thread.run_sync(next, calling)
            await tools.began.wait()
            assert (await server.ask("status"))["calls"] == 1
            await anyio.to_thread.run_sync(calling.close)
            await tools.cancelled.wait()


async def test_a_call_that_a_stop_ends_is_answered_and_recorded_as_that() -> None:
    tools = Tools()
    records: list[CallRecord] = []
    events: list[Document] = []
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks, serving(tools.hang) as server:
            server.session.observe(records.append)

            async def call() -> None:
                events.extend(await server.call("hang"))

            tasks.start_soon(call)
            await tools.began.wait()
    assert events[-1]["failed"] == "chain"
    assert events[-1]["outcome"]["error"]["code"] == "SERVER_STOPPED"
    [record] = records
    assert (record.outcome, record.error and record.error.code) == ("lost", "SERVER_STOPPED")


@pytest.mark.parametrize("timer", [0, -1, "1"])
async def test_a_request_that_is_not_valid_is_refused_and_the_command_says_why(
    timer: object,
) -> None:
    async with serving(Tools().greet) as server:
        with pytest.raises(ChainError, match=r"refused the request: .* idle: Input should be"):
            await server.call("greet", idle=timer)
        with pytest.raises(ChainError, match=r"other: Extra inputs are not permitted"):
            await server.call("greet", other=1)
        with pytest.raises(ChainError, match=r"answer: Input should be"):
            await anyio.to_thread.run_sync(server.client.answer, "1", "maybe")


@pytest.mark.parametrize("path", ["/call", "/answer"])
async def test_a_command_that_goes_away_before_its_request_is_complete_is_not_logged(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(Tools().greet) as server:
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            f"authorization: Bearer {server.state.local_token}\r\ncontent-length: 100\r\n\r\n{{"
        )
        with anyio.fail_after(PATIENT):
            async with await anyio.connect_tcp("127.0.0.1", server.state.local_port) as wire:
                await wire.send(head.encode())
                await wire.send_eof()
                with pytest.raises(anyio.EndOfStream):
                    await wire.receive()
        await server.ask("status")
    assert caplog.messages == []


async def test_a_question_is_asked_by_the_command_that_can_ask_and_answered_there() -> None:
    settings = Settings(port=0, permissions={"default": "ask"})
    async with serving(Tools().greet, settings=settings) as server:
        request = {"tool": "greet", "arguments": {"name": "Ann"}, "canAsk": True}

        def call() -> list[Document]:
            happened: list[Document] = []
            for each in server.client.call(request):
                happened.append(each)
                if "question" in each:
                    server.client.answer(each["question"]["id"], "once")
            return happened

        records: list[CallRecord] = []
        server.session.internals.tool_calls.records.observe(records.append)
        with anyio.fail_after(PATIENT):
            [*before, last] = await anyio.to_thread.run_sync(call)
        assert any("question" in each for each in before)
        assert last["outcome"]["content"] == [{"type": "text", "text": "Hello Ann"}]
        [record] = records
        assert (record.client, record.allowed) == ("opentabs call", "terminal: once")


async def test_a_command_that_cannot_ask_is_asked_nothing_and_refused() -> None:
    settings = Settings(port=0, permissions={"default": "ask"})
    async with serving(Tools().greet, settings=settings) as server:
        [*before, last] = await server.call("greet", {"name": "Ann"})
        assert not any("question" in each for each in before)
        assert last["outcome"]["error"]["code"] == "CONSENT_NEEDED"


async def test_a_server_is_stopped_and_its_console_opened_by_command() -> None:
    async with serving(Tools().greet) as server:
        invited = await server.ask("console_url", for_own_user=False)
        assert invited.startswith(server.session.mcp_url.removesuffix("/mcp"))
        await server.ask("stop")
        assert server.stops == ["stop"]


@on_linux
async def test_a_url_with_which_a_browser_is_started_lets_no_other_user_in() -> None:
    async with serving(Tools().greet) as server:

        async def open_(url: str, *, as_another_user: bool) -> int:
            parts = urlsplit(url)
            return await get(
                int(parts.port or 0), f"/?{parts.query}", as_another_user=as_another_user
            )

        printed = await server.ask("console_url", for_own_user=False)
        started = await server.ask("console_url", for_own_user=True)
        assert await open_(printed, as_another_user=True) == 200
        assert await open_(started, as_another_user=True) == 401
        assert await open_(started, as_another_user=False) == 200


async def test_a_call_that_brings_a_plugin_that_cannot_be_opened_is_warned_and_made(
    tmp_path: Path,
) -> None:
    async with serving(Tools().greet) as server:
        plugins = [str(tmp_path / ("x" * 256))]  # an error, as where the server may not look
        [*before, last] = await server.call("greet", {"name": "Ann"}, plugins=plugins)
        [warning] = [each["warning"] for each in before if "warning" in each]
        assert warning.startswith("skipped: ")
        assert last["failed"] is None


async def test_a_plugin_that_a_call_brings_is_served_for_that_call_only(tmp_path: Path) -> None:
    chat = build(tmp_path / "more" / "chat")
    async with serving(Tools().greet) as server:
        for brought in ({"plugins": [str(chat)]}, {"pluginFolders": [str(tmp_path / "more")]}):
            [*before, last] = await server.call("chat_send", **brought)
            assert last["outcome"]["error"]["code"] == "EXTENSION_NOT_CONNECTED"
            assert not any("warning" in each for each in before)
            [*_, last] = await server.call("chat_send")
            assert last["outcome"]["error"]["code"] == "UNKNOWN_TOOL"


async def test_a_call_warns_of_plugins_that_are_skipped_or_older_than_their_source(
    tmp_path: Path,
) -> None:
    old, broken = build(tmp_path / "chat"), build(tmp_path / "mail", name="mail", tools="[")
    (old / "src").mkdir()
    (old / "src" / "index.ts").touch()
    for each in (old / "dist", *(old / "dist").iterdir()):
        os.utime(each, (1, 1))
    async with serving(Tools().greet) as server:
        brought = [str(old), str(broken)]
        [*before, last] = await server.call("greet", {"name": "Ann"}, plugins=brought)
        skipped, stale = [each["warning"] for each in before if "warning" in each]
        assert skipped.startswith("skipped: ")
        assert stale == f"chat has changed since it was built: run `opentabs build {old}`."
        assert last["failed"] is None
        [*_, last] = await server.call("mail_send", plugins=brought)
        assert last["failed"] == "caller"
        assert last["refused"].startswith("There is no tool 'mail_send', and a plugin was skipped")


class FakePage:
    """A page in a browser that has another one."""

    def __init__(self, did: list[str]) -> None:
        self._did = did
        self.context = self
        self.pages = [self, self]

    async def close(self) -> None:
        self._did.append("close")


class WithBrowser:
    """A session that launches its browser; `did` records what it does with it."""

    launches_browser = True
    is_endpoint = False

    def __init__(self, *, opens: Exception | None = None) -> None:
        self.did: list[str] = []
        self.browser = self
        self.internals = self
        self.plugin_set = self
        self.tasks = None  # has nothing to remove
        self._opens = opens
        self.bridge = SignedOut()
        self.bridge.is_signed_in = True
        self.bridge.tabs.update([], anyio.current_time())
        self.tool_calls = tool_calls_of(self.bridge.pages)
        self.registry = self.tool_calls.registry
        self.registry.set_plugins([a_manifest(a_tool("send"))])

    @asynccontextmanager
    async def added(
        self, _plugins: Sequence[Path], _tasks: None
    ) -> AsyncGenerator[list[SkippedPlugin]]:
        yield []

    async def relaunch(self) -> None:
        self.did.append("relaunch")

    async def open(self, url: str) -> FakePage:
        if self._opens is not None:
            raise self._opens
        self.did.append(url)
        self.bridge.show("ready")
        return FakePage(self.did)

    async def start_page_url(self, plugin: str) -> str:
        return f"the start page of {plugin}"

    async def call(self, tool: str, **more: Any) -> list[Document]:
        app = LocalInterface(cast("OpenTabs", self), Pace(), lambda: None).app("token")
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1"
        ) as client:
            answer = await client.post(
                "/call",
                json={"tool": tool, "arguments": {}, **more},
                headers={"authorization": "Bearer token"},
            )
            return [json.loads(line) for line in answer.text.splitlines()]


async def test_the_pages_that_a_call_names_are_open_while_it_runs() -> None:
    session = WithBrowser()
    [first, *_, last] = await session.call("chat_send", open=["https://chat.example/"])
    assert first == {"say": "Opening https://chat.example/"}
    assert last["outcome"]["structuredContent"] == {"sent": True}
    assert session.did == ["relaunch", "https://chat.example/", "close"]


async def test_a_page_that_cannot_be_opened_is_a_failure_of_the_chain_and_nothing_is_called() -> (
    None
):
    session = WithBrowser(opens=BrowserError("It has exited."))
    [*_, last] = await session.call("chat_send", open=["https://chat.example/"])
    assert last == {"refused": "It has exited.", "failed": "chain"}
    assert not session.bridge.received


async def test_a_plugin_without_a_tab_gets_its_start_page_and_keeps_it() -> None:
    session = WithBrowser()
    for _ in range(2):
        [*_, last] = await session.call("chat_send")
        assert last["outcome"]["structuredContent"] == {"sent": True}
    assert session.did == ["relaunch", "the start page of chat"]


@pytest.mark.parametrize("why", ["the tool is off", "the server launches no browser"])
async def test_no_start_page_is_opened_in_vain(why: str) -> None:
    session = WithBrowser()
    if why == "the tool is off":
        session.registry.gate.set_rules({"default": "off"})
    else:
        session.launches_browser = False
    await session.call("chat_send")
    assert session.did == []
