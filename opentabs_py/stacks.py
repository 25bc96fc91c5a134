"""Closing stacks of contexts that hold task groups."""

from contextlib import AsyncExitStack


async def close(stack: AsyncExitStack) -> None:
    """Close a stack, also while a cancellation is being handled.

    `AsyncExitStack` sets the `__context__` of what its contexts raise. Where two in a row raise the
    same exception, as task groups do with a cancellation, it becomes its own (seen with Python
    3.11). anyio follows that chain to its end when a task was cancelled, and would spin for ever.
    """
    try:
        await stack.aclose()
    except BaseException as error:
        _cut_circle(error)
        raise


def _cut_circle(error: BaseException) -> None:
    """Have the contexts of an exception end where they would repeat."""
    seen = {id(error)}
    while (context := error.__context__) is not None:
        if id(context) in seen:
            error.__context__ = None
            return
        seen.add(id(context))
        error = context
