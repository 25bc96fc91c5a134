"""What the user types while a command runs."""

import os


async def wait_enter() -> None:
    """Wait for Enter or Ctrl-D. Without a terminal, wait forever; closing the window ends that."""
    import asyncio
    import threading

    loop = asyncio.get_running_loop()
    pressed = asyncio.Event()

    def read() -> None:
        # Without Python's buffer, whose lock would be held when the interpreter exits.
        while (byte := os.read(0, 1)) not in (b"\n", b""):
            pass
        if byte or os.isatty(0):
            loop.call_soon_threadsafe(pressed.set)

    threading.Thread(target=read, daemon=True).start()  # it may read until the process ends
    await pressed.wait()
