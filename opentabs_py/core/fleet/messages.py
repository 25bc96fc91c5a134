"""The messages between workers and endpoints, as JSON.

A worker announces itself to all. Everything else travels on a channel of its own: its first
message is a `ToolsRequest`, `CallRequest` or `LeaveRequest`; the answers follow, and `Tools`,
`Returned`, `Failed`, `Done` or `Busy` is the last. The models are strict and frozen, and forbid
unknown members.
"""

from hashlib import sha256
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import from_json

from opentabs_py.core.error_kinds import ErrorKind
from opentabs_py.core.fleet.subjects import INSTANCE_ID
from opentabs_py.core.plugin_names import RESERVED_TOOLS
from opentabs_py.core.plugins.manifest import HINTS
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import Integer, LogEntry, Model, Name, Text, Time
from opentabs_py.core.text import HYPHENATED, first_problem
from opentabs_py.errors import ProtocolError
from opentabs_py.version import __version__

T = TypeVar("T")

FLEET_VERSION: Final = 3
FOREVER: Final = 1e9  # s; JSON has no infinity

InstanceId = Annotated[str, StringConstraints(pattern=f"^{INSTANCE_ID}$")]
# It is part of subjects; see `config.names`.
WorkerName = Annotated[str, StringConstraints(pattern=f"^{HYPHENATED}$", max_length=40)]
Count = Annotated[int, Field(ge=0, le=2**31)]
Seconds = Annotated[
    float, Field(ge=0, allow_inf_nan=True), AfterValidator(lambda seconds: min(seconds, FOREVER))
]

_HINTS: Final[dict[str, type[str] | type[bool]]] = {"title": str, **dict.fromkeys(HINTS, bool)}

State = Literal["starting", "serving", "draining", "leaving"]


class ServedOwner(Model):
    """What a worker announces of one plugin, or of one module of Python tools.

    `digest` identifies its tools' descriptions. `ready` is the number of tabs in which it works
    now; None if its tools need no tab.
    """

    digest: Name
    ready: Count | None = None


class Announcement(Model):
    """What a worker says of itself, whenever it changes and every two seconds.

    `number` is that of its first browser among those of the fleet; tabs are numbered by it.
    `running` counts the calls that run now, by endpoint; `calls` and `failures` those that have
    ended. `memory` is that of its processes, in bytes. A worker that is `starting` only claims its
    name and number; one that is `draining` takes no calls; one that is `leaving` exits.
    """

    version: Count
    opentabs: Name
    name: WorkerName
    instance: InstanceId
    host: Name
    pid: Count
    started: Time
    state: State
    number: Integer
    browsers: Annotated[list[Name], Field(max_length=1000)]
    labels: dict[Name, Name]
    max_calls: Count
    running: dict[InstanceId, Count]
    served: dict[Name, ServedOwner]
    calls: Integer = 0
    failures: Integer = 0
    restarts: Integer = 0
    memory: Integer = 0

    @property
    def total_running(self) -> int:
        """How many calls run in it now."""
        return sum(self.running.values())

    @property
    def total_ready(self) -> dict[str, int]:
        """In how many tabs each plugin works now."""
        return {name: each.ready for name, each in self.served.items() if each.ready is not None}


class EndpointAnnouncement(Model):
    """What an endpoint says of itself, for those who look at the fleet.

    `running` and `waiting` count its calls; one that is `leaving` says it for the last time.
    """

    version: Count
    endpoint: InstanceId
    host: Name
    pid: Count
    running: Count
    waiting: Count
    leaving: bool = False


class ToolsRequest(Model):
    """Requests the tools of one plugin or module."""

    type: Literal["tools"] = "tools"
    owner: Name


class LeaveRequest(Model):
    """Says that an MCP client disconnected, so the tabs that it opened can be closed."""

    type: Literal["leave"] = "leave"
    client: Text


class CallRequest(Model):
    """Requests a call of a tool.

    `client` is the MCP client's session, by which it owns tabs; `client_name` says who makes the
    call, for users. With `record`, the answer contains the call's record; with `trace` too, and it
    says when the call passed each hop.
    """

    type: Literal["call"] = "call"
    tool: Name
    arguments: dict[str, Any]
    idle: Seconds
    ceiling: Seconds
    client: Text | None = None
    client_name: Text | None = None
    record: bool = False
    trace: bool = False
    traceparent: Name | None = None


class Cancel(Model):
    """The caller no longer waits, for this reason, which its tool receives."""

    type: Literal["cancel"] = "cancel"
    reason: str


def _check_name(name: str) -> str:
    if name in RESERVED_TOOLS:
        raise ValueError("endpoints have that tool themselves")
    return name


def _check_input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "object":
        raise ValueError('its root type is not "object"')
    return schema


def _check_annotations(annotations: dict[str, Any]) -> dict[str, Any]:
    wrong = [
        hint for hint, kind in _HINTS.items() if not isinstance(annotations.get(hint), kind | None)
    ]
    if wrong:
        raise ValueError(f"{wrong[0]} is of the wrong type")
    return annotations


class ToolJson(Model):
    """One tool, as clients see it; see `calling.listing.Listing`.

    With another name, schema or hint, clients would refuse the whole list that it is in.
    """

    name: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,256}\z"), AfterValidator(_check_name)
    ]
    title: str
    description: str
    input_schema: Annotated[dict[str, Any], AfterValidator(_check_input_schema)]
    output_schema: dict[str, Any] | None = None
    annotations: Annotated[dict[str, Any], AfterValidator(_check_annotations)] | None = None
    summary: str = ""
    group: str = ""
    idle: Seconds | None = None
    ceiling: Seconds | None = None


