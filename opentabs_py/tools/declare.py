"""How a function is said to be a tool."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar, cast, overload

from opentabs_py.core.dispatch import Limits

_MARK: Final = "__opentabs_tool__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timers of a tool's own, in seconds; one that is None is the server's.

    Attributes:
        idle: The silence that ends a call.
        ceiling: The longest that a call may take, whatever it reports.
    """

    idle: float | None = None
    ceiling: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no timer can be set to."""
        for name, seconds in (("idle", self.idle), ("ceiling", self.ceiling)):
            if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
                raise ValueError(f"{name} is {seconds}; give seconds, more than 0")

    def in_place_of(self, limits: Limits) -> Limits:
        """Give these timers, and those of `limits` for the ones that are None."""
        return Limits(
            idle=limits.idle if self.idle is None else self.idle,
            ceiling=limits.ceiling if self.ceiling is None else self.ceiling,
        )


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is said of a function with `@tool`; what is None is read from the function.

    Attributes:
        is_tool: Whether it was said to be one; `Server(tools=[...])` takes any function.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    timeouts: Timeouts = Timeouts()
    annotations: Mapping[str, Any] | None = None
    is_tool: bool = True


@overload
def tool(
    function: F,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    timeouts: Timeouts | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> F: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    timeouts: Timeouts | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    timeouts: Timeouts | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> F | Callable[[F], F]:
    """Say that a function is a tool. It stays what it was, and can be called as before.

        @tool
        def add(a: int, b: int) -> int:
            return a + b

    Args:
        function: A function, sync or async, a generator of either kind, or a `functools.partial`.
        name: What clients call it; by default the function's name.
        title: Its name for people.
        description: What it does, for agents; by default from the docstring.
        timeouts: Timers of its own.
        annotations: MCP's hints, as in `{"readOnlyHint": True}`.
    """
    declaration = Declaration(name, title, description, timeouts or Timeouts(), annotations)

    def mark(function: F) -> F:
        try:
            setattr(function, _MARK, declaration)
        except AttributeError:
            raise TypeError(
                f"{function!r} cannot be marked as a tool. Mark the function that it is of, or "
                "give it to Server(tools=[...]) as it is."
            ) from None
        return function

    return mark if function is None else mark(function)


skill = tool
"""The same as `tool`, by the name that it has on methods of a `Module`."""


def declaration_of(function: Any) -> Declaration:
    """Give what was said of a function; of a partial, what was said of what it is of."""
    own = getattr(function, _MARK, None)
    if isinstance(own, Declaration):
        return own
    inner = within_partial(function)
    if inner is function:
        return Declaration(is_tool=False)
    return replace(declaration_of(inner), is_tool=False)


def within_partial(function: Any) -> Any:
    """Give the function that a partial is of, however many are around it; any other as it is."""
    while isinstance(function, partial):
        function = cast(Any, function).func
    return function
