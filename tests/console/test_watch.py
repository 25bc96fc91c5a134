"""How the console's board is kept up to date, and how pages read it."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from opentabs_py.console import watch
from opentabs_py.console.log_tail import WAITING, LogTail
from opentabs_py.core.progress import ProgressReport
from opentabs_py.plugins.plugin import SkippedPlugin
from tests.console.served import ServedConsole
from tests.fakes import FakeBridge, a_manifest, a_tool
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


class Reader:
    """A page that reads the stream until it has seen enough."""

    def __init__(self, served: ServedConsole) -> None:
        self._served = served
        self.events: list[dict[str, Any]] = []
        self.boot, self.version = "", 0

    async def read_until(self, is_enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read until an event meets a condition, and return it."""
        with anyio.fail_after(PATIENT), anyio.CancelScope() as scope:

            async def send(body: bytes) -> None:
                event = json.loads(body.removeprefix(b"data: "))
                self.events.append(event)
                self.boot, self.version = event["boot"], event["version"]
                if is_enough(event):
                    scope.cancel()
                await anyio.lowlevel.checkpoint()

            await self._served.watch.stream(send, boot=self.boot, version=self.version)
        return self.events[-1]


def rows(event: dict[str, Any], section: str) -> list[Any]:
    changes = event.get(section)
    return [] if changes is None else list(changes["changed"])


async def test_a_running_call_is_shown_with_its_progress_and_then_its_end() -> None:
    bridge = FakeBridge(reports=[ProgressReport(seq=0, progress=1, total=4)])
    bridge.hangs = True
    served = ServedConsole(bridge)
    reader = Reader(served)
    with served.watch.watching():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(served.tool_calls.call, "chat_send", {})
            await bridge.called.wait()
            event = await reader.read_until(lambda event: bool(rows(event, "calls")))
            [call] = rows(event, "calls")
            assert (call["state"], call["progress"], call["total"]) == ("running", 1, 4)
            tasks.cancel_scope.cancel()
        event = await reader.read_until(lambda event: bool(rows(event, "calls")))
    assert [each["state"] for each in rows(event, "calls")] == ["cancelled"]


async def test_a_reader_that_knows_another_run_of_the_server_starts_over() -> None:
    served = ServedConsole()
    reader = Reader(served)
    await reader.read_until(lambda _event: True)
    reader.boot, reader.version = "another", 1_000_000
    event = await reader.read_until(lambda _event: True)
    assert event["plugins"]["reset"]


async def test_calls_are_traced_only_while_a_page_looks() -> None:
    served = ServedConsole()

    def is_traced() -> bool:
        recorder = served.bridge.received[-1].call.recorder
        return recorder is not None and recorder.is_traced

    async def send(_body: bytes) -> None:
        await served.tool_calls.call("chat_send", {})
        assert is_traced()
        served.watch.stop()

    with served.watch.watching(), anyio.fail_after(PATIENT):
        await served.tool_calls.call("chat_send", {})
        assert not is_traced()
        await served.watch.stream(send, boot="", version=0)
        await served.tool_calls.call("chat_send", {})
        assert not is_traced()


async def test_a_change_of_tools_and_a_fault_reach_the_page() -> None:
    served = ServedConsole()
    reader = Reader(served)
    with served.watch.watching():
        first = await reader.read_until(lambda event: bool(rows(event, "plugins")))
        served.registry.set_plugins([a_manifest(a_tool("send"), a_tool("read"))])
        event = await reader.read_until(lambda event: bool(rows(event, "plugins")))
        assert rows(event, "plugins")[0]["tools"] == 2
        assert rows(event, "plugins")[0]["revision"] > rows(first, "plugins")[0]["revision"]
        broken, copied = (Path(name) for name in ("/p/broken", "/p/copied"))
        for directory in (broken, copied):
            served.plugins.skipped.append(SkippedPlugin(directory, "Both are broken.", "broken"))
        event = await reader.read_until(lambda event: bool(rows(event, "problems")))
    assert [each["reason"] for each in rows(event, "problems")] == ["Both are broken."]


