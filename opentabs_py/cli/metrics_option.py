"""The option `--metrics` of `serve` and `worker`."""

import re
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Final

import typer

from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.fleet.worker import FleetWorker
    from opentabs_py.session.metrics import AttachMetrics
    from opentabs_py.session.session import OpenTabs

Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="[HOST:]PORT",
        help="Serve metrics for Prometheus at /metrics, and the health checks /healthz and "
        "/readyz, on a separate port; 0 picks a free one.  \\[default: none; HOST: 127.0.0.1]",
    ),
]
Address = tuple[str, int]
"""A host and a port."""

_ADDRESS: Final = re.compile(r"(?:(?:\[([^][]+)\]|([^][:]+)):)?([0-9]{1,5})")


def read_address(text: str | None) -> Address | None:
    """Return the host and the port that `--metrics` names; None without it.

    Raises:
        ConfigError: It names none.
    """
    if text is None:
        return None
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found[3]) > 65535:
        raise ConfigError(
            f"Cannot use --metrics {text}. Write a port (0–65535), with or without an address: "
            "9464, 0.0.0.0:9464 or [::]:9464."
        )
    return found[1] or found[2] or "127.0.0.1", int(found[3])


def exporting(address: Address | None) -> "AbstractAsyncContextManager[AttachMetrics]":
    """Return a context that exports the metrics of the session that it is given.

    Args:
        address: Where; None exports nothing.

    Raises:
        ConfigError: A package for it is not installed.
    """
    if address is None:
        return nullcontext(_export_nothing)
    from opentabs_py.session.metrics import export_metrics

    return export_metrics(*address)


def _export_nothing(tabs: "OpenTabs", worker: "FleetWorker | None" = None) -> None:
    """Do nothing: metrics are off."""
