"""The audit of real servers: every call is in it, whatever happens to the server and the file."""

import json
import re
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp.types import Implementation

from e2e.chain import PROBE, wait_for_document
from e2e.fleet.members import OPENTABS, a_fleet, endpoint, nats_server, poll
from e2e.waiting import PATIENT
from opentabs_py import __version__
from opentabs_py.audit.history import Filter, count_missed, read_calls
from opentabs_py.bridge.connection import Socket
from opentabs_py.config.paths import audit_file
from opentabs_py.config.settings import Settings, load_settings
from opentabs_py.core.audit.entry import AuditEntry
from opentabs_py.errors import CallError
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.clock import StoppableClock

ALL = 10**9
INFO = Implementation(name="claude-code", version="2.1.0")
LOST = 1.0  # s; what a killed server may lose: a quarter second, and more on a busy machine
TOOLS = """
from opentabs_py import tool


@tool
def count(number: int) -> int:
    return number
"""


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's data directory for this test, in which calls are recorded."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("OPENTABS_AUDIT", raising=False)


def entries(which: Filter | None = None) -> list[AuditEntry]:
    return [each.entry for each in read_calls(audit_file(), which or Filter(), limit=ALL)]


async def until(count: int) -> list[AuditEntry]:
    """Wait until that many calls are recorded."""
    await poll(lambda: len(entries()) >= count)
    return entries()


def opentabs(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*OPENTABS, *arguments], capture_output=True, text=True, timeout=90, check=False
    )


@asynccontextmanager
async def probe(
    site: str, settings: Settings, seams: Seams | None = None
) -> AsyncGenerator[tuple[OpenTabs, int]]:
    """A session with the probe ready in a tab, and the tab's number."""
    async with OpenTabs(plugins=[PROBE], settings=settings, _seams=seams) as tabs:
        url = f"{site}/page"
        await tabs.open(url)
        document = await wait_for_document(tabs, url, "ready")
        yield tabs, document.tab_id


class Heard:
    """A socket that records what is sent."""

    def __init__(self, socket: Socket, sent: list[str]) -> None:
        self.receive_text, self.close = socket.receive_text, socket.close
        self._send, self._sent = socket.send_text, sent

    async def send_text(self, data: str) -> None:
        self._sent.append(data)
        await self._send(data)


# --- what is in it ---


async def test_every_call_is_recorded_with_its_client_site_and_tab_however_it_ends(
    site: str,
) -> None:
    settings = load_settings(port=0, profile=None, headed=False, audit=True)
    waits = {"steps": [{"wait": 60_000}]}
    clock = StoppableClock()
    async with (
        probe(site, settings, Seams(clock=clock)) as (tabs, tab),
        Client(tabs.mcp_url, client_info=INFO) as client,
    ):
        await client.call_tool("probe_echo", {"value": 1})
        await client.call_tool("probe_fail", {"kind": "none"})
        await client.call_tool("probe_echo", {})
        await client.call_tool("probe_eco", {})
        await client.call_tool("probe_echo", {"value": 1, "tabId": 10**6})
        calls = tabs.internals.bridge.calls
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "probe_run", waits)
            await poll(lambda: calls.running == 1)
            clock.stop()
            await clock.advance(settings.limits.idle, calls.settle)
            clock.resume()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "probe_run", waits)
            await poll(lambda: calls.running == 1)
            tasks.cancel_scope.cancel()
        with pytest.raises(CallError):
            await tabs.call("probe_eco", {})
        await until(8)
    host, claude = site.removeprefix("http://"), "claude-code 2.1.0"
    found = [(e.tool, e.outcome, e.code, e.client, e.site, e.tab_id) for e in entries()]
    assert sorted(found, key=str) == sorted(
        [
            ("probe_echo", "succeeded", None, claude, host, tab),
            ("probe_fail", "failed", "INTERNAL_ERROR", claude, host, tab),
            ("probe_echo", "refused", "INVALID_ARGUMENTS", claude, None, None),
            ("probe_eco", "refused", "UNKNOWN_TOOL", claude, None, None),
            ("probe_echo", "failed", "TAB_NOT_FOUND", claude, None, None),
            ("probe_run", "timed_out", "TIMEOUT_IDLE", claude, host, tab),
            ("probe_run", "cancelled", "CANCELLED", claude, host, tab),
            ("probe_eco", "refused", "UNKNOWN_TOOL", None, None, None),
        ],
        key=str,
    )
    assert not [each for each in entries() if each.arguments or each.result or each.message]


