"""Convert a tool's return value for its caller: to a JSON value, or to MCP content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from mcp import types
from pydantic_core import PydanticSerializationError, from_json, to_json

from opentabs_py.calling.client import CallClient
from opentabs_py.calling.streams import STREAM_URI, STREAMS_META_KEY, Followed
from opentabs_py.calling.tool import Output
from opentabs_py.core import failures
from opentabs_py.core.cutting import as_text
from opentabs_py.core.plugin_names import GATEWAY_CALL
from opentabs_py.core.text import well_formed
from opentabs_py.errors import ToolError

_BLOCKS = (
    types.TextContent,
    types.ImageContent,
    types.AudioContent,
    types.ResourceLink,
    types.EmbeddedResource,
)


@dataclass(slots=True)
class Serializer:
    """Serializes the parts of one result, and counts how large it is.

    Args:
        tool: The tool, for errors.
        limit: The most characters of JSON.
    """

    tool: str
    limit: int
    _size: int = 0

    def serialize(self, value: Any) -> bytes:
        """Return a part as JSON.

        Raises:
            ToolFailedError: It is not JSON-serializable, or the result gets too large.
        """
        try:
            text = _to_json(value)
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            why = str(error).partition("\n")[0]
            raise failures.result_not_serializable(self.tool, why) from error
        self._size += len(text) if text.isascii() else len(text.decode())  # as for arguments
        if self._size > self.limit:
            raise failures.result_too_large(self.tool, self._size, self.limit)
        return text

    def plain(self, value: Any) -> Any:
        """Return a part as a JSON value.

        Raises:
            ToolFailedError: It is not JSON-serializable, or the result gets too large.
        """
        text = self.serialize(value)
        try:
            return from_json(text)
        except ValueError as error:  # it is nested deeper than it can be read
            raise failures.result_not_serializable(self.tool, str(error)) from error


def to_output(value: Any, serializer: Serializer) -> Any:
    """Return what a tool returns or yields as JSON, or as an `Output` if it contains MCP content.

    Models, dataclasses, dates, sets and the like are converted by pydantic; numbers that JSON
    does not have (NaN, infinities) become null, and lone surrogates U+FFFD, as in a page.

    Raises:
        ToolFailedError: It is not JSON-serializable, the result gets too large, or it is itself an
            error.
    """
    if isinstance(value, Output):
        serializer.serialize(value)
        return value
    if isinstance(value, types.CallToolResult):
        serializer.serialize(value)
        if value.is_error:
            raise _as_error(serializer.tool, value)
        return Output(tuple(value.content), value.structured_content, value.meta)
    if isinstance(value, _BLOCKS):
        return Output((_to_block(value, serializer),))
    if isinstance(value, list | tuple):
        items = cast(Sequence[Any], value)
        if any(isinstance(each, _BLOCKS) for each in items):
            return Output(tuple(_to_block(each, serializer) for each in items))
    return serializer.plain(value)


def _as_error(tool: str, result: types.CallToolResult) -> ToolError:
    """Return the error of a failed result, with its text as the message; the rest is kept."""
    texts = [each.text for each in result.content if isinstance(each, types.TextContent)]
    error = ToolError("\n".join(texts) or f"{tool} failed and did not say why.")
    others = tuple(each for each in result.content if not isinstance(each, types.TextContent))
    if others:
        error.partial = Output(others)
    return error


def _to_block(value: Any, serializer: Serializer) -> types.ContentBlock:
    if isinstance(value, _BLOCKS):
        serializer.serialize(value)
        return value
    return to_text(serializer.plain(value))


class Yielded:
    """What a generator has yielded so far.

    Args:
        serializer: Counts how large it is.
    """

    def __init__(self, serializer: Serializer) -> None:
        self._serializer = serializer
        self._content: list[types.ContentBlock] = []
        self._structured: dict[str, Any] | None = None
        self._meta: dict[str, Any] | None = None

    def add(self, item: Any) -> None:
        """Add a yielded item; None only signals that the tool is alive.

        Raises:
            ToolFailedError: As `to_output`.
        """
        if item is None:
            return
        output = _in_blocks(to_output(item, self._serializer))
        self._content += output.content
        if output.structured is not None:
            self._structured = output.structured
        if output.meta is not None:
            self._meta = {**(self._meta or {}), **output.meta}

    def output(self) -> Output:
        """Return all of it, with the last object as the structured value."""
        return Output(tuple(self._content), self._structured, self._meta)

    def partial(self) -> Output | None:
        """Return its content, for an error that follows it; None if there is none."""
        return Output(tuple(self._content)) if self._content else None


def _in_blocks(value: Any) -> Output:
    """Return a tool's value as content, whatever `to_output` has made of it."""
    if isinstance(value, Output):
        return value
    structured = cast(dict[str, Any], value) if isinstance(value, dict) else None
    return Output((to_text(value),), structured)


def name_streams(value: Any, streams: Sequence[Followed], client: CallClient | None) -> Any:
    """Return a value with the streams that are still open added: as text, as links, and as data.

    Every client gets the text. Links are only for clients that read them: others drop the link,
    or even the whole result.
    """
    if not streams:
        return value
    output = _in_blocks(value)
    gateway = client is not None and client.uses_gateway
    readable = client is None or client.reads_streams
    names: list[types.ContentBlock] = [
        describe_stream(each.id, each.name, gateway=gateway, readable=readable) for each in streams
    ]
    if client is not None and client.takes_links:
        names += [_link(stream) for stream in streams]
    named = [{"id": each.id, "name": each.name, "uri": each.uri} for each in streams]
    meta = {**(output.meta or {}), STREAMS_META_KEY: named}
    return replace(output, content=(*output.content, *names), meta=meta)


def describe_stream(
    stream_id: str, name: str, *, gateway: bool = False, readable: bool = True
) -> types.TextContent:
    """Return how a model reads a stream that is open, as results say it.

    Args:
        stream_id: The id of the stream.
        name: The name that its tool gave it.
        gateway: Whether the model's client calls every tool through `opentabs_call`.
        readable: Whether the stream is a resource for the model's client.
    """
    tool = f"stream_read through {GATEWAY_CALL}" if gateway else "stream_read"
    return types.TextContent(
        text=f"The stream {name} is open. For its updates, call {tool} with the id "
        f"{stream_id!r}{f', or read {STREAM_URI}{stream_id}' if readable else ''}."
    )


def _link(stream: Followed) -> types.ResourceLink:
    return types.ResourceLink(
        name=stream.name,
        uri=stream.uri,
        description=f"Updates of {stream.name}.",
        mime_type="application/json",
    )


def to_text(value: Any) -> types.TextContent:
    """Return a JSON value as text; a string as it is."""
    return types.TextContent(text=as_text(value))


def _to_json(value: Any) -> bytes:
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError as error:
        try:
            plain = _well_formed(value)
        except TypeError:
            raise error from None
        return to_json(plain, inf_nan_mode="null")


def _well_formed(value: Any) -> Any:
    """Return a value with well-formed strings.

    Raises:
        TypeError: It contains more than JSON does; that may be an iterator, which cannot be read
            twice.
    """
    match value:
        case str():
            return well_formed(value)
        case list() | tuple():
            return [_well_formed(each) for each in cast(Sequence[Any], value)]
        case dict():
            members = cast(Mapping[Any, Any], value).items()
            return {_well_formed(key): _well_formed(each) for key, each in members}
        case None | bool() | int() | float():
            return value
        case _:
            raise TypeError
