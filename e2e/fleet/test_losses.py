"""Calls of a fleet while processes are killed or paused and networks are cut or slow."""

import json
import signal
import subprocess

import anyio
import anyio.to_thread
import pytest

from e2e.fleet.members import (
    OPENTABS,
    PATIENT_OPENTABS,
    Fleet,
    Network,
    endpoint,
    poll,
    until,
    until_missed,
)
from e2e.waiting import PATIENT
from opentabs_py.core.fleet.liveness import BEAT_EVERY
from opentabs_py.errors import ChainError


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


async def test_a_call_that_is_cancelled_while_nats_is_away_does_not_run_when_it_is_back(
    fleet: Fleet,
) -> None:
    fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        fleet.nats.kill()
        async with anyio.create_task_group() as calls:
            # The first may be sent into the connection that has just ended.
            calls.start_soon(tabs.call, "work", {"key": "first"})
            await poll(lambda: not tabs.internals.fleet.link.connected)
            calls.start_soon(tabs.call, "work", {"key": "second"})
            await poll(lambda: tabs.internals.fleet.running == 2)
            calls.cancel_scope.cancel()
        fleet.nats.start()
        with anyio.fail_after(PATIENT):
            assert await tabs.call("work", {"key": "after"}) == "after"
            await until(tabs, lambda known: [each.calls for each in known] == [1])
        assert fleet.count("began") == {"after": 1}


async def test_a_worker_behind_a_cut_network_loses_its_calls_on_both_sides(
    fleet: Fleet,
) -> None:
    async with Network(fleet.nats.port) as network:
        fleet.worker("far", nats=f"nats://127.0.0.1:{network.port}")
        await _use_behind(network, fleet)


async def _use_behind(network: Network, fleet: Fleet) -> None:
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


async def test_a_killed_worker_that_is_started_again_with_its_name_takes_calls(
    fleet: Fleet,
) -> None:
    killed = fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        killed.kill()
        again = fleet.worker("one")
        await until(tabs, lambda known: [each.pid for each in known] == [again.process.pid])
        assert await tabs.call("who") == again.process.pid
