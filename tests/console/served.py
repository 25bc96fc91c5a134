"""A console over a registry without a browser."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio.lowlevel
import httpx2
from starlette.applications import Starlette

from opentabs_py.consent.reviews import Reviews
from opentabs_py.console.access import HEADER, Access
from opentabs_py.console.routes import API, Console
from opentabs_py.console.watch import Watch
from opentabs_py.core.consent import Standing
from opentabs_py.core.progress import Pace
from opentabs_py.plugins.plugin import Plugin, SkippedPlugin
from opentabs_py.server.http.app import create_app
from tests.fakes import FakeBridge, a_manifest, a_tool, tool_calls_of

PORT = 8377
ORIGIN = f"http://127.0.0.1:{PORT}"
OURS = {"origin": ORIGIN}


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class PluginsOnDisk:
    plugins: list[Plugin] = field(default_factory=list[Plugin])
    skipped: list[SkippedPlugin] = field(default_factory=list[SkippedPlugin])
    standings: dict[str, Standing] = field(default_factory=dict[str, Standing])
    reviews: Reviews = field(default_factory=lambda: Reviews(Path("/nowhere")))
    reloads: int = 0

    def find(self, name: str) -> Plugin | None:
        return next((each for each in self.plugins if each.manifest.name == name), None)

    async def reload(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.reloads += 1


class ServedConsole:
    """A console, and a browser that uses it."""

    def __init__(
        self, bridge: FakeBridge | None = None, audit: Path = Path("/nowhere/audit.sqlite")
    ) -> None:
        self.clock = Clock()
        self.bridge = bridge or FakeBridge(value={"sent": True})
        self.tool_calls = tool_calls_of(self.bridge.pages)
        self.registry = self.tool_calls.registry
        manifest = a_manifest(a_tool("send", summary="Say it", group="Messages"))
        self.registry.set_plugins([manifest])
        self.plugins = PluginsOnDisk()
        self.plugins.plugins.append(Plugin(Path("/p/chat"), manifest, manifest, cast(Any, None)))
        self.watch = Watch(self.tool_calls, self.bridge.pages, self.plugins, wall=self.clock)
        self.access = Access(PORT, self.clock, self.bridge)
        self.console = Console(
            self.access,
            self.watch,
            self.tool_calls,
            self.plugins,
            Pace(),
            message_limit=1_000,
            audit=audit,
        )
        self.app: Starlette = create_app(
            {}, self.bridge.pages, more=self.console.routes(), for_extension=API
        )

    def browser(self, *, signed_in: bool = True, base: str = ORIGIN) -> httpx2.AsyncClient:
        client = httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url=base)
        if signed_in:
            entered = self.access.enter(self.access.invite(), {})
            assert entered is not None
            session, key = entered
            client.headers["cookie"] = f"{self.access.cookie}={session}"
            client.headers[HEADER] = key
        return client
