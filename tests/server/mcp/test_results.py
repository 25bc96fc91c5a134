"""Errors as the results that agents read."""

import pytest
from mcp import types

from opentabs_py.errors import ErrorDetail, ToolFailedError
from opentabs_py.server.mcp.results import outcome_document, to_failed_result


@pytest.mark.parametrize(
    ("stack", "with_stack", "shown"),
    [("at a.ts:1", True, ["at a.ts:1"]), ("at a.ts:1", False, []), (None, True, [])],
)
def test_an_error_shows_its_stack_only_if_it_has_one_and_is_to(
    stack: str | None, with_stack: bool, shown: list[str]
) -> None:
    error = ToolFailedError(ErrorDetail("NOPE", "No.", stack=stack))
    result = to_failed_result(error, with_stack=with_stack)
    texts = [each.text for each in result.content if isinstance(each, types.TextContent)]
    assert texts[0].startswith("[ERROR code=NOPE retryable=false] No.\n")
    assert texts[1:] == shown


def test_a_failed_call_is_one_even_if_its_result_does_not_say_why() -> None:
    outcome, failed = outcome_document(types.CallToolResult(content=[], is_error=True), 1.0)
    assert (outcome["isError"], outcome["error"], failed) == (True, None, None)
