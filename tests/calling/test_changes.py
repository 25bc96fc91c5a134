"""Waiting for the next change."""

from math import inf

import anyio

from opentabs_py.calling.changes import Changes
from opentabs_py.core.failures import not_connected
from opentabs_py.core.tabs.selection import Wait
from tests.waiting import PATIENT, until_all_wait


async def test_a_change_wakes_all_who_wait_for_it_and_nobody_who_waits_for_the_next() -> None:
    changes, woken = Changes(), list[str]()

    async def wait(name: str, event: anyio.Event) -> None:
        await event.wait()
        woken.append(name)

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            for name in ("a", "b"):
                tasks.start_soon(wait, name, changes.next())
            changes.notify()
            tasks.start_soon(wait, "c", changes.next())
            await until_all_wait()
            assert sorted(woken) == ["a", "b"]
            changes.notify()
    assert woken[2:] == ["c"]


async def test_a_change_after_the_event_was_taken_is_not_missed() -> None:
    changes = Changes()
    event = changes.next()
    changes.notify()
    with anyio.fail_after(PATIENT):
        await event.wait()


async def test_a_decision_is_asked_for_again_at_each_change_while_it_waits() -> None:
    changes, looks = Changes(), list[float]()

    def look(now: float) -> str | Wait:
        looks.append(now)
        return "decided" if len(looks) == 3 else Wait(inf, not_connected())

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            decided = list[str]()

            async def decide() -> None:
                decided.append(await changes.decide(look))

            tasks.start_soon(decide)
            for _ in range(2):
                await until_all_wait()
                assert decided == []
                changes.notify()
    assert decided == ["decided"]


async def test_a_decision_is_asked_for_again_when_its_wait_is_over() -> None:
    until = anyio.current_time() + 0.01

    def look(now: float) -> str | Wait:
        return "decided" if now >= until else Wait(until, not_connected())

    with anyio.fail_after(PATIENT):
        assert await Changes().decide(look) == "decided"


async def test_a_change_during_the_look_is_not_missed() -> None:
    changes, looks = Changes(), list[float]()

    def look(now: float) -> str | Wait:
        looks.append(now)
        if len(looks) == 2:
            return "decided"
        changes.notify()
        return Wait(inf, not_connected())

    with anyio.fail_after(PATIENT):
        assert await changes.decide(look) == "decided"
