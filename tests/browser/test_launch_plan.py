"""How a browser is launched: its profile, and the error if it does not start."""

import json
import re
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.errors import BrowserError


def a_plan(tmp_path: Path, profile: Path) -> LaunchPlan:
    (tmp_path / "manifest.json").touch()
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


@pytest.mark.parametrize("keeps_profile", [False, True])
def test_only_a_browser_whose_profile_is_kept_offers_to_save_passwords(
    tmp_path: Path, keeps_profile: bool
) -> None:
    plan = replace(a_plan(tmp_path, tmp_path / "profile"), keeps_profile=keeps_profile)
    plan.prepare()
    preferences = json.loads((plan.profile / "Default" / "Preferences").read_text())
    assert preferences.get("credentials_enable_service", True) is keeps_profile
    assert preferences["extensions"]["ui"]["developer_mode"]


def test_a_browser_whose_extension_was_removed_is_not_started(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, tmp_path / "profile")
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(BrowserError, match=r"was removed while the server ran.*Restart the server"):
        plan.prepare()
    assert not plan.profile.exists()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "Target closed\n[err] FATAL: Check failed: . : Too many open files (24)",
            "too many open files. Raise the limit: ulimit -n",
        ),
        (
            "Failed to launch: Error: spawn /usr/bin/chromium EMFILE",
            "too many open files. Raise the limit: ulimit -n",
        ),
        (
            "Target closed\n[err] pthread_create: Resource temporarily unavailable (11)",
            "too many processes or threads. Raise the limit: ulimit -u",
        ),
        (
            "Failed to launch: Error: spawn /usr/bin/chromium EAGAIN",
            "too many processes or threads. Raise the limit: ulimit -u",
        ),
    ],
)
def test_a_browser_that_reaches_a_limit_is_reported_as_such(
    tmp_path: Path, said: str, why: str
) -> None:
    error = str(a_plan(tmp_path, tmp_path).not_started(said))
    assert why in error
    assert "Is it a Chromium?" not in error


@pytest.mark.parametrize(
    ("total", "free", "why"),
    [
        (2**22, 8192, "disk of .*/profile is full: free some space there"),
        (2**22, 2**21, "Branded Chrome"),
        (0, 0, "Branded Chrome"),  # the file system does not say
    ],
)
def test_a_full_disk_is_named_when_the_extension_does_not_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, free: int, why: str
) -> None:
    def usage(path: Path) -> "shutil._ntuple_diskusage":
        size, left = (total, free) if path.name == "profile" else (2**30, 2**29)
        return shutil._ntuple_diskusage(size, size - left, left)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    plan = a_plan(tmp_path, tmp_path / "profile")
    plan.prepare()
    assert re.search(why, str(plan.not_connected(20)))
