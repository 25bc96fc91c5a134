"""Fixtures for the tests of sessions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from opentabs_py.config.paths import user_file


@pytest.fixture
def write_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Writes the user's settings file, the only one with settings."""
    for variable in ("XDG_CONFIG_HOME", "HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    user_file().parent.mkdir(parents=True)
    return user_file().write_text
