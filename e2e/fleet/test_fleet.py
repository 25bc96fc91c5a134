"""A fleet: a real NATS server, workers in separate processes, and endpoints."""

import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp.client import Client
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from e2e.chain import PROBE
from e2e.fleet.members import (
    OPENTABS,
    PATIENT_OPENTABS,
    Fleet,
    Nats,
    Network,
    a_fleet,
    endpoint,
    nats_server,
    poll,
    until,
    until_missed,
)
from e2e.waiting import PATIENT
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.settings import load_settings
from opentabs_py.core.fleet.liveness import BEAT_EVERY
from opentabs_py.core.fleet.messages import FLEET_VERSION, encode
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import ChainError
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import Received, nats_link
from opentabs_py.fleet.worker import FleetWorker
from opentabs_py.session.session import OpenTabs
from opentabs_py.session.worker import run_worker
from opentabs_py.tracing.otel import span_exporter
from tests.clients import hearing
from tests.session.built import build


@pytest.fixture(scope="module")
def shared(nats: Nats, tmp_path_factory: pytest.TempPathFactory) -> Generator[Fleet]:
    """A fleet with a worker named one that no test disturbs."""
    with a_fleet(nats, tmp_path_factory.mktemp("shared")) as fleet:
        fleet.worker("one", "--label", "site=eu")
        yield fleet


def opentabs(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OPENTABS, *args], capture_output=True, text=True, timeout=60, check=False
    )


def double(value: int) -> int:
    return 2 * value


