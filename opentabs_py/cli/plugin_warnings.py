"""Warnings about plugins, without which Rich is not imported."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentabs_py.plugins.plugin import Plugin, SkippedPlugin
    from opentabs_py.session.session import OpenTabs


def warn_of_plugins(tabs: "OpenTabs") -> None:
    """Warn about each plugin of a session that was skipped, or is older than its source."""
    print_skipped(tabs.skipped_plugins)
    warn_of_stale(tabs.internals.plugin_set.plugins)


def warn_of_server(status: Mapping[str, Any]) -> None:
    """Warn about what keeps the plugins and settings of a running server from having an effect."""
    for reason in status["skipped"]:
        _warn(f"skipped: {reason}")
    for text in status.get("warnings", ()):  # a server of an earlier version has none
        _warn(text)


def print_skipped(skipped: "Sequence[SkippedPlugin]") -> None:
    """Warn about the plugins that were skipped, once for each reason."""
    from opentabs_py.plugins.plugin import reasons

    for reason in reasons(skipped):
        _warn(f"skipped: {reason}")


def warn_of_stale(plugins: "Sequence[Plugin]") -> None:
    """Warn about plugins whose source has changed since they were built."""
    from opentabs_py.plugins.freshness import why_stale

    for each in plugins:
        if (why := why_stale(each.directory, each.manifest.name)) is not None:
            _warn(why)


def _warn(text: str) -> None:
    from opentabs_py.cli.terminal import warn

    warn(text)
