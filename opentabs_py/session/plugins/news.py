"""Log news about a session's plugins, each item once."""

import logging
from collections.abc import Mapping, Sequence

from opentabs_py.core.consent import Standing
from opentabs_py.core.plugins.sdk_version import UNKNOWN
from opentabs_py.errors import ConfigError
from opentabs_py.plugins.plugin import Plugin, PluginChanges, reasons
from opentabs_py.session.plugins.standings import why_off

logger = logging.getLogger(__name__)


class PluginNews:
    """Logs what is new since it was last called.

    Attributes:
        settings_problem: Why the previous settings are kept; None if they are not.
    """

    def __init__(self) -> None:
        self._versionless: set[str] = set()
        self._standings: set[tuple[str, Standing]] = set()
        self._unknown_rules: set[str] = set()
        self.settings_problem: str | None = None

    def log_versions(self, plugins: Sequence[Plugin]) -> None:
        """Log which plugins do not state their SDK version."""
        names = {p.manifest.name for p in plugins if p.manifest.sdk_version is None}
        for name in sorted(names - self._versionless):
            logger.warning("The plugin %s is served, but %s", name, UNKNOWN)
        self._versionless |= names

    def log_standings(self, standings: Mapping[str, Standing]) -> None:
        """Log which plugins are off until their user reviews them, and which have been reviewed."""
        were_off = {name for name, before in self._standings if why_off(name, before) is not None}
        for name, standing in standings.items():
            why = why_off(name, standing)
            if why is not None and (name, standing) not in self._standings:
                logger.warning("%s", why)
            elif why is None and name in were_off:
                logger.info("The plugin %s has been reviewed, so its tools are on", name)
        self._standings = {*standings.items()}

    def log_unknown_rules(self, texts: Sequence[str]) -> None:
        """Log what reports the permissions that name nothing: perhaps they are misspelt."""
        for text in texts:
            if text not in self._unknown_rules:
                logger.warning("%s", text)
        self._unknown_rules = {*texts}

    def log_settings(self, problem: ConfigError | None) -> None:
        """Log that the settings cannot be used as they are now, if they cannot."""
        text = None if problem is None else f"Keeping the previous settings: {problem}"
        if text not in (None, self.settings_problem):
            logger.warning("%s", text)
        self.settings_problem = text


def log_changes(changes: PluginChanges) -> None:
    """Log what a reload has changed."""
    for names, what in (
        (changes.added, "Added"),
        (changes.removed, "Removed"),
        (changes.changed, "Reloaded"),
    ):
        if names:
            logger.info("%s %s", what, ", ".join(names))
    for reason in reasons(changes.skipped):
        logger.warning("The new version is not served: %s", reason)
