"""The options of pytest-playwright keep their meaning for the browser with the extension."""

from pathlib import Path

import pytest

from e2e.kit.runs import HAS_FFMPEG, KitRun, run_kit, with_ffmpeg
from opentabs_py.browser.chromium import find_chromium

NAME = "test_a_tool_is_called"
VIDEO = ["--video=on", "--output=kept"] if HAS_FFMPEG else []


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    window = ["--headed", "--slowmo=100", "--device=Pixel 7"]
    return run_kit(tmp_path_factory.mktemp("options"), "options", *window, *VIDEO)


def test_a_window_is_shown_slowly_as_that_of_a_device(shown: KitRun) -> None:
    assert shown.outcomes == {NAME: "passed"}, shown.output
    properties = shown[NAME].properties
    assert "Pixel 7" in properties["agent"]
    assert "HeadlessChrome" not in properties["brands"]
    assert shown[NAME].seconds > 0.3


@with_ffmpeg
def test_a_video_of_the_page_is_kept_as_asked(shown: KitRun) -> None:
    assert [each.name for each in (shown.directory / "kept").rglob("*.webm")] == ["video.webm"]


def test_in_other_browsers_the_tests_are_skipped(tmp_path: Path) -> None:
    ran = run_kit(tmp_path, "options", "--browser=firefox")

    assert {case.outcome for case in ran.cases.values()} == {"skipped"}, ran.output
    assert "only Chromium can load the extension" in ran.output + str(ran.cases)


def test_a_browser_that_refuses_extensions_is_not_launched(tmp_path: Path) -> None:
    ran = run_kit(tmp_path, "options", "--browser-channel=chrome")

    assert ran.outcomes == {NAME: "error"}, ran.output
    assert "Cannot run tests with --browser-channel chrome" in ran[NAME].text


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
