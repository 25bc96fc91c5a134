"""`config.files`: locks, and files that are written atomically."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opentabs_py.config.files import locked


def test_nobody_else_holds_the_lock_of_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    count = tmp_path / "count"
    count.write_text("0")

    def add(_: int) -> None:
        with locked(tmp_path / "plugin"):
            count.write_text(str(int(count.read_text()) + 1))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(40)))
    assert count.read_text() == "40"
    assert {each.name for each in tmp_path.iterdir()} == {"cache", "count"}
