"""`opentabs fleet`: inspect and drain the workers of a fleet."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from opentabs_py.cli.command_classes import App
from opentabs_py.cli.exit_codes import CHAIN_FAILED
from opentabs_py.cli.fleet_options import FleetName, NatsOptions
from opentabs_py.cli.option_groups import grouped
from opentabs_py.cli.options import Json
from opentabs_py.core.fleet.subjects import Role
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.core.fleet.messages import Announcement
    from opentabs_py.fleet.observed import ObservedFleet

app = App(help="Inspect and drain the workers of a fleet.")

EVERY = 0.5  # s; how often `top` draws


@app.command()
@grouped
def status(
    fleet: NatsOptions,
    json_: Json = False,
) -> None:
    """Show the workers: their browsers, ready tabs and calls; and how many calls wait.

    Exit codes: 0 there are workers; 3 there are none, or NATS cannot be reached.
    """
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import err, out, write_json

    options = fleet.gather()

    async def show() -> int:
        from opentabs_py.cli.fleet_table import show_workers
        from opentabs_py.fleet.observed import observe_fleet

        async with observe_fleet(options) as observed:
            workers = _in_order(observed)
            if json_:
                write_json(
                    {
                        "workers": [_document(each, observed) for each in workers],
                        "endpoints": [
                            {
                                "host": each.host,
                                "pid": each.pid,
                                "running": each.running,
                                "waiting": each.waiting,
                            }
                            for each in observed.endpoints.values()
                        ],
                    }
                )
            elif workers:
                out.print(show_workers(workers, observed, out))
            else:
                err.print(f"No worker is in the fleet {options.fleet!r} at {options.addresses}.")
            for reason in sorted(set(observed.directory.refused.values())) if not json_ else ():
                err.print(f"[yellow]refused:[/] {escape(reason)}")
        return 0 if workers else CHAIN_FAILED

    raise typer.Exit(run(show))


@app.command()
@grouped
def top(
    fleet: NatsOptions,
) -> None:
    """Show the workers, updated until Ctrl-C."""
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import out

    options = fleet.gather()

    async def show() -> int:
        import anyio
        from rich.live import Live

        from opentabs_py.cli.fleet_table import show_workers
        from opentabs_py.fleet.observed import observe_fleet

        async with observe_fleet(options) as observed:
            with Live(console=out, screen=out.is_terminal, auto_refresh=False) as live:
                while True:
                    observed.remove_silent()
                    live.update(show_workers(_in_order(observed), observed, out), refresh=True)
                    await anyio.sleep(EVERY)

    raise typer.Exit(run(show, interruptible=False))


@app.command()
@grouped
def drain(
    worker: Annotated[
        str,
        typer.Argument(metavar="WORKER", help="The worker's name, as in `opentabs fleet status`."),
    ],
    *,
    fleet: NatsOptions,
) -> None:
    """Stop a worker once its running calls have ended; it takes no new ones.

    Returns at once. Exit codes: 0 it will stop; 3 there is no such worker, or it does not answer.
    """
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import err

    options = fleet.gather()

    async def ask() -> int:
        from opentabs_py.fleet.observed import observe_fleet

        async with observe_fleet(options) as observed:
            found = await observed.drain(worker)
        err.print(f"{worker} takes no more calls, and stops {when_idle(found.total_running)}.")
        return 0

    raise typer.Exit(run(ask))


@app.command()
def permissions(
    role: Annotated[
        Role, typer.Argument(metavar="ROLE", help="Who connects with these permissions.")
    ],
    worker: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only for the worker with this name.")
    ] = None,
    fleet: FleetName = "default",
) -> None:
    """Print the minimum permissions that a role needs, for the NATS server's configuration.

    With them, a worker receives only its own calls. `operator` is for `opentabs fleet`.
    """
    from opentabs_py.cli.terminal import write_result
    from opentabs_py.config.names import check_name
    from opentabs_py.core.fleet.subjects import permissions as least

    check_name(fleet, "fleet name")
    if worker is not None:
        check_name(worker, "worker name")
        if role != "worker":
            raise ConfigError(f"--worker is for the role worker. Leave it out for {role}.")
    allowed = least(fleet, role, worker or "*")
    lines = [f"  {verb}: {json.dumps(on)}" for verb, on in allowed.items()]
    write_result("permissions: {\n" + "\n".join(lines) + "\n}\n")


def when_idle(running: int) -> str:
    """Return when a worker in which so many calls run has none: `when its 2 calls have ended`."""
    if not running:
        return "now"
    return f"when its {f'{running} calls have' if running > 1 else 'last call has'} ended"


def _in_order(observed: "ObservedFleet") -> list["Announcement"]:
    return sorted(observed.directory.all, key=lambda each: each.name)


def _document(worker: "Announcement", observed: "ObservedFleet") -> dict[str, Any]:
    return {
        "name": worker.name,
        "state": worker.state,
        "refused": observed.directory.refused.get(worker.instance),
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.opentabs,
        "started": worker.started,
        "labels": worker.labels,
        "browsers": worker.browsers,
        "ready": worker.total_ready,
        "running": worker.total_running,
        "maxCalls": worker.max_calls,
        "calls": worker.calls,
        "failures": worker.failures,
        "restarts": worker.restarts,
        "memory": worker.memory,
    }
