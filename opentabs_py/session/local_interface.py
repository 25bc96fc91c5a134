"""The local interface of a server: what the command line asks of one that is running.

It has its own port and token, so it is independent of the MCP servers. A call is answered with one
JSON document per line while it runs, and is cancelled when its connection closes.
`daemon/local_client.py` is the other side.
"""

import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
from pydantic import Field
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from opentabs_py import __version__
from opentabs_py.calling.call import CallOrigin, new_call_id
from opentabs_py.calling.client import Asker
from opentabs_py.calling.streams import Followed
from opentabs_py.core.consent import why_unreviewed
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import Pace
from opentabs_py.core.questions import Answer, Place, Question
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import CallRefusedError, ConfigError, OpenTabsError, PluginError
from opentabs_py.plugins.folders import Sources
from opentabs_py.plugins.freshness import why_stale
from opentabs_py.plugins.plugin import reasons
from opentabs_py.server.call_stream import CallStream
from opentabs_py.server.http.guards import LocalOnly, RequireToken
from opentabs_py.server.http.json_requests import (
    AnswerBody,
    BadRequestError,
    Body,
    answering,
    read,
    refuse,
)
from opentabs_py.session.browsers.browser import close_page
from opentabs_py.session.plugins.plugins import refuse_skipped
from opentabs_py.session.session import OpenTabs

if TYPE_CHECKING:
    from opentabs_py.fleet.endpoint import Fleet

COMMAND: Final = "opentabs call"  # the only command that calls tools
ANY_LENGTH: Final = sys.maxsize  # only the user can send it; the call says what is too long
Seconds = Field(default=None, gt=0, allow_inf_nan=False)


def _steady_time() -> float:
    """Return the seconds of a clock that nobody sets; on Linux, it counts a machine's sleep too."""
    is_linux = sys.platform == "linux"
    return time.clock_gettime(time.CLOCK_BOOTTIME) if is_linux else time.monotonic()


class LocalCallRequest(Body):
    """A call that a command makes.

    Attributes:
        tool: The tool's MCP name.
        arguments: Its arguments.
        idle: Seconds of silence that end the call; None for the server's.
        ceiling: Seconds that the call may take; None for the server's.
        plugins: Directories of built plugins that it needs; absolute paths.
        plugin_folders: Folders that contain such directories.
        open: Pages to open for it, which are closed after it.
        can_ask: Whether the user can be asked to allow the call.
        explain: Whether the user reads what becomes of a tool that timed out.
    """

    tool: str
    arguments: dict[str, Any]
    idle: float | None = Seconds
    ceiling: float | None = Seconds
    plugins: tuple[str, ...] = ()
    plugin_folders: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    can_ask: bool = False
    explain: bool = False


class InvitationBody(Body):
    """Whom a URL of the console lets in.

    Attributes:
        for_own_user: Whether it opens for no other user of this machine.
    """

    for_own_user: bool = False


@dataclass(frozen=True, slots=True)
class LocalInterface:
    """What the command line may ask of a session.

    Args:
        session: The session.
        pace: How often a call's progress is sent.
        stop: Begins to stop the server.
        started: When it was created, on a clock of its own.
    """

    session: OpenTabs
    pace: Pace
    stop: Callable[[], None]
    started: float = field(default_factory=_steady_time)

    def app(self, token: str) -> Starlette:
        """Return the ASGI application; every request must have the token."""
        return Starlette(
            routes=[
                Route("/status", self._report_status),
                Route("/tools", self._list_tools),
                Route("/call", _CallApp(self.session, self.pace), methods=["POST"]),
                Route(
                    "/answer",
                    answering(AnswerBody, self._answer, limit=ANY_LENGTH),
                    methods=["POST"],
                ),
                Route(
                    "/console",
                    answering(InvitationBody, self._invite, limit=ANY_LENGTH),
                    methods=["POST"],
                ),
                Route("/stop", self._stop, methods=["POST"]),
            ],
            middleware=[Middleware(LocalOnly), Middleware(RequireToken, token=token)],
        )

    async def _report_status(self, _request: Request) -> Response:
        uptime = _steady_time() - self.started  # the time of day may have been set since
        return JSONResponse({**status(self.session), "uptime": uptime})

    async def _list_tools(self, _request: Request) -> Response:
        registry = self.session.internals.registry
        tools = [
            {
                "listing": asdict(each.listing),
                "isOfPlugin": registry.status(each.listing.owner) is not None,
            }
            for each in registry.tools
        ]
        return JSONResponse(tools)

    async def _answer(self, given: AnswerBody) -> dict[str, Any]:
        gate = self.session.internals.registry.gate
        return asdict(await gate.answer(given.id, given.answer, by="terminal"))

    async def _invite(self, given: InvitationBody) -> dict[str, Any]:
        return {"url": self.session.console_url(for_own_user=given.for_own_user)}

    async def _stop(self, _request: Request) -> Response:
        self.stop()
        return JSONResponse({}, status_code=HTTPStatus.ACCEPTED)


