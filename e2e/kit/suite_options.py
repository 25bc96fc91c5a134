"""Tests that report how their browser was launched; run by test_kit_options.py."""

import os
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from opentabs_py.testing import SyncOpenTabs, expect


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, object]) -> dict[str, object]:
    """A headed browser without a screen: Chromium does not draw its window."""
    if browser_type_launch_args.get("headless") is False and "DISPLAY" not in os.environ:
        return {**browser_type_launch_args, "args": ["--ozone-platform=headless"]}
    return browser_type_launch_args


def test_a_tool_is_called(
    opentabs: SyncOpenTabs,
    page: Page,
    demo_site: str,
    record_property: Callable[[str, object], None],
) -> None:
    page.goto(demo_site)

    expect(opentabs.start("demo_list_channels")).to_succeed()

    record_property("agent", page.evaluate("navigator.userAgent"))
    brands = "(navigator.userAgentData?.brands ?? []).map(({ brand }) => brand).join()"
    record_property("brands", page.evaluate(brands))