def worker_in_this_process(
    fleet: Fleet, look: Callable[[OpenTabs, FleetWorker], Awaitable[None]], **settings: Any
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return a function that runs a worker with one tool until cancelled; `look` gets it first."""
    return partial(
        run_worker,
        FleetOptions(fleet.nats.url, fleet.name),
        load_settings(port=0, **settings),
        name="one",
        browsers=1,
        max_calls=1,
        on_ready=look,
        tools=[double],
    )


async def run(*args: str) -> subprocess.CompletedProcess[str]:
    return await anyio.to_thread.run_sync(lambda: opentabs(*args))


# --- calls ---


async def test_calls_are_spread_over_the_workers(fleet: Fleet) -> None:
    for name in ("one", "two"):
        fleet.worker(name, "--max-calls", "5")
    async with endpoint(fleet, workers=2) as tabs:
        used: list[int] = []

        async def call() -> None:
            await tabs.call("work", {"key": "k", "seconds": 0.5})
            used.append(await tabs.call("who"))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):  # as many as both can handle
                tasks.start_soon(call)
        assert len(set(used)) == 2


async def test_reports_arrive_in_order_and_each_once(shared: Fleet) -> None:
    async with endpoint(shared, workers=1) as tabs:
        reports: list[ProgressReport] = []
        value = await tabs.call("work", {"key": "k", "reports": 2000}, on_progress=reports.append)
        assert value == "k"
        assert [report.message for report in reports] == [str(n) for n in range(2000)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_mcp_client_gets_progress_and_the_result(shared: Fleet, mode: Any) -> None:
    async with endpoint(shared, workers=1) as tabs, Client(tabs.mcp_url, mode=mode) as mcp:
        came: list[str | None] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            assert progress >= 0
            assert total is None
            came.append(message)

        result = await mcp.call_tool(
            "work", {"key": "k", "reports": 3, "seconds": 0.3}, progress_callback=note
        )
        assert not result.is_error
        assert came == ["0", "1", "2"]


async def test_a_result_of_many_megabytes_arrives_whole(shared: Fleet) -> None:
    async with endpoint(shared, workers=1) as tabs:
        size = 48 * 1024 * 1024
        assert await tabs.call("big", {"size": size}) == "0123456789abcdef" * (size // 16)


async def test_a_cancelled_call_is_cancelled_in_its_worker(shared: Fleet) -> None:
    async with endpoint(shared, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 60})
        await shared.until("began", "k")
        call.cancel()
        await shared.until("cancelled", "k")
        await until(tabs, lambda known: known[0].total_running == 0)


async def test_only_workers_with_all_labels_are_used(fleet: Fleet) -> None:
    fleet.worker("eu", "--label", "site=eu", "--label", "tier=gold")
    fleet.worker("us", "--label", "site=us")
    async with endpoint(fleet, workers=1, labels={"site": "eu"}) as tabs:
        assert [each.name for each in tabs.internals.fleet.directory.usable] == ["eu"]
        await tabs.call("who")


# --- when workers are full ---


async def test_a_call_that_waits_says_its_place_and_then_runs(fleet: Fleet) -> None:
    fleet.worker("one", "--max-calls", "1")
    async with endpoint(fleet, workers=1) as tabs:
        first = await tabs.start("work", {"key": "first", "seconds": 60})
        await fleet.until("began", "first")
        said: list[str | None] = []
        waiting = anyio.Event()

        def note(report: ProgressReport) -> None:
            said.append(report.message)
            waiting.set()

        async with anyio.create_task_group() as tasks:

            async def second() -> None:
                assert await tabs.call("work", {"key": "second"}, on_progress=note) == "second"

            tasks.start_soon(second)
            with anyio.fail_after(PATIENT):
                await waiting.wait()
            assert said == ["All workers are full; this call is next."]
            assert fleet.count("began")["second"] == 0
            first.cancel()


async def test_more_calls_than_may_wait_are_refused_with_when_to_retry(fleet: Fleet) -> None:
    fleet.worker("one", "--max-calls", "1")
    async with endpoint(fleet, workers=1, queue=1) as tabs:
        calls = [await tabs.start("work", {"key": "k", "seconds": 60})]
        await fleet.until("began", "k")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tabs.start, "work", {"key": "waits"})
            await poll(lambda: tabs.internals.fleet.waiting == 1)
            with pytest.raises(ChainError) as refused:
                await tabs.call("work", {"key": "refused"})
            detail = refused.value.detail
            assert (detail.code, detail.retryable) == ("FLEET_BUSY", True)
            assert detail.retry_after is not None
            assert detail.retry_after >= 1
            calls[0].cancel()
        assert fleet.count("began")["refused"] == 0


# --- when something fails ---


async def test_a_killed_worker_loses_its_calls_and_says_that_they_may_have_run(
    fleet: Fleet,
) -> None:
    doomed = fleet.worker("doomed")
    async with endpoint(fleet, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 60})
        await fleet.until("began", "k")
        fleet.worker("other")
        await until(tabs, lambda known: len(known) == 2)
        doomed.kill()
        with anyio.fail_after(PATIENT):
            await call.wait()
        assert isinstance(call.error, ChainError)
        assert call.error.detail.code == "WORKER_LOST"
        assert "may have run" in call.error.detail.message
        assert await tabs.call("work", {"key": "after"}) == "after"
        assert fleet.count("began")["k"] == 1


async def test_a_call_whose_worker_dies_before_it_arrives_runs_in_another(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that the endpoint learns only by the call that the worker is gone.
    monkeypatch.setattr("opentabs_py.fleet.directory.SILENT_FOR", PATIENT)
    fleet.worker("full", "--max-calls", "1")
    async with endpoint(fleet, workers=1) as tabs:
        joined = tabs.internals.fleet
        release = fleet.directory / "release"
        first = await tabs.start("work", {"key": "first", "until": str(release)})
        await fleet.until("began", "first")
        doomed = fleet.worker("doomed")
        await until(tabs, lambda known: len(known) == 2)
        [dead] = [each for each in joined.directory.usable if each.name == "doomed"]
        doomed.kill()
        await until_missed(fleet, dead)

        async with anyio.create_task_group() as tasks:

            async def second() -> None:
                assert await tabs.call("work", {"key": "second"}) == "second"

            tasks.start_soon(second)
            await poll(lambda: joined.running == 2)  # one in the full worker, so one in the dead
            await poll(lambda: joined.waiting == 1)
            assert [each.name for each in joined.directory.usable] == ["full"]
            release.touch()
        assert await first.result() == "first"
        assert fleet.count("began") == {"first": 1, "second": 1}


async def test_a_killed_endpoint_has_its_calls_cancelled(shared: Fleet) -> None:
    async with endpoint(shared, workers=1):
        arguments = json.dumps({"key": "k", "seconds": 60})
        command = [*OPENTABS, "call", "work", arguments, *shared.options]
        caller = await anyio.open_process(command, stderr=subprocess.DEVNULL)
        await shared.until("began", "k")
        caller.kill()
        await caller.wait()
        await shared.until("cancelled", "k")


async def test_a_call_continues_while_nats_restarts(fleet: Fleet) -> None:
    fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 3, "reports": 300})
        await fleet.until("began", "k")
        fleet.nats.kill()
        await anyio.sleep(1)  # while NATS is away
        fleet.nats.start()
        with anyio.fail_after(PATIENT):
            assert await call.result() == "k"
        assert [report.message for report in call.progress] == [str(n) for n in range(300)]
        assert fleet.count("began")["k"] == 1


async def test_a_worker_behind_a_cut_network_loses_its_calls_on_both_sides(
    fleet: Fleet,
) -> None:
    async with Network(fleet.nats.port) as network:
        fleet.worker("far", nats=f"nats://127.0.0.1:{network.port}")
        await use_behind(network, fleet)


async def use_behind(network: Network, fleet: Fleet) -> None:
    async with endpoint(fleet, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 60})
        await fleet.until("began", "k")
        network.open = False  # nothing is closed, and nothing gets through
        with anyio.fail_after(PATIENT):
            await call.wait()
        assert isinstance(call.error, ChainError)
        assert call.error.detail.code == "WORKER_LOST"
        await fleet.until("cancelled", "k")
        network.open = True
        await until(tabs, lambda known: len(known) == 1)
        assert await tabs.call("work", {"key": "after"}) == "after"


@pytest.mark.parametrize("slow", ["worker", "endpoint"])
async def test_a_long_result_on_a_slow_network_delays_no_other_call(
    slow: str, fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    # NATS closes a connection after 6 s without an answer to its pings. The result takes 32 s at
    # the first rate, and 8 s at the second.
    async with Network(fleet.nats.port, rate=100_000) as network:
        address = f"nats://127.0.0.1:{network.port}"
        worker = fleet.worker("one", nats=address if slow == "worker" else None)
        nats = address if slow == "endpoint" else None
        async with endpoint(fleet, workers=1, nats=nats) as tabs:
            long = await tabs.start("big", {"size": 3_200_000})
            for key in ("one", "two"):
                assert await tabs.call("work", {"key": key}) == key
            assert not long.ended
            network.rate = 400_000
            with anyio.fail_after(PATIENT):
                assert len(await long.result()) == 3_200_000
        assert "Disconnected" not in worker.log.read_text() + caplog.text


async def test_a_killed_worker_that_is_started_again_with_its_name_takes_calls(
    fleet: Fleet,
) -> None:
    killed = fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        killed.kill()
        again = fleet.worker("one")
        await until(tabs, lambda known: [each.pid for each in known] == [again.process.pid])
        assert await tabs.call("who") == again.process.pid


async def test_an_endpoint_waits_for_the_first_worker_to_answer(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.endpoint.KNOWN_WITHIN", PATIENT)
    options = FleetOptions(fleet.nats.url, fleet.name)
    async with nats_link(options, version="1") as link, anyio.create_task_group() as tasks:

        async def answer() -> None:
            await anyio.sleep(1)  # as on a busy machine
            slow = Identity("slow", "1", 1).announce("serving", ["0"])
            link.publish(link.subjects.workers, encode(slow))

        def handle(_who: Received) -> None:
            tasks.start_soon(answer)

        await link.subscribe(link.subjects.who, handle)
        async with OpenTabs(nats=options, settings=load_settings(port=0)) as tabs:
            assert [each.name for each in tabs.internals.fleet.directory.usable] == ["slow"]


async def test_a_second_worker_with_the_same_name_is_refused(shared: Fleet) -> None:
    async with endpoint(shared, workers=1):
        second = await run("worker", *shared.options, "--name", "one")
        assert second.returncode == 3
        assert "A worker named one is already in the fleet" in " ".join(second.stderr.split())


async def test_a_second_worker_with_the_same_name_is_refused_while_the_first_one_starts(
    fleet: Fleet,
) -> None:
    refused: list[subprocess.CompletedProcess[str]] = []

    async def start_another(_tabs: OpenTabs, _worker: FleetWorker) -> None:
        refused.append(await run("worker", *fleet.options, "--name", "one"))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker_in_this_process(fleet, start_another))
    [second] = refused
    assert second.returncode == 3
    assert "A worker named one is already in the fleet" in " ".join(second.stderr.split())


async def test_a_worker_of_another_version_is_refused_with_both_versions(
    shared: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    async with endpoint(shared, workers=1) as tabs:
        link = tabs.internals.fleet.link
        strange = {"version": 99, "name": "strange", "instance": "f" * 16, "opentabs": "9.9.9"}
        link.publish(link.subjects.workers, json.dumps(strange).encode())
        await poll(lambda: bool(tabs.internals.fleet.directory.refused))
        [why] = tabs.internals.fleet.directory.refused.values()
        assert "opentabs-py 9.9.9 (fleet protocol 99)" in why
        assert f"(fleet protocol {FLEET_VERSION})" in why
        assert why in caplog.messages


# --- the commands ---


async def test_a_drained_worker_ends_its_calls_takes_no_more_and_leaves(fleet: Fleet) -> None:
    worker = fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        release = fleet.directory / "release"
        call = await tabs.start("work", {"key": "k", "until": str(release)})
        await fleet.until("began", "k")
        other = fleet.worker("two")
        await until(tabs, lambda known: len(known) == 2)
        drained = await run("fleet", "drain", "one", *fleet.options)
        assert drained.returncode == 0, drained.stderr
        await until(tabs, lambda known: [each.name for each in known] == ["two"])
        assert await tabs.call("who") == other.process.pid
        assert not call.ended
        release.touch()
        assert await call.result() == "k"
        assert await anyio.to_thread.run_sync(lambda: worker.process.wait(PATIENT)) == 0


async def test_status_shows_the_workers(fleet: Fleet) -> None:
    none = await run("fleet", "status", *fleet.options)
    assert (none.returncode, none.stdout) == (3, "")
    fleet.worker("one", "--label", "site=eu", "--max-calls", "3")
    async with endpoint(fleet, workers=1):
        shown = await run("fleet", "status", *fleet.options)
        assert shown.returncode == 0
        assert "● one" in shown.stdout
        assert "site=eu" in shown.stdout
        status = json.loads((await run("fleet", "status", "--json", *fleet.options)).stdout)
        [document], [seen] = status["workers"], status["endpoints"]
        assert (seen["pid"], seen["running"], seen["waiting"]) == (os.getpid(), 0, 0)
        assert document["name"] == "one"
        assert document["labels"] == {"site": "eu"}
        assert document["maxCalls"] == 3


async def test_call_calls_a_tool_of_a_worker(shared: Fleet) -> None:
    async with endpoint(shared, workers=1):
        call = await run("call", "work", '{"key": "k", "reports": 2}', *shared.options)
        assert (call.returncode, call.stdout) == (0, "k\n"), call.stderr


@pytest.mark.parametrize("wanted", [["--fleet", "empty"], ["--label", "site=us"]])
async def test_a_call_that_no_worker_can_take_is_not_blamed_on_its_tool(
    shared: Fleet, wanted: list[str]
) -> None:
    called = opentabs("call", "work", "{}", "--json", *shared.options, *wanted)
    error = json.loads(called.stdout)["error"]
    assert (called.returncode, error["code"], error["retryable"]) == (3, "NO_WORKER", True)
    assert wanted[1] in error["message"]


async def test_the_first_signal_drains_a_worker_and_the_second_stops_it(fleet: Fleet) -> None:
    worker = fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 60})
        await fleet.until("began", "k")
        worker.process.send_signal(signal.SIGTERM)
        await until(tabs, lambda known: known == [])
        assert not call.ended
        worker.process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(lambda: worker.process.wait(PATIENT)) == 0
        with anyio.fail_after(PATIENT):
            await call.wait()
        assert isinstance(call.error, ChainError)
        assert call.error.detail.code == "SERVER_STOPPED"
        await fleet.until("cancelled", "k")


async def test_the_error_without_nats_names_the_address_and_hides_the_password() -> None:
    refused = await run("fleet", "status", "--nats", "nats://me:secret@127.0.0.1:1")
    assert refused.returncode == 3
    assert "Cannot connect to NATS at nats://127.0.0.1:1" in " ".join(refused.stderr.split())
    assert "secret" not in refused.stderr


async def test_a_nats_server_that_accepts_only_short_messages_is_refused_with_the_setting(
    tmp_path: Path,
) -> None:
    with nats_server(tmp_path, "max_payload: 64KB") as nats:
        refused = await run("worker", "--nats", nats.url, "--name", "one")
    assert refused.returncode == 3
    said = " ".join(refused.stderr.split())
    assert "accepts messages of 65,536 bytes at most, and a fleet needs 65,545" in said
    assert "Set max_payload" in said


@pytest.mark.parametrize("url", ["http://127.0.0.1", "127.0.0.1:4222", "nats://"])
def test_an_invalid_address_is_refused(url: str) -> None:
    refused = opentabs("fleet", "status", "--nats", url)
    assert refused.returncode == 2
    assert "is not the address of a NATS server" in " ".join(refused.stderr.split())


async def test_a_browser_over_its_call_limit_is_replaced_once_idle(fleet: Fleet, site: str) -> None:
    page = f"{site}/page"
    options = ["--plugin", str(PROBE), "--open", page, "--browsers", "2", "--recycle-after", "3"]
    fleet.worker("one", *options)
    async with endpoint(fleet, workers=1, ready="probe") as tabs:
        await until(tabs, lambda known: known[0].total_ready["probe"] == 2)
        steps = [{"wait": 60000}]
        first, second = [
            await tabs.start("probe_run", {"key": key, "steps": steps}) for key in ("a", "b")
        ]  # one in each browser
        for number in range(8):
            assert await tabs.call("probe_echo", {"value": number}) == {"value": number}
        assert not first.ended
        assert not second.ended
        first.cancel()
        await until(
            tabs, lambda known: known[0].restarts == 1 and known[0].total_ready["probe"] == 2
        )
        assert not second.ended
        second.cancel()
        await until(
            tabs, lambda known: known[0].restarts == 2 and known[0].total_ready["probe"] == 2
        )


async def test_a_worker_offers_nothing_that_acts_on_any_page_whatever_its_settings_say(
    nats: Nats, tmp_path: Path
) -> None:
    # Endpoints know the tools of plugins, but not those that come and go with pages.
    with a_fleet(nats, tmp_path) as fleet:
        async with anyio.create_task_group() as tasks:
            offered: list[str] = []
            began = anyio.Event()

            async def look(tabs: OpenTabs, _worker: FleetWorker) -> None:
                assert not tabs.internals.launches_browser  # because there is nothing for it to do
                offered.extend(tool.name for tool in tabs.tools)
                began.set()

            pages_too = {"hands": True, "webmcp": ["http://127.0.0.1/*"]}
            tasks.start_soon(worker_in_this_process(fleet, look, **pages_too))
            with anyio.fail_after(PATIENT):
                await began.wait()
            tasks.cancel_scope.cancel()
    assert "double" in offered
    assert [name for name in offered if name.startswith("page_")] == []


async def test_the_opentelemetry_context_crosses_the_fleet(nats: Nats, tmp_path: Path) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))

    with a_fleet(nats, tmp_path) as fleet:

        async def observe(tabs: OpenTabs, _worker: FleetWorker) -> None:
            tabs.observe(span_exporter(tracer_provider=provider))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker_in_this_process(fleet, observe))
            async with endpoint(fleet, workers=1) as tabs:
                with provider.get_tracer("test").start_as_current_span("the caller"):
                    assert await tabs.call("double", {"value": 2}) == 4
            tasks.cancel_scope.cancel()
    call, caller = (
        next(span for span in spans.get_finished_spans() if span.name == name)
        for name in ("opentabs.call double", "the caller")
    )
    assert call.parent is not None
    assert call.context is not None
    assert caller.context is not None
    assert call.context.trace_id == caller.context.trace_id
    assert call.parent.span_id == caller.context.span_id


async def test_an_endpoint_in_the_background_says_how_many_workers_it_has(
    shared: Fleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with endpoint(shared, workers=1):
        started = await run("start", "--port", "0", *shared.options)
        try:
            assert "endpoint of 1 worker at nats://" in " ".join(started.stderr.split())
            status = json.loads((await run("status", "--json")).stdout)
            assert [each["name"] for each in status[0]["fleet"]["workers"]] == ["one"]
            called = await run("call", "work", '{"key": "background"}')
            assert (called.returncode, called.stdout) == (0, "background\n")
            plugin = build(tmp_path / "chat")
            for key in ("first", "second"):
                beside = await run("call", "work", f'{{"key": "{key}"}}', "--plugin", str(plugin))
                assert (beside.returncode, beside.stdout) == (0, f"{key}\n"), beside.stderr
                assert "this server's plugins are on its workers" in beside.stderr
        finally:
            assert (await run("stop")).returncode == 0


async def test_a_worker_that_pauses_for_a_moment_keeps_its_calls(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On both sides, because on a busy machine a moment may last longer than silence may.
    monkeypatch.setattr("opentabs_py.core.fleet.liveness.SILENT_FOR", PATIENT)
    worker = fleet.worker("one", opentabs=PATIENT_OPENTABS)
    async with endpoint(fleet, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 3, "reports": 30})
        await fleet.until("began", "k")
        worker.process.send_signal(signal.SIGSTOP)
        await anyio.sleep(4 * BEAT_EVERY)  # several heartbeats are missed
        worker.process.send_signal(signal.SIGCONT)
        with anyio.fail_after(PATIENT):
            assert await call.result() == "k"
        assert [report.message for report in call.progress] == [str(n) for n in range(30)]


async def test_a_worker_that_pauses_for_long_loses_its_calls_and_cancels_them(
    fleet: Fleet,
) -> None:
    worker = fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 60})
        await fleet.until("began", "k")
        worker.process.send_signal(signal.SIGSTOP)
        with anyio.fail_after(PATIENT):
            await call.wait()
        assert isinstance(call.error, ChainError)
        assert call.error.detail.code == "WORKER_LOST"
        worker.process.send_signal(signal.SIGCONT)
        await fleet.until("cancelled", "k")
        await until(tabs, lambda known: len(known) == 1)
        assert await tabs.call("work", {"key": "after"}) == "after"


async def test_clients_are_notified_when_a_worker_brings_other_tools(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.worker("one")
    (tmp_path / "others.py").write_text("def other() -> int:\n    return 7\n")
    async with endpoint(fleet, workers=1) as tabs, hearing(tabs.mcp_url, "legacy") as client:
        assert "other" not in await client.tools()
        fleet.worker("two", "--tools", "others.py:other")
        while "other" not in await client.tools():
            await client.wait_for_change()
        assert await tabs.call("other") == 7
