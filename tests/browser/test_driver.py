"""Side effects of starting a driver."""

import os
from pathlib import Path

import pytest

from opentabs_py.browser.driver import NODE_CACHE, compile_cache


def test_what_node_compiles_is_kept_in_the_cache_directory_and_the_environment_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(NODE_CACHE, raising=False)
    with compile_cache():
        assert Path(os.environ[NODE_CACHE]) == tmp_path / "opentabs" / "node"
    assert NODE_CACHE not in os.environ


def test_a_cache_of_the_users_own_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NODE_CACHE, "/elsewhere")
    with compile_cache():
        assert os.environ[NODE_CACHE] == "/elsewhere"
    assert os.environ[NODE_CACHE] == "/elsewhere"
