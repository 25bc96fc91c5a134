"""The log of plugins, which is named after them."""

import logging
from typing import Final

from opentabs_py.core.text import visible

PLUGINS: Final = "opentabs_py.plugin"  # the logger above those of all plugins


def plugin_logger(plugin: str) -> logging.Logger:
    """Return the logger of a plugin."""
    return logging.getLogger(f"{PLUGINS}.{plugin}")


class SafeFormatter(logging.Formatter):
    """Escapes control characters and indents further lines, because others write into the log."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text; only its first line can look like the first of a record."""
        return visible(super().format(record)).replace("\n", "\n  ")
