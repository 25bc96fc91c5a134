"""Options of the commands that belong to a fleet."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opentabs_py.core.fleet.quotas import QUEUE, QUEUE_PER_CLIENT
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.fleet import FleetOptions

PANEL = "Fleet"

Nats = Annotated[
    str | None,
    typer.Option(
        "--nats",
        metavar="URL",
        envvar="OPENTABS_NATS",
        show_envvar=False,
        help="The NATS server that carries the fleet, nats://HOST or tls://HOST; several are "
        "joined by commas. It may contain a user name and password; then prefer OPENTABS_NATS.",
        rich_help_panel=PANEL,
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="KEY=VALUE",
        help="Use only the workers with this label. Repeatable: a worker must have all of them.",
        rich_help_panel=PANEL,
    ),
]
Queue = Annotated[
    int,
    typer.Option(
        "--queue",
        min=0,
        metavar="N",
        help="How many calls may wait while all workers are full, at most "
        f"{QUEUE_PER_CLIENT} of one client; more are refused.",
        rich_help_panel=PANEL,
    ),
]
CallsPerClient = Annotated[
    int | None,
    typer.Option(
        "--calls-per-client",
        min=1,
        metavar="N",
        help="How many calls of one MCP client may run at once; its others wait.  \\[default: any]",
        rich_help_panel=PANEL,
    ),
]
FleetName = Annotated[
    str,
    typer.Option(
        "--fleet",
        metavar="NAME",
        envvar="OPENTABS_FLEET",
        show_envvar=False,
        help="The name of the fleet, if NATS carries several.",
        rich_help_panel=PANEL,
    ),
]
Creds = Annotated[
    Path | None,
    typer.Option(
        "--nats-creds",
        metavar="FILE",
        envvar="OPENTABS_NATS_CREDS",
        show_envvar=False,
        help="File with NATS credentials.",
        rich_help_panel=PANEL,
    ),
]
Ca = Annotated[
    Path | None,
    typer.Option(
        "--nats-ca",
        metavar="FILE",
        envvar="OPENTABS_NATS_CA",
        show_envvar=False,
        help="Certificates to trust, if not those of the system.",
        rich_help_panel=PANEL,
    ),
]
Cert = Annotated[
    Path | None,
    typer.Option(
        "--nats-cert",
        metavar="FILE",
        envvar="OPENTABS_NATS_CERT",
        show_envvar=False,
        help="Certificate and key of this process, for servers that ask for one.",
        rich_help_panel=PANEL,
    ),
]


def check_no_fleet(labels: list[str] | None, calls_per_client: int | None = None) -> None:
    """Refuse options that mean nothing without a fleet.

    Raises:
        ConfigError: One is given.
    """
    if labels or calls_per_client:
        option = "--label" if labels else "--calls-per-client"
        raise ConfigError(f"{option} is for a fleet. Name its NATS server too: --nats nats://HOST.")


def gather_fleet(
    nats: str | None,
    fleet: str,
    creds: Path | None,
    ca: Path | None,
    cert: Path | None,
    *,
    labels: list[str] | None = None,
    queue: int = QUEUE,
    calls_per_client: int | None = None,
) -> "FleetOptions":
    """Gather the options of a command that needs a fleet.

    Raises:
        ConfigError: One is missing or not valid.
    """
    from opentabs_py.config.fleet import FleetOptions, read_labels
    from opentabs_py.config.names import check_name

    if nats is None:
        raise ConfigError(
            "Name the fleet's NATS server: --nats nats://HOST, or OPENTABS_NATS in the environment."
        )
    return FleetOptions(
        nats,
        check_name(fleet, "fleet name"),
        creds,
        ca,
        cert,
        labels=read_labels(labels or []),
        queue=queue,
        calls_per_client=calls_per_client,
    )
