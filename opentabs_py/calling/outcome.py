"""The outcome of a call as JSON: what `opentabs call --json` prints, and the console receives."""

from collections.abc import Sequence
from typing import Any

from opentabs_py.errors import ErrorJson


def outcome_json(
    seconds: float,
    *,
    is_error: bool,
    content: Sequence[dict[str, Any]] = (),
    structured: dict[str, Any] | None = None,
    error: ErrorJson | None = None,
) -> dict[str, Any]:
    """Return the outcome of a call, with no progress so far.

    Args:
        seconds: How long the call took.
        is_error: Whether the call failed.
        content: The blocks of MCP content that a model reads.
        structured: The result for programs, if it is an object.
        error: Why it failed, if that is known.
    """
    return {
        "isError": is_error,
        "content": [*content],
        "structuredContent": structured,
        "error": error,
        "progress": [],  # `[{progress, total, message, at}]`, `at` in seconds since the call
        "seconds": round(seconds, 4),
    }
