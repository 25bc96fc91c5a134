"""`opentabs doctor`: check each hop in turn and name the first broken one."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass

import anyio
import anyio.to_thread
import typer
from rich.markup import escape

from opentabs_py.cli.exit_codes import CHAIN_FAILED
from opentabs_py.cli.options import Headed, Json
from opentabs_py.errors import OpenTabsError

READY_WITHIN = 10.0  # s; a tenth of a second is typical


Probe = Callable[[str], AbstractAsyncContextManager[list[str]]]


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one probe."""

    hop: str
    ok: bool
    ms: float
    detail: str


def doctor(headed: Headed = None, json_: Json = False) -> None:
    """Check each hop of the chain; name the first broken one and how to fix it.

    Uses the demo site and plugin, a fresh profile and a free port, so it does not disturb anything.
    Your own plugins (from the settings, or in the current directory) are read but not run.
    """
    from opentabs_py.cli.run import run

    async def examine() -> int:
        from opentabs_py.cli.terminal import err, write_json

        checks: list[Check] = []

        def note(check: Check) -> None:
            checks.append(check)
            if not json_:
                mark = "[green]✓[/]" if check.ok else "[bold red]✗[/]"
                time_ = f"[dim]{check.ms:8.1f} ms[/]"
                err.print(f"{mark} {check.hop:<42}{time_}  {escape(check.detail)}", soft_wrap=True)

        await _examine(note, headed=headed)
        broken = next((check for check in checks if not check.ok), None)
        if json_:
            document = {
                "ok": broken is None,
                "broken": None if broken is None else broken.hop,
                "checks": [asdict(check) for check in checks],
            }
            write_json(document)
        elif broken is None:
            err.print("[bold green]Every hop works.[/]")
        else:
            err.print(f"[bold red]Broken at:[/] {broken.hop}")
        return 0 if broken is None else CHAIN_FAILED

    raise typer.Exit(run(examine))


class _BrokenError(Exception):
    """A probe failed, so the hops after it cannot be probed."""


async def _examine(note: Callable[[Check], None], *, headed: bool | None) -> None:
    @asynccontextmanager
    async def probe(hop: str) -> AsyncGenerator[list[str]]:
        began = time.perf_counter()
        detail: list[str] = []
        ok = True
        try:
            yield detail
        except OpenTabsError as error:
            ok, detail = False, [str(error)]
        note(Check(hop, ok, round((time.perf_counter() - began) * 1000, 1), " ".join(detail)))
        if not ok:
            raise _BrokenError

    async with AsyncExitStack() as stack:
        with suppress(_BrokenError):
            await _probe_all(probe, stack, headed=headed)


async def _probe_all(probe: Probe, stack: AsyncExitStack, *, headed: bool | None) -> None:
    from opentabs_py.browser.chromium import configured_chromium
    from opentabs_py.cli.call_over_mcp import call_over_mcp
    from opentabs_py.config.settings import demo_settings, load_settings
    from opentabs_py.core import failures
    from opentabs_py.daemon.local_client import LocalClient
    from opentabs_py.daemon.state import name_flag, read_states
    from opentabs_py.demo import create_demo_site, demo_plugin_dir
    from opentabs_py.server.http.serve import serve_locally
    from opentabs_py.server.mcp.sdk_loading import load_sdk_soon
    from opentabs_py.session.session import OpenTabs

    load_sdk_soon()  # while the browser starts
    for server in read_states():
        async with probe(f"The running server {server.name!r} answers") as detail:
            status = await anyio.to_thread.run_sync(LocalClient(server).status)
            detail.append(
                f"pid {server.pid}, tools: {status['tools']}, tabs: {len(status['tabs'])}"
            )
        if status["plugins"]:
            async with probe(f"The browser of {server.name!r} is connected"):
                if not status["extension"]:
                    waits = " ".join(each["userAction"] for each in status["browsers"]).strip()
                    see = f"See its log: opentabs logs{name_flag(server.name)}"
                    raise failures.not_connected(waits or see)
    async with probe("Your settings are valid"):
        settings = load_settings()
    async with probe("Chromium is installed") as detail:
        detail.append(str(configured_chromium(settings)))
    async with probe("A server can listen on 127.0.0.1") as detail:
        site = await stack.enter_async_context(serve_locally(create_demo_site(page_delay=0.0)))
        detail.append(site)
    async with probe("Chromium starts and its extension connects") as detail:
        settings = demo_settings(headed=headed)
        tabs = await stack.enter_async_context(
            OpenTabs(plugins=[demo_plugin_dir()], settings=settings)
        )
        detail.append(f"extension {tabs.internals.bridge.extension_version}")
    async with probe("extension ↔ page (relay, runtime, adapter)") as detail:
        await tabs.open(site)
        state = None
        with anyio.move_on_after(READY_WITHIN):
            state = await tabs.internals.bridge.wait_ready("demo")
        if state is None:
            raise failures.not_ready_yet("demo", site, "its adapter did not report within 10 s")
        detail.append("protected channel" if state.protected else "unprotected channel")
    async with probe("page → tool and back") as detail:
        channels = await tabs.call("demo_list_channels")
        detail.append(f"{len(channels['channels'])} channels")
    async with probe("MCP client ↔ server (Streamable HTTP)") as detail:
        outcome, _ = await call_over_mcp(
            tabs.mcp_url,
            "demo_export_messages",
            {"channelId": "general"},
            lambda _progress, _total, _message: None,  # the outcome has it
        )
        if outcome["isError"]:
            raise OpenTabsError(outcome["error"]["message"])
        if not outcome["progress"]:
            raise OpenTabsError("The call succeeded, but no progress arrived.")
        detail.append(f"{len(outcome['progress'])} progress notifications")
    async with probe("Your plugins can be served") as detail:
        detail.append(_look_at_plugins())


def _look_at_plugins() -> str:
    """Return a summary of the user's own plugins.

    Raises:
        PluginError: A plugin cannot be served.
    """
    from opentabs_py.cli.options import gather_settings
    from opentabs_py.core.plugins.sdk_version import UNKNOWN
    from opentabs_py.errors import PluginError
    from opentabs_py.plugins.folders import load_configured
    from opentabs_py.plugins.plugin import reasons

    settings = gather_settings()
    plugins, skipped = load_configured(settings)
    if skipped:
        raise PluginError("\n".join(reasons(skipped)))
    names = ", ".join(plugin.manifest.name for plugin in plugins)
    old = [plugin.manifest.name for plugin in plugins if plugin.manifest.sdk_version is None]
    return "; ".join([names or "none configured", *(f"{name}: {UNKNOWN}" for name in old)])
