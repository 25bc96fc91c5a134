"""A fleet with real browsers: four workers with five Chromiums, in separate processes."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest
from mcp import types
from mcp.client import Client

from e2e.chain import PROBE
from e2e.fleet.members import (
    OPENTABS,
    Fleet,
    Nats,
    a_fleet,
    endpoint,
    until,
)
from e2e.processes import descendants, is_browser
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.limits import Limits
from opentabs_py.core.trace.hops import HOPS
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs

WORKERS = ("one", "two", "three", "pair")


@pytest.fixture(scope="module")
def fleet(nats: Nats, tmp_path_factory: pytest.TempPathFactory, site: str) -> Generator[Fleet]:
    with a_fleet(nats, tmp_path_factory.mktemp("fleet")) as fleet:
        for name in WORKERS:
            browsers = ["--browsers", "2"] if name == "pair" else []
            fleet.worker(name, "--plugin", str(PROBE), "--open", f"{site}/{name}", *browsers)
        yield fleet


@pytest.fixture(scope="module")
async def tabs(fleet: Fleet) -> AsyncGenerator[OpenTabs]:
    async with endpoint(fleet, workers=len(WORKERS), ready="probe") as tabs:
        await until(tabs, lambda known: _ready(known) == 5)
        yield tabs


async def listed(client: Client) -> list[dict[str, Any]]:
    result = await client.call_tool("tabs_list", {})
    assert result.structured_content is not None
    shown: list[dict[str, Any]] = result.structured_content["tabs"]
    return shown


async def test_the_tabs_of_all_workers_are_listed_with_their_browsers(tabs: OpenTabs) -> None:
    async with Client(tabs.mcp_url, mode="legacy") as client:
        found = await listed(client)
    names = {tab["browser"] for tab in found}
    assert names == {"one", "two", "three", "pair/browser-1", "pair/browser-2"}
    assert len({tab["tabId"] for tab in found}) == 5
    assert Counter(tab["url"].rpartition("/")[2] for tab in found) == {
        "one": 1,
        "two": 1,
        "three": 1,
        "pair": 2,
    }


async def test_a_call_runs_in_the_tab_that_it_names(tabs: OpenTabs) -> None:
    async with Client(tabs.mcp_url, mode="legacy") as client:
        for number, tab in enumerate(await listed(client)):
            key = f"named-{number}"
            await tabs.call("probe_run", {"tabId": tab["tabId"], "key": key})
            waited = {"tabId": tab["tabId"], "what": "finished", "key": key}
            assert await tabs.call("probe_await", waited) is not None


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_question_says_where_its_call_runs_which_runs_nowhere_else(
    tabs: OpenTabs, fleet: Fleet, site: str, mode: Any
) -> None:
    known = (await tabs.call("tabs_list"))["tabs"]
    [two] = [each for each in known if each["browser"] == "two"]
    asked: list[str] = []

    async def allow(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message.splitlines()[0])
        return types.ElicitResult(action="accept", content={"answer": "once"})

    settings = load_settings(port=0, permissions={"probe": "ask"})
    on = f"wants to use probe_echo, “Echo” on {urlsplit(site).netloc}"
    records: list[CallRecord] = []
    callback: Any = allow
    async with (
        endpoint(fleet, workers=len(WORKERS), ready="probe", settings=settings) as asking,
        Client(asking.mcp_url, mode=mode, elicitation_callback=callback) as client,
    ):
        asking.observe(records.append)
        for given, told in (({}, on), ({"tabId": two["tabId"]}, f'{on} (tab "{two["title"]}")')):
            result = await client.call_tool("probe_echo", {"value": 1, **given})
            assert not result.is_error, result.content
            assert f"{told}. Allow it?" in asked.pop()
        assert records[-1].tab_id == two["tabId"]
        assert records[-1].allowed == "client: once"
        refused = await client.call_tool("probe_echo", {"values": 1})
        assert "there is no such argument" in str(refused.content)
        assert not asked  # about a call that its worker would refuse


async def test_a_tab_that_no_worker_has_is_refused(tabs: OpenTabs) -> None:
    with pytest.raises(CallError) as refused:
        await tabs.call("probe_echo", {"tabId": 7, "value": 1})
    assert refused.value.detail.code == "TAB_NOT_FOUND"


async def test_many_calls_are_shared_among_all_workers(tabs: OpenTabs) -> None:
    steps = [{"wait": 60000}]
    async with anyio.create_task_group() as tasks:
        for number in range(32):  # as many as all can handle
            tasks.start_soon(tabs.call, "probe_run", {"key": f"share-{number}", "steps": steps})
        await until(tabs, lambda known: [each.total_running for each in known] == [8] * 4)
        tasks.cancel_scope.cancel()
    await until(tabs, lambda known: not any(each.total_running for each in known))


async def test_an_error_of_a_tool_arrives_with_all_its_fields(tabs: OpenTabs) -> None:
    with pytest.raises(CallError) as failed:
        await tabs.call("probe_fail", {"kind": "tool"})
    with pytest.raises(CallError) as refused:
        await tabs.call("probe_run", {"steps": "none"})
    assert failed.value.detail.category is not None
    assert refused.value.detail.code == "INVALID_ARGUMENTS"


async def test_reports_and_the_result_of_a_page_arrive(tabs: OpenTabs) -> None:
    steps = [{"report": {"progress": n, "total": 50, "message": f"{n}"}} for n in range(50)]
    call = await tabs.start("probe_run", {"key": "reports", "steps": steps, "result": "done"})
    assert await call.result() == {"key": "reports", "result": "done"}
    assert [report.message for report in call.progress] == [str(n) for n in range(50)]
    assert [report.seq for report in call.progress] == [*range(50)]


async def test_a_silent_tool_times_out_in_its_worker(tabs: OpenTabs) -> None:
    with pytest.raises(CallError) as timed_out:
        await tabs.call(
            "probe_run", {"key": "idle", "steps": [{"wait": 60000}]}, limits=Limits(idle=0.3)
        )
    assert timed_out.value.detail.code == "TIMEOUT_IDLE"


async def test_a_client_works_in_its_own_tab_which_is_closed_when_it_goes(
    tabs: OpenTabs, site: str
) -> None:
    async with Client(tabs.mcp_url, mode="legacy") as mine:
        opened = (await mine.call_tool("tabs_open", {"url": f"{site}/own"})).structured_content
        assert opened is not None
        own = opened["tabId"]
        for number in range(10):
            run = await mine.call_tool("probe_run", {"key": f"own-{number}"})
            assert not run.is_error, run.content
        waited = {"tabId": own, "what": "finished", "key": "own-9"}
        result = await mine.call_tool("probe_await", waited)
        assert not result.is_error, result.content
        async with Client(tabs.mcp_url, mode="legacy") as other:
            assert own not in [tab["tabId"] for tab in await listed(other)]
            stolen = await other.call_tool("probe_echo", {"tabId": own, "value": 1})
            assert stolen.meta is not None
            assert stolen.meta["opentabs/error"]["code"] == "TAB_NOT_YOURS"
    await until(tabs, lambda known: _ready(known) == 5)


async def test_a_client_that_closed_its_own_tab_uses_all_workers_again(
    tabs: OpenTabs, site: str
) -> None:
    steps = [{"wait": 60000}]
    async with Client(tabs.mcp_url, mode="legacy") as mine, anyio.create_task_group() as tasks:
        opened = (await mine.call_tool("tabs_open", {"url": f"{site}/own"})).structured_content
        assert opened is not None
        assert not (await mine.call_tool("tabs_close", {"tabId": opened["tabId"]})).is_error
        await until(tabs, lambda known: _ready(known) == 5)
        for number in range(4):
            arguments = {"key": f"again-{number}", "steps": steps}
            tasks.start_soon(mine.call_tool, "probe_run", arguments)
        await until(tabs, lambda known: [each.total_running for each in known] == [1] * 4)
        tasks.cancel_scope.cancel()
    await until(tabs, lambda known: not any(each.total_running for each in known))


@pytest.mark.parametrize("browser", ["two", "pair/browser-2"])
async def test_a_tab_is_opened_in_the_browser_that_is_named(
    tabs: OpenTabs, site: str, browser: str
) -> None:
    async with Client(tabs.mcp_url, mode="legacy") as client:
        wanted = {"url": f"{site}/own", "browser": browser}
        opened = (await client.call_tool("tabs_open", wanted)).structured_content
        assert opened is not None
        assert opened["browser"] == browser
        found = {tab["tabId"]: tab["browser"] for tab in await listed(client)}
        assert found[opened["tabId"]] == browser
    await until(tabs, lambda known: _ready(known) == 5)


async def test_a_browser_that_no_worker_has_is_refused_with_the_names_of_those_that_are(
    tabs: OpenTabs, site: str
) -> None:
    async with Client(tabs.mcp_url, mode="legacy") as client:
        for wrong in ("four", "pair", "pair/browser-3"):
            wanted = {"url": f"{site}/own", "browser": wrong}
            refused = await client.call_tool("tabs_open", wanted)
            assert refused.is_error
            [said] = refused.content
            assert said.type == "text"
            assert f"There is no browser '{wrong}'" in said.text
            for name in ("one", "two", "three", "pair/browser-1", "pair/browser-2"):
                assert name in said.text


async def test_only_a_tab_of_ones_own_is_closed(tabs: OpenTabs) -> None:
    async with Client(tabs.mcp_url, mode="legacy") as client:
        before = await listed(client)
        refused = await client.call_tool("tabs_close", {"tabId": before[0]["tabId"]})
        [said] = refused.content
        assert said.type == "text"
        assert "code=TAB_NOT_YOURS" in said.text
        assert len(await listed(client)) == len(before)


async def test_a_killed_endpoint_has_its_calls_aborted_in_their_pages(
    tabs: OpenTabs, fleet: Fleet
) -> None:
    async with Client(tabs.mcp_url, mode="legacy") as client:
        tab = (await listed(client))[0]["tabId"]
    arguments = f'{{"tabId": {tab}, "key": "orphan", "steps": [{{"wait": 60000}}]}}'
    command = [*OPENTABS, "call", "probe_run", arguments, *fleet.options]
    caller = await anyio.open_process(command, stderr=subprocess.DEVNULL)
    await until(tabs, lambda known: any(each.total_running for each in known))
    caller.kill()
    await caller.wait()
    with anyio.fail_after(PATIENT):
        waited = {"tabId": tab, "what": "aborted", "key": "orphan"}
        assert await tabs.call("probe_await", waited) is not None


async def test_a_browser_that_dies_loses_its_call_and_comes_back(tabs: OpenTabs) -> None:
    worker = next(each for each in tabs.internals.fleet.directory.usable if each.name == "one")
    async with Client(tabs.mcp_url, mode="legacy") as client:
        tab = next(each["tabId"] for each in await listed(client) if each["browser"] == "one")
    steps = [{"wait": 60000}]
    call = await tabs.start("probe_run", {"tabId": tab, "key": "dies", "steps": steps})
    [browser] = [pid for pid in descendants(worker.pid) if is_browser(pid)]
    os.kill(browser, signal.SIGKILL)
    with anyio.fail_after(PATIENT):
        await call.wait()
    assert isinstance(call.error, CallError)
    await until(tabs, lambda known: _restarts(known, "one") == 1 and _ready(known) == 5)


async def test_a_client_whose_tab_died_with_its_browser_uses_all_workers_again(
    tabs: OpenTabs, site: str
) -> None:
    two = next(each for each in tabs.internals.fleet.directory.usable if each.name == "two")
    steps = [{"wait": 60000}]
    async with Client(tabs.mcp_url, mode="legacy") as mine, anyio.create_task_group() as tasks:
        wanted = {"url": f"{site}/own", "browser": "two"}
        assert not (await mine.call_tool("tabs_open", wanted)).is_error
        [browser] = [pid for pid in descendants(two.pid) if is_browser(pid)]
        os.kill(browser, signal.SIGKILL)
        await until(tabs, lambda known: _restarts(known, "two") == 1 and _ready(known) == 5)
        await mine.call_tool("probe_echo", {"value": 1})
        for number in range(4):
            arguments = {"key": f"freed-{number}", "steps": steps}
            tasks.start_soon(mine.call_tool, "probe_run", arguments)
        await until(tabs, lambda known: [each.total_running for each in known] == [1] * 4)
        tasks.cancel_scope.cancel()
    await until(tabs, lambda known: not any(each.total_running for each in known))


def _ready(workers: Sequence[Announcement]) -> int:
    return sum(each.total_ready["probe"] for each in workers)


def _restarts(workers: Sequence[Announcement], name: str) -> int:
    return next(each.restarts for each in workers if each.name == name)


async def test_a_trace_shows_the_hop_of_the_fleet_and_those_in_the_browser(tabs: OpenTabs) -> None:
    call = await tabs.start("probe_echo", {"value": 1})
    await call.result()
    assert call.record is not None
    falls = call.record.waterfall()
    assert [span.hop for span in falls.spans] == [
        "server",
        "endpoint → worker",
        "worker of the fleet",
        *(hop for hop, _ in HOPS[2:9]),
        "worker → endpoint",
    ]
    assert call.record.url is not None


async def test_only_tools_that_work_in_some_worker_are_listed_if_asked(
    nats: Nats, tmp_path: Path, site: str
) -> None:
    with a_fleet(nats, tmp_path) as fleet:
        fleet.worker("one", "--plugin", str(PROBE))
        async with (
            endpoint(fleet, workers=1, settings=load_settings(port=0, expose="ready")) as chosen,
            Client(chosen.mcp_url, mode="legacy") as client,
        ):
            assert "probe_echo" not in await names(client)
            await client.call_tool("tabs_open", {"url": f"{site}/page"})
            with anyio.fail_after(PATIENT):
                while "probe_echo" not in await names(client):
                    await chosen.internals.fleet.changed().wait()


async def names(client: Client) -> list[str]:
    return [each.name for each in (await client.list_tools()).tools]
