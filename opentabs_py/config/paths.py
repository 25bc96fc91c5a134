"""The directories on this machine: the current one, and those of the user's own files."""

import os
from collections.abc import Callable
from contextlib import suppress
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


def expand_user(path: Path) -> Path:
    """Return a path with `~` or `~USER` at its beginning expanded.

    Raises:
        ConfigError: That home directory is unknown.
    """
    try:
        return path.expanduser()
    except RuntimeError:
        raise ConfigError(f"There is no user of that name: {path}") from None


def home_dir() -> Path:
    """Return the user's home directory.

    Raises:
        ConfigError: It is unknown.
    """
    return _known(Path.home)


def user_file() -> Path:
    """Return the path of the user's own settings file."""
    return _of_user(platformdirs.user_config_path) / "config.toml"


def data_dir() -> Path:
    """Return the directory for data that is kept between runs."""
    return _of_user(platformdirs.user_data_path)


def audit_file() -> Path:
    """Return the path of the audit, to which all servers of this user write their calls."""
    return data_dir() / "audit.sqlite"


def cache_dir() -> Path:
    """Return the directory for data that can be recreated."""
    return _of_user(platformdirs.user_cache_path)


def state_dir() -> Path:
    """Return the directory that says which servers are running."""
    return _of_user(platformdirs.user_state_path) / "servers"


def log_dir() -> Path:
    """Return the directory for the logs of servers that run in the background."""
    return _of_user(platformdirs.user_log_path)


def _of_user(find: Callable[[str], Path]) -> Path:
    return _known(lambda: find("opentabs"))


def _known(find: Callable[[], Path]) -> Path:
    with suppress(RuntimeError):  # such as for a container's user who is only a number
        if (found := find()).is_absolute():
            return found
    raise ConfigError("Your home directory is unknown. Set HOME to an absolute path.")
