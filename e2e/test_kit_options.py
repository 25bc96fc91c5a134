"""The options of pytest-playwright mean of the browser with the extension what they always mean."""

import json
import os
import shutil
import sys
from pathlib import Path

import playwright
import pytest

from e2e.kit.runs import run_kit

NAME = "test_a_tool_is_called"


@pytest.fixture
def ffmpeg(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Playwright records videos with: a build of its own, or the system's in its place."""
    own = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright"
    if any(Path(own).glob("ffmpeg-*/ffmpeg-*")):
        return
    found = shutil.which("ffmpeg")
    if found is None or sys.platform != "linux":
        pytest.skip("there is no ffmpeg: `playwright install ffmpeg`, or the system's package")
    driver = Path(playwright.__file__).parent / "driver" / "package" / "browsers.json"
    browsers = json.loads(driver.read_text())["browsers"]
    [revision] = [each["revision"] for each in browsers if each["name"] == "ffmpeg"]
    place = tmp_path_factory.mktemp("browsers") / f"ffmpeg-{revision}"
    place.mkdir()
    (place / "ffmpeg-linux").symlink_to(found)
    (place / "INSTALLATION_COMPLETE").touch()
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(place.parent))


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
    assert "--browser-channel chrome cannot be tested in" in ran[NAME].text


@pytest.mark.usefixtures("ffmpeg")
@pytest.mark.parametrize(("when", "kept"), [("on", ["video.webm"]), ("retain-on-failure", [])])
def test_a_video_of_the_page_is_kept_as_asked(tmp_path: Path, when: str, kept: list[str]) -> None:
    ran = run_kit(tmp_path, "options", f"--video={when}", "--output=kept")

    assert ran.outcomes == {NAME: "passed"}, ran.output
    assert [each.name for each in (tmp_path / "kept").rglob("*.webm")] == kept
