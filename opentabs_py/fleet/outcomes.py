"""The outcome of a call, as a message between worker and endpoint."""

import logging
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from opentabs_py.calling.tool import Output
from opentabs_py.core import failures
from opentabs_py.core.error_kinds import kind_of, rebuild
from opentabs_py.core.fleet.messages import Failed, McpContent, Returned
from opentabs_py.core.text import first_problem
from opentabs_py.errors import BrokenResultError, CallError

logger = logging.getLogger(__name__)

CODE_MAX: Final = 256


def returned(value: Any) -> Returned:
    """Return the message for a tool's value: JSON, or an `Output`."""
    if not isinstance(value, Output):
        return Returned(value=value)
    return Returned(content=_content_of(value))


def value_of(message: Returned) -> Any:
    """Return the value of a message: JSON, or an `Output`.

    Raises:
        ValueError: Its content is not that of MCP.
    """
    return message.value if message.content is None else _output_of(message.content)


def _content_of(output: Output) -> McpContent:
    return McpContent(
        content=[
            block.model_dump(mode="json", by_alias=True, exclude_none=True)
            for block in output.content
        ],
        structured=output.structured,
        meta=output.meta,
    )


def _output_of(content: McpContent) -> Output:
    from mcp import types  # noqa: PLC0415 (loading it takes as long as starting a browser)
    from pydantic import TypeAdapter  # noqa: PLC0415

    blocks: TypeAdapter[tuple[types.ContentBlock, ...]] = TypeAdapter(
        tuple[types.ContentBlock, ...]
    )
    try:
        return Output(blocks.validate_python(content.content), content.structured, content.meta)
    except ValidationError as error:
        raise ValueError(f"content{first_problem(error)}") from None


def failed(error: Exception, tool: str) -> Failed:
    """Return the message for an error."""
    if isinstance(error, PydanticSerializationError):
        error = failures.result_not_serializable(tool, str(error))
    elif not isinstance(error, CallError):
        error = failures.internal(tool)
    try:
        return _failed(error)
    except ValidationError:  # a Python tool can raise any `ErrorDetail`
        logger.exception("The error of %s cannot be sent", tool)
        return _failed(failures.internal(tool))


def _failed(error: CallError) -> Failed:
    detail = error.detail
    value = error.value if isinstance(error, BrokenResultError) else None
    output = value if isinstance(error, BrokenResultError) else error.partial
    return Failed(
        kind=kind_of(error),
        code=detail.code[:CODE_MAX],
        message=detail.message,
        category=detail.category or None,
        retryable=detail.retryable,
        retry_after_ms=detail.retry_after_ms,
        stack=detail.stack,
        value=None if isinstance(value, Output) else value,
        partial=None if isinstance(error.partial, Output) else error.partial,
        content=_content_of(output) if isinstance(output, Output) else None,
    )


def error_of(message: Failed) -> CallError:
    """Return the error of a message.

    Raises:
        ValueError: Its content is not that of MCP.
    """
    error = rebuild(message.kind, message, value=message.value)
    error.partial = message.partial
    if message.content is not None and isinstance(error, BrokenResultError):
        error.value = _output_of(message.content)
    elif message.content is not None:
        error.partial = _output_of(message.content)
    return error
