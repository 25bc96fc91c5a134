"""`config.files`: locks, and files that are written atomically."""

import resource
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opentabs_py.config.files import locked, write_whole


@pytest.fixture
def full_disk() -> Generator[None]:
    """Let this process write nothing to files, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


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


@pytest.mark.usefixtures("full_disk")
def test_a_file_that_cannot_be_written_is_named_and_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.touch()
    with pytest.raises(OSError, match="too large") as caught:
        write_whole(file, b"{}")
    assert caught.value.filename == str(file)
    assert [*tmp_path.iterdir()] == [file]
