"""The switches that Chromium gets."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import playwright
import pytest

from opentabs_py.browser import switches

DRIVER = Path(playwright.__file__).parent / "driver/package/lib/coreBundle.js"
ADDRESS_BAR = {"WebUIOmniboxPopup", "WebUIOmniboxAimPopup"}


def features(switch: str, added: Sequence[str]) -> list[str]:
    (given,) = [each for each in added if each.startswith(switch)]  # Chromium uses only the last
    return given.removeprefix(switch).split(",")


def on(**options: Any) -> list[str]:
    added = switches.added(**{"keeps_profile": False, "headed": False} | options)
    return features("--enable-features=", added)


def off(**options: Any) -> list[str]:
    added = switches.added(**{"keeps_profile": False, "headed": False} | options)
    return features("--disable-features=", added)


@pytest.mark.parametrize(("name", "given"), [("disabledFeatures", off), ("enabledFeatures", on)])
def test_the_features_that_playwright_turns_on_and_off_are_kept(name: str, given: Any) -> None:
    code = DRIVER.read_text(encoding="utf-8")
    body = code.partition(f"    {name} = ")[2].partition("].filter(Boolean)")[0]
    names = re.findall(r'"(\w+)",?$', re.sub(r"//.*", "", body), flags=re.MULTILINE)
    by_playwright = {*names, *re.findall(r': "(\w+)",', body)}

    assert by_playwright  # its code still looks like this
    assert {*given()} - ADDRESS_BAR == by_playwright


def test_features_are_one_list_with_the_caller_s() -> None:
    args = ["--enable-features=Own,WebMCP", "--mute-audio", "--enable-features=Other"]
    added = switches.added(keeps_profile=False, headed=False, features=["WebMCP"], args=args)

    assert "--mute-audio" in added
    assert on(features=["WebMCP"], args=args)[-3:] == ["Own", "WebMCP", "Other"]
    assert off(args=["--disable-features=Own"])[-1] == "Own"


def test_a_feature_that_the_caller_turns_on_is_not_turned_off() -> None:
    args = ["--enable-features=MediaRouter"]
    assert "MediaRouter" in off()
    assert "MediaRouter" not in off(args=args)
    assert "MediaRouter" in off(args=[*args, "--disable-features=MediaRouter"])


@pytest.mark.parametrize("headed", [True, False])
@pytest.mark.parametrize("keeps_profile", [True, False])
def test_only_people_s_own_browser_loads_the_pages_of_its_address_bar(
    headed: bool, keeps_profile: bool
) -> None:
    given = off(keeps_profile=keeps_profile, headed=headed)
    assert ADDRESS_BAR.isdisjoint(given) == (keeps_profile and headed)


def test_a_kept_profile_keeps_its_protections() -> None:
    assert "ThirdPartyStoragePartitioning" in off()
    assert "ThirdPartyStoragePartitioning" not in off(keeps_profile=True)
