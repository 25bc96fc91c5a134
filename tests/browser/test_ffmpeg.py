"""Videos are recorded with Playwright's own ffmpeg, or else with the system's."""

import os
import sys
from pathlib import Path

import pytest

from opentabs_py.browser.chromium import registry_place
from opentabs_py.browser.ffmpeg import system_ffmpeg
from tests.browser.test_launch_plan import a_plan

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Playwright's names on Linux")
NAME = "PLAYWRIGHT_BROWSERS_PATH"


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system with an ffmpeg, and a Playwright registry that contains only a browser."""
    (tmp_path / "registry" / "webkit-1").mkdir(parents=True)
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv(NAME, str(tmp_path / "registry"))
    monkeypatch.setenv("PATH", str(program.parent))
    return program


def test_the_system_s_ffmpeg_is_lent_to_a_driver_that_has_none(system: Path) -> None:
    with system_ffmpeg() as lent:
        place = registry_place("ffmpeg", {**os.environ, **lent})
        assert (place / "ffmpeg-linux").resolve() == system
        assert (place.parent / "webkit-1").is_dir()  # everything else is still there

    assert not place.parent.exists()


def test_playwright_s_own_ffmpeg_comes_first(system: Path) -> None:
    assert system.exists()
    registry_place("ffmpeg", os.environ).mkdir()

    with system_ffmpeg() as lent:
        assert lent == {}


def test_without_an_ffmpeg_nothing_is_lent(system: Path) -> None:
    system.unlink()

    with system_ffmpeg() as lent:
        assert lent == {}


def test_a_video_without_an_ffmpeg_names_the_package(tmp_path: Path) -> None:
    said = "Executable doesn't exist at /home/ada/.cache/ms-playwright/ffmpeg-1013/ffmpeg-linux"

    error = str(a_plan(tmp_path, tmp_path).not_started(said))

    assert "sudo apt install ffmpeg" in error
    assert "--video" in error
    assert "Is it a Chromium?" not in error
