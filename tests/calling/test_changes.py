"""Waiting for the next change."""

import anyio

from opentabs_py.calling.changes import Changes
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