async def test_a_call_of_a_page_tool_is_not_traced_for_the_audit(site: str) -> None:
    settings = load_settings(port=0, profile=None, headed=False, audit=True)
    heard: list[str] = []
    seams = Seams(wrap_socket=lambda socket: Heard(socket, heard))
    async with probe(site, settings, seams) as (tabs, _):
        heard.clear()
        await tabs.call("probe_echo", {"value": 1})
    assert any('"tool.dispatch"' in each and '"trace":false' in each for each in heard)
    assert not any('"method":"ping"' in each for each in heard)


async def test_a_setting_of_a_plugin_that_may_be_a_secret_is_masked(
    site: str, tmp_path: Path
) -> None:
    plugin = tmp_path / "probe"
    shutil.copytree(PROBE, plugin)
    package = json.loads((plugin / "package.json").read_text())
    package["opentabs"]["configSchema"] = {"key": {"type": "string", "label": "Key"}}
    (plugin / "package.json").write_text(json.dumps(package))
    settings = load_settings(
        port=0,
        profile=None,
        headed=False,
        audit=True,
        audit_values=True,
        plugin_settings={"probe": {"key": "s3cr3t-key"}},
    )
    value = {"text": "with s3cr3t-key in it", "password": "hunter2"}
    async with OpenTabs(plugins=[plugin], settings=settings) as tabs:
        await tabs.open(f"{site}/page")
        await tabs.internals.bridge.wait_ready("probe")
        assert await tabs.call("probe_echo", {"value": value}) == {"value": value}
    [entry] = entries()
    masked = {"value": {"text": "with ••• in it", "password": "•••"}}
    assert (json.loads(entry.arguments or ""), json.loads(entry.result or "")) == (masked, masked)
    content = b"".join(each.read_bytes() for each in audit_file().parent.glob("audit*"))
    assert b"s3cr3t" not in content
    assert b"hunter2" not in content


# --- the commands ---


def test_the_commands_record_and_show_what_was_called(tmp_path: Path) -> None:
    tools = tmp_path / "counting.py"
    tools.write_text(TOOLS)
    nothing = opentabs("audit", "--json")
    assert (nothing.returncode, json.loads(nothing.stdout)) == (0, [])

    alone = opentabs("call", "count", '{"number": 1}', "--tools", str(tools))
    assert alone.returncode == 0, alone.stderr
    assert opentabs("call", "cuont", "--tools", str(tools)).returncode == 2
    started = opentabs("start", "--port", "0", "--tools", str(tools))
    assert started.returncode == 0, started.stderr
    try:
        assert opentabs("call", "count", '{"number": 2}').returncode == 0
    finally:
        opentabs("stop")

    calls = json.loads(opentabs("audit", "--json").stdout)
    found = [(each["tool"], each["outcome"], each["code"], each["client"]) for each in calls]
    with_version = f"opentabs call {__version__}"
    assert found == [
        ("count", "succeeded", None, with_version),
        ("cuont", "refused", "UNKNOWN_TOOL", with_version),
        ("count", "succeeded", None, "opentabs call"),
    ]
    [count, cuont] = json.loads(opentabs("stats", "--json").stdout)
    assert (count["tool"], count["calls"], count["failed"]) == ("count", 2, 0)
    assert (cuont["tool"], cuont["refused"], cuont["p50"]) == ("cuont", 1, None)
    assert "✓" in opentabs("audit", "--since", "1h").stdout


def test_with_no_audit_nothing_is_recorded(tmp_path: Path) -> None:
    tools = tmp_path / "counting.py"
    tools.write_text(TOOLS)
    assert opentabs("start", "--port", "0", "--no-audit", "--tools", str(tools)).returncode == 0
    try:
        assert opentabs("call", "count", '{"number": 2}').returncode == 0
    finally:
        opentabs("stop")
    assert not audit_file().exists()


# --- when something goes wrong ---


@dataclass
class Server:
    """A server in its own process.

    Attributes:
        process: The process.
        url: Where it serves MCP.
    """

    process: "subprocess.Popen[str]"
    url: str


