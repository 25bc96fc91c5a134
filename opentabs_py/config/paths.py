"""The directories on this machine: the current one, and those of the user's own files."""

import os
from pathlib import Path

import platformdirs

from opentabs_py.errors import ConfigError


def working_dir() -> Path:
    """Return the current directory.

    Raises:
        ConfigError: It was deleted.
    """
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError(
            "The current directory no longer exists. Change to another one."
        ) from None


def absolute(path: Path) -> Path:
    """Return a path that remains right when the current directory changes or is deleted."""
    return Path(os.path.abspath(path))  # noqa: PTH100 (`resolve` follows links, which may change)


def user_file() -> Path:
    """Return the path of the user's own settings file."""
    return platformdirs.user_config_path("opentabs") / "config.toml"


def data_dir() -> Path:
    """Return the directory for data that is kept between runs."""
    return platformdirs.user_data_path("opentabs")


def audit_file() -> Path:
    """Return the path of the audit, to which all servers of this user write their calls."""
    return data_dir() / "audit.sqlite"


def cache_dir() -> Path:
    """Return the directory for data that can be recreated."""
    return platformdirs.user_cache_path("opentabs")


def state_dir() -> Path:
    """Return the directory that says which servers are running."""
    return platformdirs.user_state_path("opentabs") / "servers"


def log_dir() -> Path:
    """Return the directory for the logs of servers that run in the background."""
    return platformdirs.user_log_path("opentabs")
