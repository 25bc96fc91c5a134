"""A page that floods the browser delays only itself, and no call in another tab."""

from collections.abc import Callable
from typing import Any

import anyio

from e2e.chain import Tab
from e2e.waiting import PATIENT
from opentabs_py.core.limits import Limits

CALLS = 100
SHORT = Limits(idle=8.0)  # s; a starved call would take longer


async def test_a_flood_of_history_changes_starves_no_call_in_another_tab(
    open_tab: Callable[..., Any],
) -> None:
    flooding: Tab = await open_tab()
    calm: Tab = await open_tab(host="localhost")  # another site, so another renderer process
    await flooding.page.evaluate(
        """() => {
          globalThis.made = 0;
          setInterval(() => {
            for (let i = 0; i < 10; i++) history.replaceState({}, "", `/page?${made++}`);
          }, 10);
        }"""
    )

    for number in range(CALLS):
        assert await calm.call("echo", {"value": number}, limits=SHORT) == {"value": number}
    assert await flooding.page.evaluate("made") > CALLS


async def test_changes_of_a_title_that_come_together_are_reported_together(tab: Tab) -> None:
    changes = 0

    async def count() -> None:
        nonlocal changes
        while True:
            await tab.tabs.internals.bridge.changed().wait()
            changes += 1

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        await tab.page.evaluate(
            """async () => {
              for (let i = 1; i <= 300; i++) {
                document.title = `title ${i}`;
                await new Promise((resolve) => setTimeout(resolve, 2));
              }
            }"""
        )
        with anyio.fail_after(PATIENT):
            while not any(d.title == "title 300" for d in tab.tabs.internals.bridge.tabs.documents):
                await tab.tabs.internals.bridge.changed().wait()
        group.cancel_scope.cancel()

    assert 1 <= changes < 100
