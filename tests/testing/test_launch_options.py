"""The launch options that the extension needs, merged with those of pytest-playwright."""

from pathlib import Path
from typing import Any

import pytest

from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.errors import BrowserError
from opentabs_py.testing.chain import launch_options


def a_plan(**more: Any) -> LaunchPlan:
    return LaunchPlan(Path("/chromium"), Path("/ext"), Path("/profile"), Path("/tmp/x"), **more)


def test_features_are_turned_off_beside_those_of_playwright() -> None:
    options = launch_options(a_plan(), {"args": ["--disable-features=Own"]}, {})

    [given] = [each for each in options["args"] if each.startswith("--disable-features=")]
    assert given.endswith(",Own")
    assert "MediaRouter" in given


def test_switches_and_environment_are_added_to_those_of_the_extension() -> None:
    options = launch_options(a_plan(), {"args": ["--lang=de"], "env": {"TZ": "UTC"}}, {})

    assert "--load-extension=/ext" in options["args"]
    assert "--lang=de" in options["args"]
    assert options["env"]["TZ"] == "UTC"
    assert options["env"]["TMPDIR"] == "/tmp/x"


def test_what_is_asked_for_wins_and_what_a_launch_cannot_take_is_left_out() -> None:
    asked = {"slow_mo": 50, "executable_path": "/other"}
    device = {"default_browser_type": "chromium", "locale": "de-DE", "storage_state": {}}

    options = launch_options(a_plan(), asked, device)

    assert options["slow_mo"] == 50
    assert options["executable_path"] == "/other"
    assert options["locale"] == "de-DE"
    assert not {"default_browser_type", "storage_state"} & set(options)


def test_a_viewport_takes_the_place_of_the_window_s_size() -> None:
    assert launch_options(a_plan(headed=True), {}, {})["no_viewport"] is True
    with_viewport = launch_options(a_plan(headed=True), {}, {"viewport": {"width": 1}})
    assert "no_viewport" not in with_viewport


def test_a_channel_of_chromium_finds_its_own_executable_and_a_branded_one_is_refused() -> None:
    options = launch_options(a_plan(), {"channel": "chromium"}, {})

    assert "executable_path" not in options
    with pytest.raises(BrowserError, match="tests with --browser-channel chrome-beta"):
        launch_options(a_plan(), {"channel": "chrome-beta"}, {})
