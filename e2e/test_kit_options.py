"""The options of pytest-playwright mean of the browser with the extension what they always mean."""

import os
import shutil
from pathlib import Path

import pytest

from e2e.kit.runs import run_kit
from opentabs_py.browser.chromium import find_chromium, registry_place

NAME = "test_a_tool_is_called"
HAS_FFMPEG = registry_place("ffmpeg", os.environ).exists() or shutil.which("ffmpeg") is not None


def test_a_window_is_shown_slowly_as_that_of_a_device(tmp_path: Path) -> None:
    ran = run_kit(tmp_path, "options", "--headed", "--slowmo=100", "--device=Pixel 7")

    assert ran.outcomes == {NAME: "passed"}, ran.output
    properties = ran[NAME].properties
    assert "Pixel 7" in properties["agent"]
    assert "HeadlessChrome" not in properties["brands"]
    assert ran[NAME].seconds > 0.3


def test_in_other_browsers_the_tests_are_skipped(tmp_path: Path) -> None:
    ran = run_kit(tmp_path, "options", "--browser=firefox")

    assert {case.outcome for case in ran.cases.values()} == {"skipped"}, ran.output
    assert "only Chromium can load the extension" in ran.output + str(ran.cases)


def test_a_browser_that_refuses_extensions_is_not_launched(tmp_path: Path) -> None:
    ran = run_kit(tmp_path, "options", "--browser-channel=chrome")

    assert ran.outcomes == {NAME: "error"}, ran.output
    assert "Cannot run tests with --browser-channel chrome" in ran[NAME].text


@pytest.mark.skipif(not HAS_FFMPEG, reason="there is no ffmpeg: install the system's package")
@pytest.mark.parametrize(("when", "kept"), [("on", ["video.webm"]), ("retain-on-failure", [])])
def test_a_video_of_the_page_is_kept_as_asked(tmp_path: Path, when: str, kept: list[str]) -> None:
    ran = run_kit(tmp_path, "options", f"--video={when}", "--output=kept")

    assert ran.outcomes == {NAME: "passed"}, ran.output
    assert [each.name for each in (tmp_path / "kept").rglob("*.webm")] == kept


def test_a_video_without_an_ffmpeg_names_the_package(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    (nowhere / "chromium").symlink_to(find_chromium().path)

    ran = run_kit(
        tmp_path,
        "options",
        "--video=on",
        PATH=str(nowhere),
        PLAYWRIGHT_BROWSERS_PATH=str(nowhere),
    )

    assert ran.outcomes == {NAME: "error"}, ran.output
    assert "sudo apt install ffmpeg" in ran[NAME].text
