"""Declare functions as tools."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial, partialmethod
from typing import Any, Final, TypeVar, cast, overload

from opentabs_py.core.limits import Limits

_MARK: Final = "__opentabs_tool__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Declaration:
    """What `@tool` declares about a function; values that are None come from the function.

    Attributes:
        idle: Seconds of silence that end a call; None means the server's limit.
        ceiling: The longest that a call may take, in seconds; None means the server's limit.
        is_tool: Whether it is declared as a tool; `Server(tools=[...])` accepts any function.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    idle: float | None = None
    ceiling: float | None = None
    annotations: Mapping[str, Any] | None = None
    is_tool: bool = True

    def __post_init__(self) -> None:
        """Reject invalid limits."""
        for name, seconds in (("idle", self.idle), ("ceiling", self.ceiling)):
            if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
                raise ValueError(f"{name} is {seconds}; use a number of seconds above 0")

    def limits(self, servers: Limits) -> Limits | None:
        """Return the tool's own limits, completed by the server's; None if it has none."""
        if self.idle is None and self.ceiling is None:
            return None
        return Limits(
            idle=servers.idle if self.idle is None else self.idle,
            ceiling=servers.ceiling if self.ceiling is None else self.ceiling,
        )


@overload
def tool(
    function: F,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    idle: float | None = None,
    ceiling: float | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    idle: float | None = None,
    ceiling: float | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    idle: float | None = None,
    ceiling: float | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> F | Callable[[F], F]:
    """Declare a function as a tool. The function itself is returned unchanged.

        @tool
        def add(a: int, b: int) -> int:
            return a + b

    Args:
        function: A function, sync or async, a generator of either kind, a static or class method,
            or a `functools.partial`.
        name: What clients call it; by default the function's name.
        title: Its name for users.
        description: What it does, for agents; by default from the docstring.
        idle: Seconds of silence that end a call, instead of the server's limit.
        ceiling: The longest that a call may take, in seconds, instead of the server's limit.
        annotations: MCP's hints, for example `{"readOnlyHint": True}`.
    """
    declaration = Declaration(name, title, description, idle, ceiling, annotations)

    def mark(function: F) -> F:
        if isinstance(function, partialmethod):  # what it makes would not have the mark
            raise TypeError(
                f"{function!r} cannot be marked as a tool. Define a method that calls the other."
            )
        of_class = isinstance(function, staticmethod | classmethod)
        marked = cast(Any, function).__func__ if of_class else function
        try:
            setattr(marked, _MARK, declaration)
        except AttributeError:
            raise TypeError(
                f"{function!r} cannot be marked as a tool. Mark its underlying function, or pass "
                "it to Server(tools=[...]) as it is."
            ) from None
        return function

    return mark if function is None else mark(function)


skill = tool
"""The same as `tool`, under the name used for methods of a `Module`."""


def declaration_of(function: Any) -> Declaration:
    """Return the declaration of a function, or of the function inside a partial."""
    own = getattr(function, _MARK, None)
    if isinstance(own, Declaration):
        return own
    inner = within_partial(function)
    if inner is function:
        return Declaration(is_tool=False)
    return replace(declaration_of(inner), is_tool=False)


def within_partial(function: Any) -> Any:
    """Return the function inside a partial, however nested; anything else as it is."""
    while isinstance(function, partial):
        function = cast(Any, function).func
    return function
