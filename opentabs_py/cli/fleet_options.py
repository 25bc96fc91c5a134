"""Options of the commands that belong to a fleet."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from opentabs_py.cli.option_groups import OptionGroup
from opentabs_py.cli.options import is_on_command_line
from opentabs_py.core.fleet.quotas import QUEUE, QUEUE_PER_CLIENT
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.fleet import FleetOptions

NATS: Final = "--nats"
NATS_VARIABLE: Final = "OPENTABS_NATS"

FleetName = Annotated[
    str,
    typer.Option(
        "--fleet",
        metavar="NAME",
        envvar="OPENTABS_FLEET",
        show_envvar=False,
        help="The name of the fleet, if several share the NATS server.",
    ),
]


def named_by(ctx: typer.Context) -> str:
    """Return what names the fleet that a command uses: `--nats`, or the variable in its place."""
    return NATS if is_on_command_line(ctx, "nats") else NATS_VARIABLE


def how_to_use_no_fleet(ctx: typer.Context) -> str:
    """Return what to do so that a command uses no fleet, such as `leave out --nats`."""
    named = named_by(ctx)
    return f"{'leave out' if named == NATS else 'unset'} {named}"


class NatsOptions(OptionGroup):
    """Which fleet, and how to reach it."""

    panel = "Fleet"

    nats: Annotated[
        str | None,
        typer.Option(
            NATS,
            metavar="URL",
            envvar=NATS_VARIABLE,
            show_envvar=False,
            help="Address of the fleet's NATS server, nats://HOST or tls://HOST; join several with "
            "commas. If it contains a password, prefer OPENTABS_NATS.",
        ),
    ] = None
    fleet: FleetName = "default"
    creds: Annotated[
        Path | None,
        typer.Option(
            "--nats-creds",
            metavar="FILE",
            envvar="OPENTABS_NATS_CREDS",
            show_envvar=False,
            help="File with NATS credentials.",
        ),
    ] = None
    ca: Annotated[
        Path | None,
        typer.Option(
            "--nats-ca",
            metavar="FILE",
            envvar="OPENTABS_NATS_CA",
            show_envvar=False,
            help="Certificates to trust, if not those of the system.",
        ),
    ] = None
    cert: Annotated[
        Path | None,
        typer.Option(
            "--nats-cert",
            metavar="FILE",
            envvar="OPENTABS_NATS_CERT",
            show_envvar=False,
            help="Certificate and key of this process, for servers that ask for one.",
        ),
    ] = None

    def gather(self, **more: Any) -> "FleetOptions":
        """Return the options of a command that needs a fleet.

        Args:
            more: Other fields of the result.

        Raises:
            ConfigError: One is missing or not valid.
        """
        from opentabs_py.config.fleet import FleetOptions
        from opentabs_py.config.names import check_name

        if self.nats is None:
            raise ConfigError(
                "Name the fleet's NATS server: --nats nats://HOST, or OPENTABS_NATS in the "
                "environment."
            )
        fleet = check_name(self.fleet, "fleet name")
        return FleetOptions(self.nats, fleet, self.creds, self.ca, self.cert, **more)


class WorkerSelection(NatsOptions):
    """Which workers of which fleet to use; none, if no NATS server is named."""

    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="KEY=VALUE",
            help="Use only the workers with this label. Repeatable: a worker must have all of "
            "them.",
        ),
    ] = None

    def fleet_options(self) -> "FleetOptions | None":
        """Return the fleet to use; None if none is named.

        Raises:
            ConfigError: An option is not valid, or means nothing without a fleet.
        """
        from opentabs_py.config.fleet import read_labels

        if self.nats is None:
            _refuse(label=self.label)
            return None
        return self.gather(labels=read_labels(self.label or []))


class EndpointOptions(WorkerSelection):
    """A fleet to serve."""

    queue: Annotated[
        int | None,
        typer.Option(
            "--queue",
            min=0,
            metavar="N",
            help="How many calls may wait while all workers are full, at most "
            f"{QUEUE_PER_CLIENT} of one client; more are refused.  \\[default: {QUEUE}]",
        ),
    ] = None
    calls_per_client: Annotated[
        int | None,
        typer.Option(
            "--calls-per-client",
            min=1,
            metavar="N",
            help="How many calls of one MCP client may run at once; its other calls wait.  "
            "\\[default: any]",
        ),
    ] = None

    def fleet_options(self) -> "FleetOptions | None":
        """Return the fleet to serve; None if none is named.

        Raises:
            ConfigError: An option is not valid, or means nothing without a fleet.
        """
        found = super().fleet_options()
        if found is None:
            _refuse(queue=self.queue, calls_per_client=self.calls_per_client)
            return None
        queue = QUEUE if self.queue is None else self.queue
        return replace(found, queue=queue, calls_per_client=self.calls_per_client)


def _refuse(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{option} is for a fleet. Name its NATS server too: --nats nats://HOST."
            )
