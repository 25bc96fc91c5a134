"""The user's decisions in the console: answers, permissions, reviews, and ending calls."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from opentabs_py.console.plugins import NoSuchPluginError, ServedPlugins
from opentabs_py.core.consent import Permission, parse_rules
from opentabs_py.core.text import visible
from opentabs_py.errors import ConfigError, PluginError
from opentabs_py.plugins.build_content import (
    content_digest,
    content_files,
    find_changes,
    source_lines,
)
from opentabs_py.plugins.plugin import Plugin
from opentabs_py.server.http.json_requests import (
    AnswerBody,
    BadRequestError,
    Body,
    answering,
    refuse,
)
from opentabs_py.server.tools.tool_calls import ToolCalls

LONGEST_BODY: Final = 64 * 1024  # bytes
LONGEST_SOURCE: Final = 2 * 1024 * 1024  # characters; of 120 public adapters, the largest has 0.8
MOST_LINES: Final = 2_000  # of what has changed
BY: Final = "console"


class CancelBody(Body):
    """A call to end."""

    call: str


class PermissionBody(Body):
    """A permission to set: of a plugin, or of `plugin.tool`."""

    rule: str
    permission: Permission


class ReviewBody(Body):
    """A plugin's build to approve, as `GET /reviews/PLUGIN` identified it."""

    plugin: str
    digest: str


@dataclass(frozen=True, slots=True)
class Decisions:
    """Carries out what the user decides.

    Args:
        calls: The calls of the server's tools, and what is allowed.
        plugins: The plugins.
    """

    calls: ToolCalls
    plugins: ServedPlugins

    def routes(self) -> list[BaseRoute]:
        """Return the routes, which only the console's page may use."""

        def post(path: str, kind: type[Any], handle: Callable[[Any], Awaitable[Any]]) -> Route:
            return Route(path, answering(kind, handle, limit=LONGEST_BODY), methods=["POST"])

        return [
            post("/answer", AnswerBody, self._answer),
            post("/cancel", CancelBody, self._cancel),
            post("/permission", PermissionBody, self._set_permission),
            post("/review", ReviewBody, self._approve),
            Route("/reviews/{plugin}", self._show_build),
        ]

    async def _answer(self, body: AnswerBody) -> Mapping[str, Any]:
        return asdict(await self.calls.registry.gate.answer(body.id, body.answer, by=BY))

    async def _cancel(self, body: CancelBody) -> Mapping[str, Any]:
        return {"counts": self.calls.running.cancel(body.call, by="the user, in the console")}

    async def _set_permission(self, body: PermissionBody) -> Mapping[str, Any]:
        try:
            parse_rules({body.rule: body.permission})
        except ValueError as error:
            raise BadRequestError(str(error)) from None
        try:
            await self.calls.registry.gate.remember(body.rule, body.permission)
        except ConfigError as error:
            why = f'{body.rule} is "{body.permission}" only until the server stops.'
            return {"note": f"{why} {error}"}
        return {"note": ""}

    async def _show_build(self, request: Request) -> Response:
        try:
            plugin = self._find(request.path_params["plugin"])
            return JSONResponse(await anyio.to_thread.run_sync(self._describe, plugin))
        except (BadRequestError, PluginError) as error:
            return refuse(str(error), HTTPStatus.NOT_FOUND)

    def _describe(self, plugin: Plugin) -> Mapping[str, Any]:
        name, files = plugin.manifest.name, content_files(plugin)
        approval = self.plugins.reviews.approvals().get(name)
        before = self.plugins.reviews.approved_files(name)
        # As the browser runs them, not as it would show them: with what reorders or hides code.
        texts = {each: visible("\n".join(source_lines(files[each]))) for each in files}
        changes = find_changes(before, files) if before else ()
        return {
            "digest": content_digest(plugin),
            "approved": None if approval is None else approval.model_dump(mode="json"),
            "files": [
                {
                    "name": each,
                    "size": len(content),
                    "text": texts[each][:LONGEST_SOURCE],
                    "left": max(0, len(texts[each]) - LONGEST_SOURCE),  # characters not sent
                }
                for each, content in files.items()
            ],
            "changes": [visible(each) for each in changes[:MOST_LINES]],
            "changesLeft": max(0, len(changes) - MOST_LINES),  # lines not sent
        }

    async def _approve(self, body: ReviewBody) -> Mapping[str, Any]:
        plugin = self._find(body.plugin)
        if content_digest(plugin) != body.digest:
            raise BadRequestError(
                "The plugin has changed since you reviewed it. Review it again.",
                HTTPStatus.CONFLICT,
            )
        await anyio.to_thread.run_sync(self._record, plugin, body.digest)
        await self.plugins.reload()
        return {}

    def _record(self, plugin: Plugin, digest: str) -> None:
        manifest, files = plugin.manifest, content_files(plugin)
        self.plugins.reviews.approve(manifest.name, manifest.version, digest, files)

    def _find(self, name: str) -> Plugin:
        plugin = self.plugins.find(name)
        if plugin is None:
            raise NoSuchPluginError
        return plugin