async def test_of_a_plugin_that_waits_for_its_review_no_tabs_are_said_to_be_closed() -> None:
    served = ServedConsole()
    served.plugins.standings["chat"] = "unreviewed"
    with served.watch.watching():
        event = await Reader(served).read_until(lambda event: bool(rows(event, "plugins")))
    [chat] = [each for each in rows(event, "plugins") if each["name"] == "chat"]
    assert (chat["status"], chat["standing"]) == (None, "unreviewed")


async def test_what_the_user_should_do_reaches_the_page_although_no_tab_changes() -> None:
    served = ServedConsole()
    reader = Reader(served)
    [bridge] = served.bridge.pages.bridges
    with served.watch.watching():
        event = await reader.read_until(lambda event: bool(rows(event, "browsers")))
        assert [each["userAction"] for each in rows(event, "browsers")] == [""]
        bridge.tabs.advice, bridge.tabs.lacks_debugging = "Click Allow.", True
        event = await reader.read_until(lambda event: bool(rows(event, "browsers")))
    assert rows(event, "browsers")[0]["userAction"] == "Click Allow."


async def test_a_server_that_was_started_again_counts_changes_of_tools_from_elsewhere() -> None:
    first, second = [
        await Reader(ServedConsole()).read_until(lambda event: bool(rows(event, "plugins")))
        for _ in range(2)
    ]
    assert rows(first, "plugins")[0]["revision"] != rows(second, "plugins")[0]["revision"]


async def test_a_page_that_does_not_read_gets_the_newest_state_later_and_delays_no_call() -> None:
    served = ServedConsole()
    reading, sent = anyio.Event(), anyio.Event()
    events: list[dict[str, Any]] = []

    async def send(body: bytes) -> None:
        events.append(json.loads(body.removeprefix(b"data: ")))
        if len(events) == 1:
            sent.set()
            await reading.wait()
        elif events[-1]["version"] > 0:
            served.watch.stop()

    async def stream() -> None:
        await served.watch.stream(send, boot="", version=0)

    with served.watch.watching(), anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream)
            await sent.wait()
            for _ in range(500):
                await served.tool_calls.call("chat_send", {})
            reading.set()
    assert len(events) == 3  # the first, and the changes since then, in two parts
    assert sum(len(rows(event, "calls")) for event in events) == 500


async def test_a_page_to_which_nothing_happens_hears_that_the_server_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "QUIET_AT_MOST", 0.0)
    reader = Reader(ServedConsole())
    first = await reader.read_until(lambda _event: True)
    await reader.read_until(lambda _event: len(reader.events) == 3)  # at once, and again
    for event in reader.events[1:]:
        assert event == {**event, "boot": first["boot"], "version": first["version"]}
        assert event.keys() == {"boot", "now", "version"}


async def test_without_watching_nothing_of_a_call_is_kept() -> None:
    served = ServedConsole()
    await served.tool_calls.call("chat_send", {})
    event = await Reader(served).read_until(lambda _event: True)
    assert rows(event, "calls") == []


async def test_what_is_logged_reaches_the_page_with_its_source() -> None:
    served = ServedConsole()
    with served.watch.watching():
        logging.getLogger("opentabs_py.plugin.chat").warning("said %s", "so")
        event = await Reader(served).read_until(lambda event: bool(rows(event, "logs")))
    [entry] = rows(event, "logs")
    assert (entry["plugin"], entry["level"], entry["text"]) == ("chat", "warning", "said so")


def test_logs_that_nobody_reads_are_bounded_and_a_bad_one_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tail = LogTail()
    with tail.listening():
        log = logging.getLogger("opentabs_py.bridge.calls")
        for number in range(WAITING + 5):
            log.warning("%d", number)
    tail.emit(logging.LogRecord("opentabs_py", logging.INFO, "", 1, "%d", ("no number",), None))
    entries = [*tail.drain()]
    assert len(entries) == WAITING
    assert entries[-1]["text"] == str(WAITING + 4)
    assert (entries[-1]["source"], entries[-1]["plugin"]) == ("bridge.calls", None)
    assert [*tail.drain()] == []
    assert "no number" in capsys.readouterr().err
