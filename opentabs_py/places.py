"""Where this machine keeps what is a user's own."""

from pathlib import Path

import platformdirs


def user_file() -> Path:
    """Give the path of the user's own settings file."""
    return platformdirs.user_config_path("opentabs") / "config.toml"


def data_dir() -> Path:
    """Give the directory for what is kept between runs."""
    return platformdirs.user_data_path("opentabs")


def cache_dir() -> Path:
    """Give the directory for what can be made again."""
    return platformdirs.user_cache_path("opentabs")
