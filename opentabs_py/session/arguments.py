"""Check what programs and tests pass to a session."""

from pathlib import Path
from typing import Any

from opentabs_py.errors import ConfigError


def check_list(name: str, value: Any) -> None:
    """Refuse a text or a path in place of a list; to a type checker, a text is a list of texts.

    Raises:
        ConfigError: It is one.
    """
    if isinstance(value, (str, Path)):
        raise ConfigError(f"{name} must be a list: [{str(value)!r}].")
