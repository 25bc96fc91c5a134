"""The results of calls, as MCP clients receive them: values, and errors that agents can read."""

import json
import logging
from collections.abc import Awaitable, Mapping
from typing import Any

from mcp import types
from pydantic_core import to_json

from opentabs_py.calling.outcome import outcome_json
from opentabs_py.calling.tool import Output
from opentabs_py.core import failures
from opentabs_py.core.cutting import as_text
from opentabs_py.core.error_kinds import Side, side_of
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import BrokenResultError, CallError
from opentabs_py.server.mcp.answers import Prepared, TextInParts
from opentabs_py.server.mcp.elicitation import ConsentAskedError
from opentabs_py.server.mcp.long_results import LongResults

logger = logging.getLogger(__name__)

ERROR_META_KEY = "opentabs/error"
FAILED_META_KEY = "opentabs/failed"


def outcome_document(
    result: types.CallToolResult, seconds: float
) -> tuple[dict[str, Any], Side | None]:
    """Return the outcome of a call as JSON, and which side failed; None if none did.

    Args:
        result: What an MCP client received.
        seconds: How long the call took.
    """
    meta: Mapping[str, Any] = result.meta or {}
    document = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    outcome = outcome_json(
        seconds,
        is_error=result.is_error,
        content=document["content"],
        structured=result.structured_content,
        error=meta.get(ERROR_META_KEY),
    )
    return outcome, meta.get(FAILED_META_KEY)


async def result_of(
    call: Awaitable[Any],
    tool: str,
    *,
    with_stack: bool = False,
    slot: Prepared | None = None,
    long_results: LongResults | None = None,
    session_key: SessionKey | None = None,
) -> types.CallToolResult:
    """Make a call and return its result, whether it succeeds or fails.

    Args:
        call: The call, of `ToolCalls.call`.
        tool: The tool's name.
        with_stack: Whether the result of a failed call has its stack trace.
        slot: Where to put the value; the result is empty then.
        long_results: Cuts a long value, if given.
        session_key: The key of the session of the client, which can read what was cut.

    Raises:
        ConsentAskedError: The client has to repeat the call with the answer of its user.
    """
    try:
        value = await call
        if isinstance(value, Output):
            result = to_result(value)
            return (
                long_results.shorten_content(tool, result, session_key) if long_results else result
            )
        if long_results and (cut := long_results.shorten(tool, value, session_key)) is not None:
            return cut
        return to_result(value) if slot is None else _prepare_result(value, slot)
    except ConsentAskedError:
        raise  # the client is to repeat the call
    except CallError as error:
        result = to_failed_result(error, with_stack=with_stack)
        return long_results.shorten_content(tool, result, session_key) if long_results else result
    except Exception:
        # The boundary to the client: internal details stay in our log.
        logger.exception("The call of %s failed inside the server", tool)
        return to_error_result(failures.internal(tool))


def to_result(value: Any) -> types.CallToolResult:
    """Return a tool's value as an MCP result: as text, and also as structure if it is an object."""
    if isinstance(value, Output):
        return types.CallToolResult(
            content=list(value.content), structured_content=value.structured, _meta=value.meta
        )
    return types.CallToolResult(
        content=[types.TextContent(text=as_text(value))],
        structured_content=value if isinstance(value, dict) else None,
    )


def _prepare_result(value: Any, slot: Prepared) -> types.CallToolResult:
    """Put what `to_result` returns into a slot, in a third of the memory."""
    content = to_json(value, inf_nan_mode="null")  # as `as_text`
    begin = TextInParts(b'"content":[{"type":"text","text":')
    if isinstance(value, str):
        texts = [begin, TextInParts(content), TextInParts(b"}]")]
    elif isinstance(value, dict):
        structured = [TextInParts(b'}],"structuredContent":'), TextInParts(content)]
        texts = [begin, TextInParts(content, quoted=True), *structured]
    else:
        texts = [begin, TextInParts(content, quoted=True), TextInParts(b"}]")]
    slot.fill(b'"content":[]', *texts)
    return types.CallToolResult(content=[])


def to_failed_result(error: CallError, *, with_stack: bool = False) -> types.CallToolResult:
    """Return an error result, followed by whatever the tool returned despite the error."""
    is_partial = error.partial is not None and not isinstance(error, BrokenResultError)
    result = to_error_result(error, more="\nIts earlier output follows." if is_partial else "")
    if with_stack and error.detail.stack is not None:
        result.content.append(types.TextContent(text=error.detail.stack))
    if isinstance(error, BrokenResultError):
        result.content += to_result(error.value).content
    elif is_partial:
        result.content += to_result(error.partial).content
    return result


def to_error_result(error: CallError, *, more: str = "") -> types.CallToolResult:
    """Return an error as agents read it: one line, then the same fields as JSON, and then `more`.

    Programs find the fields under `_meta["opentabs/error"]`, and which side failed under
    `_meta["opentabs/failed"]`: the `tool`, the `caller`, or the `chain`.
    """
    detail = error.detail
    fields = detail.to_json()
    marks = f"code={detail.code}"
    if detail.category is not None:
        marks += f" category={detail.category}"
    marks += f" retryable={'true' if detail.retryable else 'false'}"
    if detail.retry_after_ms is not None:
        marks += f" retryAfterMs={detail.retry_after_ms:g}"
    block = json.dumps(
        {name: value for name, value in fields.items() if value is not None},
        indent=2,
        ensure_ascii=False,
    )
    return types.CallToolResult(
        content=[
            types.TextContent(text=f"[ERROR {marks}] {detail.message}\n```json\n{block}\n```{more}")
        ],
        is_error=True,
        _meta={ERROR_META_KEY: fields, FAILED_META_KEY: side_of(error)},
    )