def status(session: OpenTabs) -> dict[str, Any]:
    """Return what a server serves, where, and what it is doing."""
    server = session.internals
    pages, fleet = server.pages, server.fleet if session.is_endpoint else None
    standings = server.plugin_set.standings
    off = {name for name, each in standings.items() if why_unreviewed(each) is not None}
    return {
        "version": __version__,
        "mcpUrl": session.mcp_url,
        "extension": pages.connected,
        "plugins": [
            {
                "name": each.manifest.name,
                "version": each.manifest.version,
                "directory": str(each.directory),
                "tools": len(each.manifest.tools),
                "status": "off" if (name := each.manifest.name) in off else pages.tabs.status(name),
            }
            for each in server.plugin_set.plugins
        ],
        "skipped": reasons(session.skipped_plugins),
        "tools": len(session.tools),
        "tabs": [
            {"id": each.tab_id, "title": each.title, "url": each.url, "plugins": [*each.plugins]}
            for each in pages.tabs.documents
        ],
        "browsers": [
            {
                "name": each.bridge.name,
                "connected": each.bridge.connected,
                "attached": each.attach is not None,
                "userAction": each.bridge.tabs.user_action,
            }
            for each in server.browsers
            if fleet is None
        ],
        "fleet": None if fleet is None else _fleet_status(fleet),
        "calls": len(server.tool_calls.running) if fleet is None else fleet.running,
        "warnings": server.plugin_set.warnings if fleet is None else [],
    }


def _fleet_status(fleet: "Fleet") -> dict[str, Any]:
    return {
        "name": fleet.link.options.fleet,
        "nats": fleet.link.options.addresses,
        "connected": fleet.link.connected,
        "workers": [
            {"name": each.name, "ready": each.total_ready, "running": each.total_running}
            for each in fleet.directory.usable
        ],
        "waiting": fleet.waiting,
    }


class _CallApp:
    """Answers a call with what happens, until it ends. A class, because it streams by itself."""

    def __init__(self, session: OpenTabs, pace: Pace) -> None:
        self._session = session
        self._pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = await read(Request(scope, receive), LocalCallRequest, limit=ANY_LENGTH)
        except BadRequestError as error:
            await refuse(str(error), error.status)(scope, receive, send)
            return
        stream = CallStream(send, self._pace)
        await stream.serve(receive, partial(self._outcome, request, stream))

    async def _outcome(self, request: LocalCallRequest, stream: CallStream) -> dict[str, Any]:
        try:
            async with AsyncExitStack() as stack:
                await self._prepare(request, stream, stack)
                return await self._call(request, stream)
        except (ConfigError, PluginError, CallRefusedError) as error:
            return {"refused": str(error), "failed": "caller"}
        except OpenTabsError as error:
            return {"refused": str(error), "failed": "chain"}

    async def _prepare(
        self, request: LocalCallRequest, stream: CallStream, stack: AsyncExitStack
    ) -> None:
        """Serve the plugins that the call needs, and open its pages."""
        session = self._session
        sources = Sources([*map(Path, request.plugins)], [*map(Path, request.plugin_folders)])
        wanted = sources.plugins()
        server = session.internals
        if session.is_endpoint:
            for directory in wanted:
                stream.warn(f"skipped: {directory} (this server's plugins are on its workers)")
            wanted = []
        skipped = await stack.enter_async_context(server.plugin_set.added(wanted, server.tasks))
        for reason in reasons(skipped):
            stream.warn(f"skipped: {reason}")
        for directory in wanted:
            if (why := why_stale(directory, directory.name)) is not None:
                stream.warn(why)
        refuse_skipped(request.tool, server.registry, skipped)
        for url in request.open:
            stream.say(f"Opening {url}")
            await session.browser.relaunch()
            page = await session.open(url)
            stack.push_async_callback(close_page, page)
        found = server.registry.get(request.tool)
        decision = server.registry.decision(request.tool)
        if found is not None and not request.open and decision and decision.permission != "off":
            owner = found.listing.owner
            is_closed = server.registry.status(owner) == "closed" and server.launches_browser
            if is_closed and (start_page := await session.start_page_url(owner)) is not None:
                stream.say(f"Opening the start page of {owner}")
                await session.browser.relaunch()
                await session.open(start_page)  # it stays open, for the next call

    async def _call(self, request: LocalCallRequest, stream: CallStream) -> dict[str, Any]:
        server = self._session.internals
        found = server.registry.get(request.tool)
        own = None if found is None else found.limits
        usual = own or server.tool_calls.limits
        limits = None
        if request.idle is not None or request.ceiling is not None:
            limits = Limits(request.idle or usual.idle, request.ceiling or usual.ceiling)
        stream.say(request.tool)
        call_id = new_call_id()
        ended = await stream.call(
            server.tool_calls,
            request.tool,
            request.arguments,
            limits=limits,
            origin=CallOrigin.of(_Command(stream, can_ask=request.can_ask)),
            call_id=call_id,
        )
        if request.explain and (why := await server.stopped_tools.wait_to_explain(call_id)):
            stream.log("warning", f"The tool {request.tool} timed out. {why}")
        return ended


class _Command:
    """The command that makes a call, as the client that it is.

    Args:
        stream: Sends to it.
        can_ask: Whether the user reads the stream and can answer.
    """

    session_key: SessionKey | None = None
    takes_links = False
    reads_streams = True
    uses_gateway = False
    name = COMMAND
    is_immediate = False
    asked_place: Place | None = None

    def __init__(self, stream: CallStream, *, can_ask: bool) -> None:
        self._stream = stream
        self.asker: Asker | None = self if can_ask else None

    async def ask(self, question: Question, /) -> Answer:
        """Send the question; its answer comes by another request, or is given elsewhere."""
        self._stream.ask(question)
        try:
            await anyio.sleep_forever()
        finally:
            self._stream.end_question(question.id)
        raise AssertionError

    def follow(self, stream: Followed) -> None:
        """Do nothing: a command reads the result only."""

    def wake(self) -> None:
        """Do nothing, for the same reason."""