class Tools(Model):
    """The tools of one plugin or module, and the URL patterns of the pages that they need."""

    type: Literal["tools"] = "tools"
    tools: list[ToolJson]
    patterns: list[str]


class Sent(Model):
    """The call is on its way to its tool; its timers run."""

    type: Literal["sent"] = "sent"


class Progress(Model):
    """A batch of reports."""

    type: Literal["progress"] = "progress"
    reports: list[ProgressReport]


class Logs(Model):
    """What the call's plugin logged in the call's page."""

    type: Literal["logs"] = "logs"
    entries: list[LogEntry]


class McpContent(Model):
    """A result that is more than a JSON value: MCP content."""

    content: list[dict[str, Any]]
    structured: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class Returned(Model):
    """The tool returned a value.

    `record` is the worker's record of the call, if it was asked. With `keeps`, the client has
    something in the worker that ends with it: a stream, or a tab.
    """

    type: Literal["returned"] = "returned"
    value: Any = None
    content: McpContent | None = None
    record: dict[str, Any] | None = None
    keeps: bool = False


class Failed(Model):
    """The call ended without a value; the members of `ErrorDetail`, and which error it is.

    `value` is what the tool returned, if that is why it failed, and `partial` what it produced
    before it failed. Instead of either, it is `content` if it is more than a JSON value. `record`
    and `keeps` are those of `Returned`.
    """

    type: Literal["failed"] = "failed"
    kind: ErrorKind
    code: Annotated[str, StringConstraints(max_length=256)]
    message: str
    category: Name | None = None
    retryable: bool = False
    retry_after_ms: Time | None = None
    stack: str | None = None
    value: Any = None
    partial: Any = None
    content: McpContent | None = None
    record: dict[str, Any] | None = None
    keeps: bool = False


class Done(Model):
    """The request has been carried out."""

    type: Literal["done"] = "done"


class Busy(Model):
    """The worker is full by now, or no longer takes calls. The call did not run."""

    type: Literal["busy"] = "busy"


ToWorker = Annotated[
    ToolsRequest | CallRequest | LeaveRequest | Cancel, Field(discriminator="type")
]
ToEndpoint = Annotated[
    Tools | Sent | Progress | Logs | Returned | Failed | Done | Busy, Field(discriminator="type")
]

_TO_WORKER: Final[TypeAdapter[ToWorker]] = TypeAdapter(ToWorker)
_TO_ENDPOINT: Final[TypeAdapter[ToEndpoint]] = TypeAdapter(ToEndpoint)
_ANNOUNCEMENT: Final = TypeAdapter(Announcement)
_ENDPOINT: Final = TypeAdapter(EndpointAnnouncement)


class VersionSkewError(ProtocolError):
    """A worker speaks another version of this protocol.

    Attributes:
        name: The worker.
        instance: Its run.
    """

    def __init__(self, name: str, instance: str, opentabs: str, version: object) -> None:
        super().__init__(
            f"The worker {name} runs opentabs-py {opentabs} (fleet protocol {version}), and this "
            f"is opentabs-py {__version__} (fleet protocol {FLEET_VERSION}). Run one version on "
            "both."
        )
        self.name = name
        self.instance = instance


def encode(message: Model) -> bytes:
    """Return a message as JSON."""
    return message.model_dump_json(by_alias=True, exclude_none=True).encode()


def digest_of(tools: Tools) -> str:
    """Return what identifies the descriptions of some tools."""
    return sha256(encode(tools)).hexdigest()[:32]


def read_for_worker(data: bytes) -> ToWorker:
    """Return a message of an endpoint.

    Raises:
        ProtocolError: It is not valid; the text names the member.
    """
    return _read(_TO_WORKER, data)


def read_for_endpoint(data: bytes) -> ToEndpoint:
    """Return a message of a worker.

    Raises:
        ProtocolError: It is not valid; the text names the member.
    """
    return _read(_TO_ENDPOINT, data)


def read_announcement(data: bytes) -> Announcement:
    """Return what a worker announces.

    Raises:
        VersionSkewError: The worker speaks another version.
        ProtocolError: It is not valid.
    """
    try:
        value: Any = from_json(data)
    except ValueError as error:
        raise ProtocolError(f"An announcement is not JSON: {error}.") from None
    if isinstance(value, dict) and cast("Any", value).get("version") != FLEET_VERSION:
        sender = cast("dict[str, Any]", value)
        name, instance = str(sender.get("name"))[:100], str(sender.get("instance"))[:32]
        theirs = str(sender.get("opentabs"))[:100]
        raise VersionSkewError(name, instance, theirs, sender.get("version"))
    try:
        return _read(_ANNOUNCEMENT, data)
    except ProtocolError as error:
        raise ProtocolError(f"An announcement is not valid: {error}.") from None


def read_endpoint(data: bytes) -> EndpointAnnouncement:
    """Return what an endpoint announces.

    Raises:
        ProtocolError: It is not valid.
    """
    return _read(_ENDPOINT, data)


def _read(adapter: TypeAdapter[T], data: bytes) -> T:
    try:
        return adapter.validate_json(data)
    except ValidationError as error:
        raise ProtocolError(first_problem(error)) from None
