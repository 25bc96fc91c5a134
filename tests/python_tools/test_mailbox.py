"""Items that come from threads, however fast."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from opentabs_py.python_tools.mailbox import AT_ONCE, Mailbox
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

MANY = 10 * AT_ONCE


async def test_others_have_the_event_loop_while_a_thread_puts_items_without_a_pause() -> None:
    delivered: list[int] = []
    delivered_before: list[int] = []
    all_there = anyio.Event()
    with ThreadPoolExecutor(1) as thread:

        def hand_on(item: int) -> None:
            delivered.append(item)
            if item < MANY:
                thread.submit(mailbox.put, item + 1).result()
            else:
                all_there.set()

        mailbox = Mailbox(hand_on, size=10)
        thread.submit(mailbox.put, 0).result()
        asyncio.get_running_loop().call_soon(lambda: delivered_before.append(len(delivered)))
        with anyio.fail_after(PATIENT):
            await all_there.wait()
    assert delivered_before == [AT_ONCE]
    assert delivered == [*range(MANY + 1)]


async def test_all_that_waits_is_delivered_at_the_end() -> None:
    delivered: list[int] = []
    mailbox = Mailbox(delivered.append, size=MANY)
    with ThreadPoolExecutor(1) as thread:
        for item in range(MANY):
            thread.submit(mailbox.put, item).result()
    mailbox.empty()
    assert delivered == [*range(MANY)]


async def test_of_too_many_items_the_oldest_are_dropped_and_counted() -> None:
    delivered: list[int] = []
    mailbox = Mailbox(delivered.append, size=2)
    with ThreadPoolExecutor(1) as thread:
        for item in range(5):
            thread.submit(mailbox.put, item).result()
    mailbox.empty()
    assert (delivered, mailbox.dropped) == ([3, 4], 3)
