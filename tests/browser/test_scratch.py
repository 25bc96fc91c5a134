"""Temporary directories, next to those of other processes and other users."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from opentabs_py.browser.scratch import own_directory, temporary_dir
from tests.waiting import PATIENT


def test_a_temporary_directory_is_gone_afterwards_with_all_that_is_in_it() -> None:
    with temporary_dir() as path:
        (path / "profile").mkdir()
        (path / "profile" / "file").write_text("x")
    assert not path.exists()


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="needs systemd")
def test_files_that_are_old_are_not_taken_from_a_running_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, rules = tmp_path / "tmp", tmp_path / "rules.conf"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    rules.write_text(f"d {place} - - - 1us\n")
    clean = ["systemd-tmpfiles", "--clean", str(rules)]
    with temporary_dir() as path:
        (path / "extension").mkdir()
        (path / "extension" / "manifest.json").write_text("{}")
        (place / "unused").write_text("x")
        subprocess.run(clean, check=True)
        assert not (place / "unused").exists()
        assert (path / "extension" / "manifest.json").exists()
        assert (path / "owner.pid").exists()
    assert not path.exists()


def test_a_directory_that_a_dead_process_left_behind_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    for name, owner in (("dead", str(dead.pid)), ("alive", str(os.getpid())), ("odd", "x")):
        (tmp_path / f"opentabs-{name}").mkdir()
        (tmp_path / f"opentabs-{name}" / "owner.pid").write_text(owner)
    (tmp_path / "opentabs-unmarked").mkdir()
    with temporary_dir():
        left = {path.name for path in tmp_path.iterdir()}
    assert "opentabs-dead" not in left
    assert {"opentabs-alive", "opentabs-odd", "opentabs-unmarked"} <= left


@pytest.mark.skipif(sys.platform == "win32", reason="there are no zombies")
def test_a_directory_of_a_dead_process_that_nobody_collected_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as dead:
        assert dead.stdout is not None
        dead.stdout.read()  # ends when the process does, which is then a zombie
        while psutil.Process(dead.pid).status() != psutil.STATUS_ZOMBIE:
            assert dead.returncode is None
        (tmp_path / "opentabs-dead").mkdir()
        (tmp_path / "opentabs-dead" / "owner.pid").write_text(str(dead.pid))
        with temporary_dir():
            assert not (tmp_path / "opentabs-dead").exists()


def dead_process() -> int:
    """Return the id of a process that no longer exists."""
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    return dead.pid


def plant_file(mark: Path, text: str) -> None:
    mark.write_text(text)


def plant_link(mark: Path, target: str) -> None:
    mark.symlink_to(target)


def plant_fifo(mark: Path, _: str) -> None:
    os.mkfifo(mark)


def plant_directory(mark: Path, _: str) -> None:
    mark.mkdir()


@pytest.mark.parametrize(
    ("plant", "argument"),
    [
        (plant_file, "9" * 23),
        (plant_file, "\u0661\u0662"),
        (plant_file, "0" * 9 + "{dead}" + " " * 30),
        (plant_file, "-{dead}"),
        (plant_file, "0"),
        (plant_link, "/dev/zero"),
        (plant_link, "{marked}"),
        (plant_fifo, ""),
        (plant_directory, ""),
    ],
)
def test_a_mark_that_no_run_writes_is_left_alone_and_stops_nobody(
    plant: Callable[[Path, str], None],
    argument: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    marked = tmp_path / "marked"
    dead = str(dead_process())
    marked.write_text(dead)
    planted = tmp_path / "opentabs-planted"
    planted.mkdir()
    plant(planted / "owner.pid", argument.format(dead=dead, marked=marked))
    with temporary_dir() as path:
        assert path.is_dir()
        assert planted.is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can plant what is another user's")
@pytest.mark.parametrize("theirs", ["the directory", "the mark"])
def test_what_another_user_has_planted_is_left_alone(
    theirs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / "opentabs-planted"
    planted.mkdir()
    mark = planted / "owner.pid"
    mark.write_text(str(dead_process()))
    os.chown(planted if theirs == "the directory" else mark, 65534, 65534)
    with temporary_dir():
        assert planted.is_dir()


def test_a_link_to_a_directory_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    temporary.mkdir()
    elsewhere.mkdir()
    (elsewhere / "owner.pid").write_text(str(dead_process()))
    (elsewhere / "precious").touch()
    (temporary / "opentabs-link").symlink_to(elsewhere)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with temporary_dir():
        assert (elsewhere / "precious").exists()


# Kills itself after removing this many files.
KILLED = """
import os, signal, sys
from opentabs_py.browser.scratch import temporary_dir
count = 0
def watch(event, _):
    global count
    if event == "os.remove":
        count += 1
        if count > int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
with temporary_dir() as path:
    for number in range(100):
        (path / str(number)).touch()
    print(path, flush=True)
    sys.addaudithook(watch)
"""


@pytest.mark.parametrize("removed", [0, 1, 50, 99])
def test_a_removal_that_was_killed_half_way_is_finished_by_the_next_run(
    removed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(removed)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENT,
        check=False,
    )
    path = Path(killed.stdout.strip())
    assert killed.returncode == -signal.SIGKILL
    assert len(list(path.iterdir())) >= 100 - removed
    with temporary_dir():
        assert not path.exists()


def test_a_directory_of_others_is_removed_only_when_it_is_marked_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("playwright-pytest-marked", "playwright-pytest-theirs"):
        (tmp_path / name).mkdir()
    own_directory(tmp_path / "playwright-pytest-marked")
    with temporary_dir():
        assert (tmp_path / "playwright-pytest-marked").exists()
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    (tmp_path / "playwright-pytest-marked" / "owner.pid").write_text(str(dead.pid))
    with temporary_dir():
        left = {path.name for path in tmp_path.iterdir()}
    assert "playwright-pytest-marked" not in left
    assert "playwright-pytest-theirs" in left
