"""Callbacks on the event loop, in which AnyIO's functions work.

Where sniffio is installed, AnyIO asks it which event loop runs. In a task, sniffio knows; in a
plain callback, only the context can tell, and neither that of a thread nor that of a program that
`asyncio.run` has started does.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import TypeVarTuple

Ts = TypeVarTuple("Ts")

_library: ContextVar[str | None] | None
try:
    from sniffio import current_async_library_cvar as _library
except ImportError:
    _library = None


def loop_context() -> Context:
    """Return a copy of the current context that tells AnyIO which event loop runs."""
    context = copy_context()
    if _library is not None:
        context.run(_library.set, "asyncio")
    return context


def call_on_loop(loop: AbstractEventLoop, function: Callable[[*Ts], object], *args: *Ts) -> None:
    """Call a function on an event loop soon, from any thread.

    Raises:
        RuntimeError: The loop is closed.
    """
    loop.call_soon_threadsafe(function, *args, context=loop_context())
