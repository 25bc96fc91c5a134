"""`opentabs worker`: lend this machine's browsers to a fleet."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opentabs_py.cli import collector
from opentabs_py.cli.fleet_options import NatsOptions
from opentabs_py.cli.metrics_option import Metrics, exporting, read_address
from opentabs_py.cli.option_groups import OptionGroup, grouped
from opentabs_py.cli.options import (
    ConsentOptions,
    Headed,
    OpenUrls,
    PluginOptions,
    SignedIn,
    gather_settings,
)
from opentabs_py.core.text import quantity

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings
    from opentabs_py.fleet.worker import FleetWorker
    from opentabs_py.session.session import OpenTabs


class WorkerBrowserOptions(OptionGroup):
    """The worker's browsers, and what they open."""

    panel = "Browsers"

    browsers: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="How many browsers to launch.")
    ] = 1
    open_: OpenUrls = None
    headed: Headed = None
    signed_in: SignedIn = None
    recycle_after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|MB",
            help="Replace a browser after N calls (such as 1000), or once it uses this much memory "
            "(such as 1500MB), as soon as nothing runs in it. Repeatable.",
        ),
    ] = None

    def settings(self) -> Mapping[str, Any]:
        """Return the settings about the browsers."""
        return {"headed": self.headed, "signed_in": self.signed_in}


class WorkerOptions(NatsOptions):
    """The fleet, and this worker's place in it."""

    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="This worker's name in the fleet.  \\[default: this machine's, and 4 hex digits]",
        ),
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A label by which endpoints select workers, such as site=eu. Repeatable.",
        ),
    ] = None
    max_calls: Annotated[
        int, typer.Option(min=1, metavar="N", help="Run at most N calls at once.")
    ] = 8


@grouped
def worker(
    plugins: PluginOptions,
    consent: ConsentOptions,
    browsers: WorkerBrowserOptions,
    fleet: WorkerOptions,
    metrics: Metrics = None,
) -> None:
    """Run the calls of a fleet's endpoints in browsers on this machine.

    Launches the browsers, each with a new profile, and opens the --open pages in each. Endpoints
    (`opentabs serve --nats URL`) find this worker by themselves. Like a server, it notices rebuilt
    plugins, reviews and changed settings files.

    After SIGTERM, the first Ctrl-C or `opentabs fleet drain`, the worker accepts no new calls, and
    exits when its running calls have ended; a second signal stops it at once. Exit codes: 0
    drained; 2 usage error; 3 NATS or the browser failed.

    [dim]opentabs worker --nats nats://HOST --plugin DIR --open URL --browsers 4[/]
    """
    from opentabs_py.cli.log import log_to_stderr
    from opentabs_py.cli.run import SERVER_CLOSES_WITHIN, run
    from opentabs_py.config.fleet import read_labels
    from opentabs_py.config.names import check_name
    from opentabs_py.session.browsers.recycling import RecycleAfter

    recycle = RecycleAfter.read(browsers.recycle_after or [])
    options = fleet.gather(labels=read_labels(fleet.label or []))

    def read_settings() -> "Settings":
        settings = gather_settings(plugins, consent, browsers, port=0).with_audit_default()
        return settings.model_copy(update={"profile": None})

    settings = read_settings()
    urls = browsers.open_ or []
    address = read_address(metrics)
    log_to_stderr()
    tools = plugins.load_tools()
    name, drain = fleet.name, _Drain()

    async def work() -> int:
        from opentabs_py.session.worker import default_name, run_worker

        async def prepare(tabs: "OpenTabs", worker: "FleetWorker") -> None:
            await _prepare(tabs, worker, urls)
            attach(tabs, worker)
            drain.worker = worker
            collector.freeze()
            collector.release()

        async with exporting(address) as attach:
            await run_worker(
                options,
                settings,
                name=default_name() if name is None else check_name(name, "worker name"),
                browsers=browsers.browsers,
                max_calls=fleet.max_calls,
                recycle_after=recycle,
                on_ready=prepare,
                read_settings=read_settings,
                plugins=(),
                tools=tools,
                relaunch_urls=urls,
            )
        return 0

    raise typer.Exit(
        run(work, interruptible=False, close_within=SERVER_CLOSES_WITHIN, on_signal=drain)
    )


class _Drain:
    """Lets the first signal drain the worker."""

    worker: "FleetWorker | None" = None

    def __call__(self, _signal: int) -> bool:
        """Return whether the worker ends by itself."""
        worker, self.worker = self.worker, None
        if worker is None:
            return False
        worker.drain()
        return True


async def _prepare(tabs: "OpenTabs", worker: "FleetWorker", urls: list[str]) -> None:
    from opentabs_py.cli.open_pages import check_has_browser
    from opentabs_py.cli.plugin_warnings import warn_of_plugins

    logger = logging.getLogger("opentabs_py")
    warn_of_plugins(tabs)
    check_has_browser(tabs, urls)
    for browser in tabs.browsers.values():
        for url in urls:
            await browser.open(url)
    about = worker.identity
    level = logging.INFO if worker.owners else logging.WARNING
    has_plugins = bool(tabs.plugins or tabs.skipped_plugins)
    said = served(about.name, worker.owners, about.max_calls, has_plugins=has_plugins)
    logger.log(level, "%s", said)


def served(name: str, owners: Sequence[str], max_calls: int, *, has_plugins: bool) -> str:
    """Return what a worker serves: `The worker a serves chat, up to 8 calls at once`.

    Args:
        name: The worker's name.
        owners: Which plugins and modules of Python tools it serves.
        max_calls: How many calls may run in it at once.
        has_plugins: Whether it has plugins, even if they are off or broken.
    """
    if not owners:
        nothing = f"The worker {name} serves no plugin and no tool"
        if has_plugins:
            return f"{nothing} now, for the reasons above."
        return f"{nothing}. Pass --plugin DIR or --tools FILE."
    at_once = f"up to {quantity(max_calls, 'call')} at once"
    return f"The worker {name} serves {', '.join(owners)}, {at_once}"
