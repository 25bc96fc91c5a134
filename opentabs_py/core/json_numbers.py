"""The numbers that Python and JavaScript both read alike from JSON."""

import json
from collections.abc import Sequence
from decimal import Decimal
from math import isfinite
from typing import Any, Final, Never, cast

MAX_SAFE_INTEGER: Final = 2**53 - 1  # the largest integer JavaScript represents exactly
_EXPONENT: Final = 1e21  # from here on, JavaScript writes a number with an exponent


def refuse_constant(name: str) -> Never:
    """Refuse `NaN` and `Infinity`, which Python reads; for `parse_constant` of `json.loads`.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{name} is not a JSON number")


def inexact_number(value: Any) -> Sequence[int | str]:
    """Return the path of a number in a value that JavaScript reads as another; empty if none is.

    These are the integers that it rounds, and what JSON has no number for: NaN, and infinity, which
    is also what Python reads for 1e400.
    """
    pending: list[tuple[tuple[int | str, ...], Any]] = [((), value)]
    while pending:
        path, each = pending.pop()
        if isinstance(each, float) and not isfinite(each):
            return path
        if isinstance(each, int) and not is_exact(each):
            return path
        if isinstance(each, dict):
            members = cast("dict[str, Any]", each).items()
            pending += [((*path, name), inner) for name, inner in members]
        elif isinstance(each, list | tuple):
            items = cast("Sequence[Any]", each)
            pending += [((*path, index), inner) for index, inner in enumerate(items)]
    return ()


def is_exact(integer: int) -> bool:
    """Return whether JavaScript that has read an integer writes the same one."""
    try:
        return as_javascript(integer) == integer
    except OverflowError:
        return False


def is_safe(number: float) -> bool:
    """Return whether a number is an integer that JavaScript tells from all others."""
    return abs(number) <= MAX_SAFE_INTEGER and number == int(number)


def as_javascript(integer: int) -> int | float:
    """Return the number that JavaScript writes after it has read an integer.

    Raises:
        OverflowError: It is read as infinity, which JSON does not have.
    """
    if is_safe(integer):
        return integer
    number = float(integer)
    return int(Decimal(repr(number))) if abs(number) < _EXPONENT else number


def read_as_javascript(text: bytes) -> Any:
    """Return a JSON value with the numbers that JavaScript reads.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    try:
        return json.loads(
            text, parse_int=lambda each: as_javascript(int(each)), parse_constant=refuse_constant
        )
    except OverflowError as error:
        raise ValueError(str(error)) from None
