"""The page of the tests, and what it asks for. Who is let in is as in the console."""

import os
import secrets
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route

from opentabs_py.calling.clock import wall_clock
from opentabs_py.console.access import Access
from opentabs_py.console.admission import Admitted
from opentabs_py.console.entrance import Entrance
from opentabs_py.console.files import PAGE as SHARED
from opentabs_py.console.files import Files
from opentabs_py.console.stream import QUIET_AT_MOST, StreamApp, Write, event
from opentabs_py.core.runner.one_test import OneTest
from opentabs_py.runner.details import test_data
from opentabs_py.runner.runner import Runner, Suite
from opentabs_py.server.http.guards import LocalOnly
from opentabs_py.server.http.json_requests import Body, answering, refuse
from opentabs_py.server.http.page_headers import POLICY, PageHeaders
from opentabs_py.tracing.html import VIEWER

PAGE: Final = Path(__file__).with_name("page")
LOOK_AGAIN: Final = 0.1  # s; what users see as at once
_LONGEST: Final = 16 * 1024 * 1024  # bytes of a request; it may name all tests
# Screenshots come with the page's key, which an element that loads an image cannot send.
_POLICY: Final = POLICY.replace("img-src 'self'", "img-src 'self' blob:")


class _RunBody(Body):
    """What to run; `these` are tests by id, or files."""

    what: Literal["all", "failed", "these"]
    these: tuple[str, ...] = ()


class _ResumeBody(Body):
    pause: int


class _SwitchBody(Body):
    watches: bool | None = None
    pauses: bool | None = None


class _Nothing(Body):
    """An empty request."""


@dataclass(slots=True)
class RunnerPage:
    """The page of a runner.

    Args:
        runner: What it shows.
        access: Who is let in.
        scratch: The directory of the screenshots.
    """

    runner: Runner
    access: Access
    scratch: Path
    _boot: str = field(default_factory=lambda: secrets.token_hex(8))
    _stopping: anyio.Event = field(default_factory=anyio.Event)

    def app(self) -> Starlette:
        """Return the application."""
        api = [
            Route("/stream", StreamApp(self._stream), methods=["GET"]),
            Route("/test", self._describe),
            Route("/screenshots/{run:int}/{number:int}.jpg", self._show_screenshot),
            self._post("/run", _RunBody, self._run),
            self._post("/stop", _Nothing, self._stop),
            self._post("/resume", _ResumeBody, self._resume),
            self._post("/switch", _SwitchBody, self._switch),
        ]
        entrance = Entrance(self.access, PAGE, policy=_POLICY)
        admitted = [Middleware(Admitted, access=self.access)]
        return Starlette(
            routes=[
                Route("/", entrance.show),
                Mount(
                    "/console",
                    routes=[
                        Mount("/api", routes=api, middleware=admitted),
                        Mount("/viewer", Files(VIEWER)),
                        Mount("/", Files(PAGE, SHARED)),
                    ],
                ),
            ],
            middleware=[Middleware(LocalOnly), Middleware(PageHeaders)],
        )

    def stop(self) -> None:
        """End the streams of all pages."""
        self._stopping.set()

    def _post(self, path: str, kind: Any, handle: Any) -> Route:
        return Route(path, answering(kind, handle, limit=_LONGEST), methods=["POST"])

    async def _stream(self, write: Write, boot: str, version: int) -> None:
        if boot != self._boot:
            version = 0
        is_quiet = True
        while not self._stopping.is_set():
            changed = self.runner.changed()
            update = self.runner.board.since(version)
            if update is None and is_quiet:
                update = {"version": version}
            if update is not None:
                version = update["version"]
                await write(event(update, boot=self._boot, now=wall_clock()))
            with anyio.move_on_after(LOOK_AGAIN):
                await self._stopping.wait()
            with anyio.move_on_after(QUIET_AT_MOST) as waiting:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._cancel_at_stop, tasks.cancel_scope)
                    await changed.wait()
                    tasks.cancel_scope.cancel()
            is_quiet = waiting.cancelled_caught

    async def _cancel_at_stop(self, scope: anyio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()

    async def _describe(self, request: Request) -> Response:
        test = self.runner.board.tests.get(request.query_params.get("id", ""))
        if test is None:
            return refuse("There is no such test. It may have been removed.", HTTPStatus.NOT_FOUND)
        traces = [shlex.join(["playwright", "show-trace", each]) for each in test.traces]
        more = {"command": _command(test, self.runner.suite), "traceCommands": traces}
        return JSONResponse({**test_data(test), **more})

    async def _show_screenshot(self, request: Request) -> Response:
        run, number = request.path_params["run"], request.path_params["number"]
        file = self.scratch / str(run) / "screenshots" / f"{number}.jpg"
        if not await anyio.Path(file).is_file():
            return refuse("This screenshot has been removed.", HTTPStatus.NOT_FOUND)
        return FileResponse(file, headers={"cache-control": "no-store"})

    async def _run(self, body: _RunBody) -> dict[str, Any]:
        chosen: Sequence[str] | None = None
        if body.what != "all":
            chosen = self.runner.board.failed if body.what == "failed" else body.these
        self.runner.run_tests(None if chosen is None else tuple(chosen))
        return {}

    async def _stop(self, _body: _Nothing) -> dict[str, Any]:
        self.runner.stop()
        return {}

    async def _resume(self, body: _ResumeBody) -> dict[str, Any]:
        self.runner.resume(body.pause)
        return {}

    async def _switch(self, body: _SwitchBody) -> dict[str, Any]:
        if body.watches is not None:
            self.runner.set_watches(body.watches)
        if body.pauses is not None:
            self.runner.set_pauses(body.pauses)
        return {"watches": self.runner.watches, "pauses": self.runner.pauses}


def _command(test: OneTest, suite: Suite) -> str:
    """Return the command that runs only this test, in this directory."""
    path = str(suite.directory) if suite.fuzz else test.path
    with suppress(ValueError):  # on another drive
        path = min(os.path.relpath(path), path, key=len)
    in_file = test.id.partition("::")[2]
    if suite.fuzz:
        name = in_file.partition("[")[0]
        return shlex.join(["opentabs", "test", path, *suite.fuzz, "-k", name])
    return shlex.join(["opentabs", "test", f"{path}::{in_file}" if in_file else path])