@contextmanager
def serving(directory: Path) -> Generator[Server]:
    """Run `opentabs serve` with a Python tool."""
    tools = directory / "counting.py"
    tools.write_text(TOOLS)
    command = [*OPENTABS, "serve", "--port", "0", "--tools", str(tools)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = next(
                found[1] for line in process.stderr if (found := re.search(r"MCP at (\S+)", line))
            )
            yield Server(process, url)
        finally:
            process.terminate()
            process.wait(PATIENT)


async def test_a_killed_server_leaves_a_readable_file_without_at_most_the_last_batch(
    tmp_path: Path,
) -> None:
    returned: dict[str, float] = {}  # when each call ended

    async def flood(url: str, name: str) -> None:
        info = Implementation(name=name, version="1")
        with suppress(Exception):  # the call of the kill
            async with Client(url, client_info=info) as client:
                for number in range(100_000):
                    result = await client.call_tool("count", {"number": number})
                    assert not result.is_error
                    returned[f"{name} {number}"] = time.time()

    with serving(tmp_path) as server:
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "c"):
                tasks.start_soon(flood, server.url, name)
            await until(300)
            seen = time.time()
            # So that there are many calls since then, of which only the last may be missing.
            await poll(lambda: max(returned.values()) > seen + 2 * LOST)
            server.process.kill()
            killed = time.time()
            server.process.wait(PATIENT)
            tasks.cancel_scope.cancel()
    kept = entries()
    safe = sum(at < killed - LOST for at in returned.values())
    assert 0 < safe <= len(kept)
    # Each client's calls are kept from the first one on, without a gap.
    for name in ("a", "b", "c"):
        mine = sum(each.client == f"{name} 1" for each in kept)
        assert mine >= sum(
            at < killed - LOST for key, at in returned.items() if key.startswith(f"{name} ")
        )
    with closing(sqlite3.connect(audit_file())) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_two_servers_write_to_one_file_at_once(tmp_path: Path) -> None:
    each_makes = 150

    async def flood(url: str, name: str) -> None:
        info = Implementation(name=name, version="1")
        async with Client(url, client_info=info) as client:
            for number in range(each_makes):
                assert not (await client.call_tool("count", {"number": number})).is_error

    with serving(tmp_path) as one, serving(tmp_path) as other:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood, one.url, "one")
            tasks.start_soon(flood, other.url, "other")
    counted = Counter(each.client for each in entries())
    assert counted == {"one 1": each_makes, "other 1": each_makes}
    assert count_missed(audit_file()) == 0


def count(number: int) -> int:
    return number


async def test_a_locked_file_delays_no_call_and_the_calls_arrive_later() -> None:
    settings = load_settings(port=0, audit=True)
    async with OpenTabs(tools=[count], settings=settings) as tabs:
        await tabs.call("count", {"number": 0})
        await until(1)
        with closing(sqlite3.connect(audit_file(), isolation_level=None)) as db:
            db.execute("BEGIN EXCLUSIVE")
            with anyio.fail_after(PATIENT):
                for number in range(500):
                    assert await tabs.call("count", {"number": number}) == number
            assert len(entries()) == 1
            db.execute("ROLLBACK")
        await until(501)
    assert len(entries()) == 501


async def test_a_place_where_nothing_can_be_written_is_said_once_and_calls_continue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    audit_file().parent.parent.mkdir()
    audit_file().parent.write_text("a file in the way")
    async with OpenTabs(tools=[count], settings=load_settings(port=0, audit=True)) as tabs:
        for number in range(3):
            assert await tabs.call("count", {"number": number}) == number
            await poll(lambda: "Cannot write the audit" in caplog.text)
    assert caplog.text.count("Cannot write the audit") == 1
    assert "not written in time: 3" in caplog.text


async def test_the_file_stays_within_its_size_and_keeps_the_newest_calls() -> None:
    settings = load_settings(port=0, audit=True, audit_values=True, audit_size=0.5)
    async with OpenTabs(tools=[shout], settings=settings) as tabs:
        for number in range(200):
            await tabs.call("shout", {"text": f"{number} {'x' * 4000}"})
    assert audit_file().stat().st_size <= 600_000
    kept = entries()
    assert 40 < len(kept) < 100
    assert (kept[-1].arguments or "").startswith('{"text":"199 ')


def shout(text: str) -> str:
    return text


# --- in a fleet ---


async def test_in_a_fleet_the_endpoint_and_the_worker_both_record_who_called(
    tmp_path: Path, site: str
) -> None:
    with nats_server(tmp_path) as nats, a_fleet(nats, tmp_path) as fleet:
        worker = fleet.worker("one", "--plugin", str(PROBE), "--open", f"{site}/page")
        settings = load_settings(port=0, audit=True)
        async with (
            endpoint(fleet, workers=1, ready="probe", settings=settings) as tabs,
            Client(tabs.mcp_url, client_info=INFO) as client,
        ):
            assert not (await client.call_tool("probe_echo", {"value": 1})).is_error
            await until(2)
        assert worker.stop() == 0
    one, other = entries()
    assert (one.tool, one.plugin, one.client) == ("probe_echo", "probe", "claude-code 2.1.0")
    assert one.site == site.removeprefix("http://")
    same = ("tool", "plugin", "client", "site", "tab_id", "outcome")
    assert [getattr(one, each) for each in same] == [getattr(other, each) for each in same]
