"""The arguments that a test passes to a tool: a mapping, keywords, or some of each."""

from collections.abc import Mapping
from typing import Any, cast

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these


def merged(arguments: object, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call.

    Args:
        arguments: Those given as a mapping, if any; unchecked.
        more: Those given as keywords.

    Raises:
        TypeError: `arguments` is not a mapping, or an argument is given in both ways.
    """
    if arguments is None:
        return {**more}
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        raise TypeError(f"Pass a tool's arguments as a mapping, not as {kind}.")
    given = cast("Mapping[str, Any]", arguments)
    if twice := [name for name in more if name in given]:
        raise TypeError(
            f"These arguments are given twice, in the mapping and as keywords: {', '.join(twice)}."
        )
    return {**given, **more}
