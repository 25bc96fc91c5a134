"""Print the outcome of a call."""

import json
import sys
from typing import Any

from opentabs_py.calling.outcome import outcome_json
from opentabs_py.core import codes
from opentabs_py.errors import CallError, ErrorDetail, ErrorJson, OpenTabsError


def describe(error: OpenTabsError) -> ErrorJson:
    """Return an error in the same fields as a tool's error."""
    detail = error.detail if isinstance(error, CallError) else None
    return (detail or ErrorDetail(codes.CHAIN_FAILED, str(error), category="chain")).to_json()


def failed_outcome(error: OpenTabsError, seconds: float) -> dict[str, Any]:
    """Return the outcome of a call that was never made."""
    return outcome_json(seconds, is_error=True, error=describe(error))


def print_outcome(outcome: dict[str, Any], *, as_json: bool) -> None:
    """Print the result to stdout, or the error to stderr; as JSON, everything to stdout."""
    from opentabs_py.cli.terminal import write_result
    from opentabs_py.core.text import visible

    if as_json:
        write_result(json.dumps(outcome, ensure_ascii=False))
        return
    for content in outcome["content"]:
        text = content.get("text") or json.dumps(content, ensure_ascii=False)
        if outcome["isError"]:
            sys.stderr.write(visible(text) + "\n")
        else:
            write_result(text)
