"""Parse and write the messages of `core/protocol.py`."""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from opentabs_py.core import codes
from opentabs_py.core.protocol import (
    PROTOCOL_VERSION,
    ErrorParams,
    FromExtension,
    Hello,
    HelloResponse,
    Integer,
    Message,
    Response,
    ToExtension,
    ToolErrored,
    ToolResult,
    WireError,
)
from opentabs_py.core.text import path_text
from opentabs_py.errors import ProtocolError

T = TypeVar("T")

_TO_EXTENSION: TypeAdapter[ToExtension] = TypeAdapter(
    Annotated[ToExtension, Field(discriminator="method")]
)
_FROM_EXTENSION: TypeAdapter[FromExtension] = TypeAdapter(
    Annotated[FromExtension, Field(discriminator="method")]
)
_FINAL = re.compile(
    r'\{"jsonrpc":"2\.0","method":"tool\.(?:result|error)","params":\{'
    r'"documentId":"([0-9a-f]{32})","callId":"([0-9a-f]{32})","seq":(\d{1,15}),'
)
_KIND = re.compile(r'"(method|result|error)"\s*:')
_RESPONSE: TypeAdapter[Response] = TypeAdapter(Response)
_HELLO_RESPONSE: TypeAdapter[HelloResponse] = TypeAdapter(HelloResponse)

# What the extension checks, and what it sends.
CHECKED: dict[str, TypeAdapter[Any]] = {
    "ToExtension": _TO_EXTENSION,
    "HelloResponse": _HELLO_RESPONSE,
}
SENT: dict[str, TypeAdapter[Any]] = {"FromExtension": _FROM_EXTENSION, "Response": _RESPONSE}


@dataclass(frozen=True, slots=True)
class OtherHello:
    """The hello of another protocol version, whatever its other members are."""

    protocol_version: int


@dataclass(frozen=True, slots=True)
class InvalidHello:
    """A hello of this protocol version that is not valid; `path` says where, and `reason` why."""

    reason: str
    path: str


class _AnyParams(BaseModel):
    model_config = ConfigDict(strict=True)

    protocol_version: Annotated[Integer, Field(alias="protocolVersion")]


class _AnyHello(BaseModel):
    method: Literal["hello"]
    params: Any = None


Parsed = FromExtension | OtherHello | InvalidHello | Response


def validate(adapter: TypeAdapter[T], text: str) -> T:
    """Parse JSON with an adapter; only our own code may use the fields' Python names.

    Raises:
        ValidationError: The text is not valid.
    """
    return adapter.validate_json(text, by_alias=True, by_name=False)


def parse_from_extension(text: str) -> Parsed:
    """Parse one message from the extension.

    A tool's result is in the message as its page wrote it. If that makes it another message than
    the relay has begun, or none, the result is an error of its own call, and nothing else.

    Raises:
        ProtocolError: The message is not valid; `path` says where.
    """
    try:
        if _is_response(text):
            return validate(_RESPONSE, text)
        message = validate(_FROM_EXTENSION, text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        begun = _FINAL.match(text)
        if begun is None:
            # The first part of `loc` names the model that was tried, not a place in the text.
            path = path_text(first["loc"][1:])
            if (hello := _unusable_hello(text, first["msg"], path)) is not None:
                return hello
            raise ProtocolError(first["msg"], path=path) from None
        # A page can return a value we cannot parse, such as arrays nested a thousand deep.
        return _unreadable(begun, f" ({first['msg']})")
    if isinstance(message, Hello) and message.params.protocol_version != PROTOCOL_VERSION:
        return OtherHello(message.params.protocol_version)
    begun = _FINAL.match(text)
    if begun is not None and not _is_final(message, *begun.groups()):
        return _unreadable(begun, "")
    return message


def _is_response(text: str) -> bool:
    """Return whether a message is a response, by the first member that says so."""
    found = _KIND.search(text, 0, 200)  # every sender writes it near the start
    return found is None or found[1] != "method"


def _unusable_hello(text: str, reason: str, path: str) -> OtherHello | InvalidHello | None:
    try:
        params = _AnyHello.model_validate_json(text).params
    except ValidationError:
        return None
    with suppress(ValidationError):
        version = _AnyParams.model_validate(params).protocol_version
        if version != PROTOCOL_VERSION:
            return OtherHello(version)
    return InvalidHello(reason, path)


def _is_final(message: FromExtension, document_id: str, call_id: str, seq: str) -> bool:
    """Return whether a message ends a call, and the one that its text began with."""
    if not isinstance(message, ToolResult | ToolErrored):
        return False
    params = message.params
    return (params.document_id, params.call_id, params.seq) == (document_id, call_id, int(seq))


def _unreadable(begun: re.Match[str], why: str) -> ToolErrored:
    document_id, call_id, seq = begun.groups()
    message = f"Cannot read the tool's result{why}. Return a simpler value."
    failure = WireError(code=codes.RESULT_NOT_SERIALIZABLE, message=message)
    params = ErrorParams(document_id=document_id, call_id=call_id, seq=int(seq), error=failure)
    return ToolErrored(params=params)


def to_json(message: Message) -> str:
    """Return a message as JSON, without the fields that are None."""
    # JSON-RPC 2.0, section 5: a response keeps its `result` or `id` even when that is null.
    return message.model_dump_json(exclude_none=not isinstance(message, Response))
