"""`config.paths`: where the user's own files are."""

import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from opentabs_py.browser.discovery import user_data_dirs
from opentabs_py.config.paths import cache_dir, data_dir, expand_user, log_dir, state_dir, user_file
from opentabs_py.errors import ConfigError


@pytest.mark.parametrize(
    "find", [user_file, data_dir, cache_dir, state_dir, log_dir, user_data_dirs]
)
def test_a_user_without_a_home_directory_is_told_to_set_one(
    find: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(uid: int) -> None:  # as in a container whose user is only a number
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="Set HOME to an absolute path"):
        find()


def test_the_home_directory_of_an_unknown_user_is_an_error_that_names_it() -> None:
    with pytest.raises(ConfigError, match="no user of that name: ~no-such-user/profile"):
        expand_user(Path("~no-such-user/profile"))
