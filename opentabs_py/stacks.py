"""Close exit stacks that contain task groups, and handle what task groups raise."""

from contextlib import AsyncExitStack
from typing import cast


async def close(stack: AsyncExitStack) -> None:
    """Close a stack, even while a cancellation is being handled.

    `AsyncExitStack` sets the `__context__` of exceptions from its contexts. If two in a row raise
    the same exception, as task groups do with a cancellation, it becomes its own context (seen
    with Python 3.11). anyio follows that chain when a task was cancelled, and would loop forever.
    """
    try:
        await stack.aclose()
    except BaseException as error:
        _cut_circle(error)
        raise


def innermost(error: Exception) -> Exception:
    """Return the first exception in a group, however nested; any other as it is."""
    while isinstance(error, ExceptionGroup):
        error = cast(ExceptionGroup[Exception], error).exceptions[0]
    return error


def _cut_circle(error: BaseException) -> None:
    """Break a cycle in the `__context__` chain of an exception."""
    seen = {id(error)}
    while (context := error.__context__) is not None:
        if id(context) in seen:
            error.__context__ = None
            return
        seen.add(id(context))
        error = context
