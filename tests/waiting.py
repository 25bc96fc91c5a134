"""Waits for what runs in the event loop of a test."""

import anyio

PATIENT = 30.0  # s; the bound of every wait, far above what any takes
OUT_OF_STEP = 0.037  # s; no fraction of what servers tick by


async def until_all_wait() -> None:
    """Wait until every other task of the event loop waits for something.

    anyio's own looks ten times a second. A uvicorn in the same loop, which ticks as often, may be
    in step with it, and is then seen at work each time. So this looks out of step with it.
    """
    with anyio.fail_after(PATIENT):
        while True:
            with anyio.move_on_after(OUT_OF_STEP) as look:
                await anyio.wait_all_tasks_blocked()  # noqa: TID251
            if not look.cancelled_caught:
                return
