"""Which switches Chromium gets."""

from opentabs_py.browser.switches import turned_on


def test_without_features_nothing_changes() -> None:
    args = ["--enable-features=Own", "--mute-audio"]
    assert turned_on([], args) is args


def test_features_are_one_list_with_playwright_s_and_the_caller_s() -> None:
    args = ["--enable-features=Own,WebMCP", "--mute-audio", "--enable-features=Other"]
    first, features = turned_on(["WebMCP"], args)
    assert first == "--mute-audio"
    assert features == (
        "--enable-features=CDPScreenshotNewSurface,SkipListAccountsWithoutGaiaCookies,"
        "Own,WebMCP,Other"
    )
