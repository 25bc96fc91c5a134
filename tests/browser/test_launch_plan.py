"""How a browser is launched: its profile, and the error if it does not start."""

import stat
from pathlib import Path

from opentabs_py.browser.launch_plan import LaunchPlan


def a_plan(tmp_path: Path, profile: Path) -> LaunchPlan:
    return LaunchPlan(Path("/usr/bin/chromium"), tmp_path, profile, tmp_path)


def test_a_profile_that_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    profile = tmp_path / "new" / "profile"
    a_plan(tmp_path, profile).prepare()
    assert stat.S_IMODE(profile.stat().st_mode) == 0o700
    assert stat.S_IMODE((profile / "Default").stat().st_mode) == 0o700


def test_an_existing_profile_keeps_its_mode(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir(mode=0o750)
    a_plan(tmp_path, profile).prepare()
    assert stat.S_IMODE(profile.stat().st_mode) == 0o750


def test_a_browser_that_runs_out_of_open_files_is_reported_as_such(tmp_path: Path) -> None:
    said = "Target closed\n[err] FATAL: Check failed: . : Too many open files (24)"
    error = str(a_plan(tmp_path, tmp_path).not_started(said))
    assert "too many open files. Raise the limit: ulimit -n" in error
    assert "Is it a Chromium?" not in error
