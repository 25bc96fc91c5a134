"""The console's page, and what it asks for.

The page is at `/`, its files and its API are below `/console`. Files hold no secrets, so they need
no cookie; the page and the API do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from opentabs_py.calling.listing import Listing
from opentabs_py.calling.tool import Tool
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.console.access import Access
from opentabs_py.console.admission import Admitted
from opentabs_py.console.calls import CallApp, CallBody
from opentabs_py.console.decisions import Decisions
from opentabs_py.console.entrance import Entrance
from opentabs_py.console.files import PAGE, Files
from opentabs_py.console.history import History
from opentabs_py.console.plugins import ServedPlugins
from opentabs_py.console.settings import SettingsForm
from opentabs_py.console.snippets import snippets
from opentabs_py.console.stream import StreamApp, Write
from opentabs_py.console.watch import Watch
from opentabs_py.core.limits import longest_body
from opentabs_py.core.plugin_names import OURSELVES
from opentabs_py.core.progress import Pace
from opentabs_py.server.http.json_requests import answering, refuse
from opentabs_py.server.http.page_headers import PageHeaders
from opentabs_py.server.tools.tool_calls import ToolCalls
from opentabs_py.tracing.html import VIEWER, trace_data

PATH: Final = "/console"
API: Final = f"{PATH}/api/"
# A plugin's icon runs no script and loads nothing, even if it is opened by itself.
_ICON_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@dataclass(slots=True)
class Console:
    """The console of one server.

    Args:
        access: Who is let in.
        watch: The activity that pages show.
        calls: The calls of the server's tools.
        plugins: The plugins.
        pace: How often the progress of a call made here is sent.
        message_limit: The longest arguments, in characters of JSON.
        audit: The audit's file, which has earlier calls.
        server_name: The name under which commands find the server.
        begin: Called when a page begins to look: from then on calls and logs are remembered.
        fleet: The fleet whose workers' tools are served.
    """

    access: Access
    watch: Watch
    calls: ToolCalls
    plugins: ServedPlugins
    pace: Pace
    message_limit: int
    audit: Path
    server_name: str = "default"
    begin: Callable[[], None] = lambda: None
    fleet: FleetOptions | None = None

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes for the server's application."""
        api = [
            Route("/stream", StreamApp(self._stream), methods=["GET"]),
            Route("/tools", self._list_tools),
            Route("/tools/{name}", self._describe_tool),
            Route("/calls/{call_id}", self._describe_call),
            Route("/call", CallApp(self.calls, self.pace, limit=self._limit), methods=["POST"]),
            Route(
                "/snippets",
                answering(CallBody, self._write_snippets, limit=self._limit),
                methods=["POST"],
            ),
            *Decisions(self.calls, self.plugins).routes(),
            *SettingsForm(self.plugins).routes(),
            *History(self.audit).routes(),
            Route("/icons/{plugin}.svg", self._show_icon),
        ]
        return [
            Route("/", Entrance(self.access, PAGE).show, middleware=[Middleware(PageHeaders)]),
            Mount(
                PATH,
                routes=[
                    Mount(
                        "/api", routes=api, middleware=[Middleware(Admitted, access=self.access)]
                    ),
                    Mount("/viewer", Files(VIEWER)),
                    Mount("/", Files(PAGE)),
                ],
                middleware=[Middleware(PageHeaders)],
            ),
        ]

    @property
    def _limit(self) -> int:
        return longest_body(self.message_limit)

    async def _stream(self, write: Write, boot: str, version: int) -> None:
        self.begin()
        await self.watch.stream(write, boot=boot, version=version)

    async def _list_tools(self, request: Request) -> Response:
        owner = request.query_params.get("owner")
        tools = [
            each for each in self.calls.registry.all_tools if owner in (None, each.listing.owner)
        ]
        return JSONResponse([self._in_short(each.listing) for each in tools])

    async def _describe_tool(self, request: Request) -> Response:
        tool = self.calls.registry.get(request.path_params["name"])
        if tool is None:
            return refuse("There is no such tool. It may have been removed.", HTTPStatus.NOT_FOUND)
        return JSONResponse(self._in_full(tool))

    async def _describe_call(self, request: Request) -> Response:
        call_id = request.path_params["call_id"]
        record = self.watch.record(call_id)
        if record is None:
            why = "This server has no record of the call. It may be too old, or of another server."
            return refuse(why, HTTPStatus.NOT_FOUND)
        data = trace_data([record], title=record.name)
        return JSONResponse({**data, "running": self.watch.is_running(call_id)})

    async def _write_snippets(self, body: CallBody) -> dict[str, str]:
        tool = self.calls.registry.get(body.tool)
        owner = "" if tool is None else tool.listing.owner
        plugin = self.plugins.find(owner)
        directory = None if plugin is None else plugin.directory
        return snippets(
            body.tool,
            body.arguments,
            plugin=directory,
            owner=owner,
            fleet=None if self.calls.registry.is_python(body.tool) else self.fleet,
            name=self.server_name,
        )

    async def _show_icon(self, request: Request) -> Response:
        plugin = self.plugins.find(request.path_params["plugin"])
        svg = None if plugin is None else plugin.manifest.icon_svg
        if svg is None:
            return refuse("This plugin has no icon.", HTTPStatus.NOT_FOUND)
        headers = {"content-security-policy": _ICON_POLICY, "cache-control": "max-age=3600"}
        return Response(svg, headers=headers, media_type="image/svg+xml")

    def _in_short(self, listing: Listing) -> dict[str, Any]:
        decision = self.calls.registry.decision(listing.name)
        return {
            "name": listing.name,
            "owner": listing.owner,
            "title": listing.title,
            "summary": listing.summary,
            "group": listing.group,
            "icon": listing.icon,
            "permission": None if decision is None else decision.permission,
            "because": None if decision is None else decision.because,
            "rule": listing.gated("named").rule,
            "readOnly": listing.is_read_only,
        }

    def _in_full(self, tool: Tool) -> dict[str, Any]:
        listing = tool.listing
        is_ours = self.calls.registry.is_python(listing.name) or listing.owner == OURSELVES
        return {
            **self._in_short(listing),
            "description": listing.description,
            "inputSchema": listing.input_schema,
            "outputSchema": listing.output_schema,
            "annotations": listing.annotations,
            "needsTab": listing.needs_tab,
            "isRemote": self.fleet is not None and not is_ours,
        }
