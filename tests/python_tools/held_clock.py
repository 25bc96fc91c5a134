"""A clock that tests control."""

import anyio


class HeldClock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.time = 0.0
        self.moved = anyio.Event()

    def now(self) -> float:
        return self.time

    async def wait(self, changed: anyio.Event, until: float) -> None:
        while not changed.is_set() and self.time < until:
            async with anyio.create_task_group() as tasks:
                for event in (changed, self.moved):

                    async def wait(event: anyio.Event = event) -> None:
                        await event.wait()
                        tasks.cancel_scope.cancel()

                    tasks.start_soon(wait)

    def move(self, seconds: float) -> None:
        self.time += seconds
        self.moved.set()
        self.moved = anyio.Event()
