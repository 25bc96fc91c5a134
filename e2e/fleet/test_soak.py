"""Calls in a fleet while workers, an endpoint and NATS are killed: each ends, none runs twice.

It is small by default, like any other test; `make soak` runs it at full size. SEED=… repeats the
kills of an earlier run.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from e2e.fleet.caller import REFUSED, call_all, command
from e2e.fleet.members import Fleet, Worker, a_fleet, endpoint, nats_server, until

IS_SOAK = "SOAK" in os.environ
CALLS, KILLS = (10_000, 100) if IS_SOAK else (200, 6)
WORKERS = ("one", "two", "three", "four")
MAX_CALLS = 3  # fewer than concurrent calls, so that some wait
NATS_AWAY = 1.0  # s, at most
SAY_EVERY = 10.0  # s

Victim = Literal["worker", "endpoint", "nats"]
VICTIMS: tuple[Victim, ...] = get_args(Victim)


class Soak:
    """A fleet whose parts are killed and restarted, and the outcomes of its calls.

    Args:
        fleet: The fleet.
        seed: Determines what is killed, and when.
    """

    def __init__(self, fleet: Fleet, seed: str) -> None:
        self.attempts: dict[str, str] = {}  # how they ended, by their keys
        self.ended: Counter[str] = Counter()  # calls, by endpoint
        self.kills: Counter[str] = Counter()
        self._fleet = fleet
        self._chance = random.Random(seed)
        self._workers: dict[str, Worker] = {}
        self._caller: Process | None = None

    def note(self, endpoint: str, key: str, end: str) -> None:
        """Record the outcome of an attempt."""
        assert key not in self.attempts
        self.attempts[key] = end
        self.ended[endpoint] += end not in REFUSED

    def start_worker(self, name: str) -> None:
        """Start a worker, or restart it after it has ended."""
        self._workers[name] = self._fleet.worker(name, "--max-calls", str(MAX_CALLS))

    async def supervise(self) -> None:
        """Restart workers that have ended, forever, as a process manager does.

        They were killed, or they were started while NATS was away.
        """
        while True:
            for name, worker in [*self._workers.items()]:
                if worker.process.poll() is not None:
                    self.start_worker(name)
            await anyio.sleep(0.05)

    async def call_from_elsewhere(self, calls: int) -> None:
        """Make calls from an endpoint in another process, and from the next after it was killed."""
        number = 0
        while (left := calls - self.ended["elsewhere"]) > 0:
            number += 1
            words = command(self._fleet.nats.url, self._fleet.name, f"elsewhere{number}", left)
            async with await anyio.open_process(words, stderr=None) as self._caller:
                assert self._caller.stdout is not None
                text = ""
                async for some in TextReceiveStream(self._caller.stdout):
                    *lines, text = (text + some).split("\n")
                    for line in lines:
                        self.note("elsewhere", *line.split())

    async def kill_all(self) -> None:
        """Kill and restart something whenever some calls have ended."""
        order: list[Victim] = []
        for number in range(1, KILLS + 1):
            while self.ended.total() < CALLS * number / (KILLS + 1):  # noqa: ASYNC110
                await anyio.sleep(0.005)
            await anyio.sleep(self._chance.uniform(0, 0.1))
            # Each equally often, in random order.
            order = order or self._chance.sample(VICTIMS, len(VICTIMS))
            victim = order.pop()
            self.kills[victim] += 1
            await self._kill(victim)

    async def tell(self, say: Callable[[str], None]) -> None:
        """Print the progress, forever."""
        began = time.monotonic()
        while True:
            await anyio.sleep(SAY_EVERY)
            took = time.monotonic() - began
            calls, kills = self.ended.total(), self.kills.total()
            say(f"{took:5.0f} s: {calls:,} of {CALLS:,} calls, {kills} kills")

    async def _kill(self, victim: Victim) -> None:
        match victim:
            case "worker":
                self._workers[self._chance.choice(WORKERS)].kill()
            case "endpoint":
                if self._caller is not None:
                    self._caller.kill()
            case "nats":
                self._fleet.nats.kill()
                await anyio.sleep(self._chance.uniform(0, NATS_AWAY))  # for which it is away
                self._fleet.nats.start()


async def test_calls_end_and_run_once_while_all_parts_of_a_fleet_are_killed(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    seed = os.environ.get("SEED", f"{random.randrange(2**32):x}")
    say(f"SEED={seed}")
    began = time.monotonic()
    with nats_server(tmp_path) as nats, a_fleet(nats, tmp_path) as fleet:
        soak = Soak(fleet, seed)
        for name in WORKERS:
            soak.start_worker(name)
        async with (
            endpoint(fleet, workers=len(WORKERS)) as tabs,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(soak.supervise)
            tasks.start_soon(soak.tell, say)
            async with anyio.create_task_group() as calls:
                calls.start_soon(soak.kill_all)
                calls.start_soon(soak.call_from_elsewhere, CALLS // 2)
                await call_all(tabs, "here", CALLS // 2, partial(soak.note, "here"))
            # What an endpoint that was killed had called is cancelled, and nothing else runs.
            await until(tabs, lambda known: not any(each.total_running for each in known))
            tasks.cancel_scope.cancel()
        runs = fleet.count("began")

    ends = Counter(soak.attempts.values())
    kills = ", ".join(f"{victim} {count}" for victim, count in sorted(soak.kills.items()))
    say(f"{CALLS:,} calls from two endpoints in {time.monotonic() - began:.0f} s")
    say(f"  killed: {kills}")
    say(f"  ended: {', '.join(f'{count:,} {end}' for end, count in ends.most_common())}")
    twice = [key for key, count in runs.items() if count > 1]
    assert twice == []
    assert soak.ended["here"] == CALLS // 2
    assert soak.ended["elsewhere"] >= CALLS // 2
    assert ends.keys() <= {"value", "WORKER_LOST", *REFUSED}
    assert {key for key, end in soak.attempts.items() if end == "value"} <= runs.keys()
    assert not {key for key, end in soak.attempts.items() if end in REFUSED} & runs.keys()
