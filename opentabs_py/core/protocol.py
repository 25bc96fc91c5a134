"""The messages between server and extension: JSON-RPC 2.0 over one WebSocket.

Every message is a model here; `core/wire.py` parses and writes them. `extension/protocol.js` (types
and checks) and the tables of `docs/protocol.md` are generated from both by `make generate`.

Models are strict, frozen and forbid unknown fields: pydantic's lax mode would take
`true` and `"1"` for numbers. Times are milliseconds since the epoch on the sender's
clock. A message too long for one frame travels in chunks, see `core/chunks.py`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from opentabs_py.core.json_numbers import MAX_SAFE_INTEGER
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.sites.match_patterns import LONGEST_PATTERN

PROTOCOL_VERSION = 4

# The subprotocols that the extension offers: ours, which the server selects, and one that carries
# the secret.
SUBPROTOCOL = "opentabs"
SECRET_SUBPROTOCOL = "opentabs.secret."  # noqa: S105 (a prefix of the secret)

# WebSocket close codes of the private range, each with a reason that the user can act on.
CLOSE_BAD_VERSION = 4001
CLOSE_REPLACED = 4002
CLOSE_NO_HELLO = 4003
CLOSE_WRONG_SECRET = 4004
CLOSE_INVALID_HELLO = 4005

BrowserId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
CallId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
DocumentId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_PATTERN)]
Text = Annotated[str, StringConstraints(max_length=8192)]
Integer = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Stamps = Annotated[dict[Name, Time], Field(max_length=16)]


class Model(BaseModel):
    """Base of everything on the wire."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )


# --- parts of messages ---


class PluginState(Model):
    """The state of a plugin in one document.

    `unavailable`: its `isReady()` is not true; `missing`: its code does not run there.
    """

    readiness: Literal["pending", "ready", "unavailable", "missing"]
    reason: Text | None = None


class DocumentState(Model):
    """One top-level document that plugins run in, and the calls it knows."""

    document_id: DocumentId
    tab_id: Integer
    url: Annotated[str, StringConstraints(max_length=65536)]
    title: Text
    active: bool
    focused: bool
    protected: bool
    calls: list[CallId]
    plugins: dict[Name, PluginState]


class LoadingTab(Model):
    """A tab on a page that plugins run in, whose document has not reported yet."""

    tab_id: Integer
    url: Annotated[str, StringConstraints(max_length=65536)]
    plugins: list[Name]


class PluginSpec(Model):
    """What the extension needs to know of a plugin: where it runs, and its files.

    If `early` is not empty, only those files are injected. The runtime loads them when it starts.
    """

    name: Name
    version: Name
    matches: list[Pattern]
    exclude_matches: list[Pattern]
    file: Name
    config: dict[str, Any]
    pre_script: Name | None = None
    early: list[Name] | None = None


class PluginProblem(Model):
    """A plugin that could not be injected into a document."""

    plugin: Name
    tab_id: Integer
    message: Text


class RegisteredTool(Model):
    """A tool that a page registers itself; all but the `id` is the page's and not verified."""

    id: Integer
    name: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    title: Text
    description: Text
    read_only: bool
    consequential: bool
    untrusted_content: bool
    input_schema: dict[str, Any]


class WireError(Model):
    """Why a tool returned no value; the fields of the ecosystem's `ToolError`.

    `started` is false if the call ended before its tool started. `stack` is V8's text, then
    `[cause]: ` and that of each cause.
    """

    code: Annotated[str, StringConstraints(max_length=256)]
    message: str
    category: Annotated[str, StringConstraints(max_length=256)] | None = None
    retryable: bool = False
    retry_after_ms: Time | None = None
    started: bool = True
    stack: Text | None = None


class LogEntry(Model):
    """One log record of a plugin: how severe it is, its text, and when, in ms since the epoch."""

    level: Literal["debug", "info", "warning", "error"]
    message: Text
    time: Time


