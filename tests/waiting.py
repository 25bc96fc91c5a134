"""Waits for the tasks in a test's event loop."""

import anyio

PATIENT = 30.0  # s; the bound of every wait, far above what any takes
OUT_OF_STEP = 0.037  # s; not a fraction of the interval at which servers tick


async def until_all_wait() -> None:
    """Wait until every other task of the event loop is waiting.

    anyio's own function checks ten times a second. A uvicorn in the same loop ticks as often, may
    be in step with it, and would then be found working each time. So this one checks out of step.
    """
    with anyio.fail_after(PATIENT):
        while True:
            with anyio.move_on_after(OUT_OF_STEP) as look:
                await anyio.wait_all_tasks_blocked()  # noqa: TID251
            if not look.cancelled_caught:
                return