class RpcError(Model):
    """A JSON-RPC 2.0 error object (section 5.1)."""

    code: Annotated[int, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
    message: str
    data: Any = None


# --- params and results ---


class HelloParams(Model):
    """Identifies the extension, and lists what survived: every document and its calls.

    `browserId` identifies the browser profile permanently, `bootId` this run of the service
    worker. An extension that has not been synced since it loaded, or since the browser started, is
    `fresh`: everything dispatched before is lost.
    """

    protocol_version: Integer
    extension_version: Name
    boot_id: Name
    browser_id: BrowserId
    browser: Text
    time: Time
    tab_ids: list[Integer]
    documents: list[DocumentState]
    loading: list[LoadingTab] = []
    crashed: list[Integer] = []
    fresh: bool = False


class HelloResult(Model):
    """Identifies the server, and states the limits the extension must respect."""

    server_version: Name
    time: Time
    message_limit: Integer


class SyncParams(Model):
    """All plugins; any plugin not listed is removed."""

    plugins: list[PluginSpec]


class SyncResult(Model):
    """How many documents received an adapter, and what failed."""

    injected: Integer
    problems: list[PluginProblem]


class DispatchParams(Model):
    """Run a tool in a document. Resent after a reconnect; a known call id is ignored."""

    document_id: DocumentId
    call_id: CallId
    plugin: Name
    tool: Name
    input: dict[str, Any]
    trace: bool = False


class AnnounceParams(Model):
    """The call whose `tool.dispatch` follows in parts, which the worker does not read."""

    document_id: DocumentId
    call_id: CallId


class ProgressParams(Model):
    """Reports of one call, in order; gaps in their numbers are reports that the relay dropped."""

    document_id: DocumentId
    call_id: CallId
    reports: list[ProgressReport]


class ResultParams(Model):
    """The value a tool returned."""

    document_id: DocumentId
    call_id: CallId
    seq: Integer
    value: Any
    stamps: Stamps | None = None


class ErrorParams(Model):
    """The error a tool threw, or why its value could not be sent."""

    document_id: DocumentId
    call_id: CallId
    seq: Integer
    error: WireError
    stamps: Stamps | None = None


class AckParams(Model):
    """Every report of the call up to `seq` has arrived."""

    document_id: DocumentId
    call_id: CallId
    seq: Integer


class SettledParams(Model):
    """The results of these calls arrived, or no caller waits for them: the relay forgets them."""

    document_id: DocumentId
    call_ids: list[CallId]


class CancelParams(Model):
    """Abort the tool: its `context.signal` fires with `reason`. The call is forgotten."""

    document_id: DocumentId
    call_id: CallId
    reason: Text


class LostParams(Model):
    """A call whose document is gone, as seen by a live worker."""

    call_id: CallId
    reason: Literal["tab_closed", "navigated", "crashed", "not_delivered"]


class TabsParams(Model):
    """The complete state: every document that plugins run in, and every tab.

    The page of a tab in `crashed` has crashed, or the browser has discarded it.
    """

    tab_ids: list[Integer]
    documents: list[DocumentState]
    loading: list[LoadingTab] = []
    crashed: list[Integer] = []


class PageToolsParams(Model):
    """All tools that a page registers itself; `leftOut` counts those over the limits."""

    document_id: DocumentId
    tools: Annotated[list[RegisteredTool], Field(max_length=100)]
    left_out: Integer = 0


class LogParams(Model):
    """Log records of a plugin; `dropped` counts those over the rate limit."""

    document_id: DocumentId
    plugin: Name
    entries: Annotated[list[LogEntry], Field(max_length=256)]
    dropped: Integer = 0


class StoppedParams(Model):
    """How a tool ended whose call was cancelled, or that it had not been started.

    `stack` is that of what the tool threw; it is missing if the tool returned.
    """

    document_id: DocumentId
    call_id: CallId
    started: bool
    stack: Text | None = None


class StampParams(Model):
    """When a traced call passed the service worker."""

    call_id: CallId
    stamps: Stamps


class QueryParams(Model):
    """Answered with `TabsParams`, once each page of `plugin` has said whether it is ready.

    If it has none, a tab of it that the browser has unloaded begins to load first.
    """

    plugin: Name | None = None


class ActivityParams(Model):
    """How many calls run in the browser's pages, and how many wait for the user to allow them."""

    running: Integer
    waiting: Integer


class RemoveParams(Model):
    """Why the extension is uninstalled."""

    reason: Text


class OpenParams(Model):
    """A page to open in a new tab: an `http` or `https` URL."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=65536)]


class CloseParams(Model):
    """A tab to close."""

    tab_id: Integer


class OpenedTab(Model):
    """The tab that was opened; sent before its page begins to load."""

    tab_id: Integer


class ClosedTab(Model):
    """The tab that was closed, or was already."""

    tab_id: Integer


class TargetsParams(Model):
    """No parameters."""


class TabTarget(Model):
    """Which tab is which target of Chrome's debugging protocol.

    The tab that was used last has the largest `lastUsed`.
    """

    tab_id: Integer
    target_id: Name
    active: bool
    last_used: Time


class TabTargets(Model):
    """The tabs that have a page to debug."""

    tabs: list[TabTarget]


class PingParams(Model):
    """The sender's clock."""

    time: Time


class PongParams(Model):
    """The responder's clock, and the time of the ping it answers."""

    time: Time
    ping_time: Time


# --- messages ---


class Message(Model):
    """Base of JSON-RPC messages."""

    jsonrpc: Literal["2.0"] = "2.0"


class Hello(Message):
    """The first message of a connection."""

    method: Literal["hello"] = "hello"
    id: Integer
    params: HelloParams


class PluginsSync(Message):
    """Which plugins to inject where."""

    method: Literal["plugins.sync"] = "plugins.sync"
    id: Integer
    params: SyncParams


class ToolDispatch(Message):
    """A call on its way to the page."""

    method: Literal["tool.dispatch"] = "tool.dispatch"
    params: DispatchParams


class ToolAnnounce(Message):
    """A long call follows, so that the worker can tell if its page is left before it arrives."""

    method: Literal["tool.announce"] = "tool.announce"
    params: AnnounceParams


class ToolProgress(Message):
    """What a running tool reported."""

    method: Literal["tool.progress"] = "tool.progress"
    params: ProgressParams


class ToolResult(Message):
    """A tool's value."""

    method: Literal["tool.result"] = "tool.result"
    params: ResultParams


class ToolErrored(Message):
    """A tool's error."""

    method: Literal["tool.error"] = "tool.error"
    params: ErrorParams


class ToolAck(Message):
    """Acknowledges reports: the relay sends the next batch and frees these."""

    method: Literal["tool.ack"] = "tool.ack"
    params: AckParams


class ToolSettled(Message):
    """Acknowledges results, several at a time; the relay frees them."""

    method: Literal["tool.settled"] = "tool.settled"
    params: SettledParams


class ToolCancel(Message):
    """Stops a call in the page."""

    method: Literal["tool.cancel"] = "tool.cancel"
    params: CancelParams


class ToolLost(Message):
    """A call that will never answer."""

    method: Literal["tool.lost"] = "tool.lost"
    params: LostParams


class TabsChanged(Message):
    """The state of tabs and documents changed."""

    method: Literal["tabs.changed"] = "tabs.changed"
    params: TabsParams


class PageTools(Message):
    """The tools that a page registers itself have changed, or the connection is new."""

    method: Literal["page.tools"] = "page.tools"
    params: PageToolsParams


class PluginLog(Message):
    """What plugins logged."""

    method: Literal["plugin.log"] = "plugin.log"
    params: LogParams


class TabsQuery(Message):
    """Asks for the state of tabs and documents, before refusing a call for lack of a ready tab."""

    method: Literal["tabs.query"] = "tabs.query"
    id: Integer
    params: QueryParams


class ExtensionRemove(Message):
    """Uninstalls the extension from a browser that was only borrowed."""

    method: Literal["extension.remove"] = "extension.remove"
    params: RemoveParams


class ActivityChanged(Message):
    """What the icon's badge shows; nothing runs or waits until the first one after `hello`."""

    method: Literal["activity.changed"] = "activity.changed"
    params: ActivityParams


class TabsOpen(Message):
    """Opens a tab in the group "OpenTabs", without taking the focus."""

    method: Literal["tabs.open"] = "tabs.open"
    id: Integer
    params: OpenParams


class TabsClose(Message):
    """Closes a tab that `tabs.open` opened."""

    method: Literal["tabs.close"] = "tabs.close"
    id: Integer
    params: CloseParams


class TabsTargets(Message):
    """Asks which debugging target each tab is. Needs the extension's permission `debugger`."""

    method: Literal["tabs.targets"] = "tabs.targets"
    id: Integer
    params: TargetsParams


class ToolStopped(Message):
    """A tool has ended, after its call had ended: the server had cancelled it."""

    method: Literal["tool.stopped"] = "tool.stopped"
    params: StoppedParams


class ToolStamps(Message):
    """The service worker's trace stamps, for traced calls only."""

    method: Literal["tool.stamps"] = "tool.stamps"
    params: StampParams


class Ping(Message):
    """Keeps the service worker alive and measures its clock; the answer is a `Pong`."""

    method: Literal["ping"] = "ping"
    params: PingParams


class Pong(Message):
    """Answers a `Ping`."""

    method: Literal["pong"] = "pong"
    params: PongParams


class ResultResponse(Message):
    """A request's result."""

    id: Integer
    result: Any


class HelloResultResponse(Message):
    """The server's answer to `hello`, the only request that the extension makes."""

    id: Integer
    result: HelloResult


class ErrorResponse(Message):
    """A request's error; without an id, a message that could not be understood."""

    id: Integer | None
    error: RpcError


# JSON-RPC calls both a response; these names are those of MCP's schema.
Response = ResultResponse | ErrorResponse
HelloResponse = HelloResultResponse | ErrorResponse
ToExtension = (
    PluginsSync
    | TabsQuery
    | TabsOpen
    | TabsClose
    | TabsTargets
    | ExtensionRemove
    | ToolAnnounce
    | ToolDispatch
    | ToolAck
    | ToolSettled
    | ToolCancel
    | ActivityChanged
    | Ping
    | Pong
)
FromExtension = (
    Hello
    | ToolProgress
    | ToolResult
    | ToolErrored
    | ToolLost
    | TabsChanged
    | PageTools
    | PluginLog
    | ToolStopped
    | ToolStamps
    | Ping
    | Pong
)
