"""Tests without opentabs beside tests with it; run by test_kit_plain.py."""

from collections.abc import Callable
from time import monotonic

import pytest
from playwright.sync_api import BrowserContext, Page

from opentabs_py.browser.chromium import find_chromium
from opentabs_py.testing import SyncOpenTabs, expect


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, object]:
    """Playwright's own browser may not be installed where this runs."""
    return {"executable_path": find_chromium().path}


def test_a_page_of_another_test_is_playwright_s_own(page: Page) -> None:
    assert page.context.service_workers == []
    assert page.context.browser is not None
    assert page.context.pages == [page]


def test_contexts_of_another_test_are_playwright_s_own(
    context: BrowserContext, new_context: Callable[[], BrowserContext]
) -> None:
    second = new_context()

    assert second.browser == context.browser
    assert second != context


def test_a_page_beside_opentabs_has_the_extension(opentabs: SyncOpenTabs, page: Page) -> None:
    [worker] = page.context.service_workers

    assert worker.url.startswith("chrome-extension://")
    assert len(opentabs.tools) > 0


@pytest.fixture
def through_a_fixture(opentabs: SyncOpenTabs) -> SyncOpenTabs:
    return opentabs


@pytest.mark.usefixtures("through_a_fixture")
def test_a_page_beside_a_fixture_that_uses_opentabs_has_it_too(page: Page) -> None:
    assert len(page.context.service_workers) == 1


@pytest.mark.opentabs
def test_a_page_of_a_marked_test_has_it_too(page: Page) -> None:
    assert len(page.context.service_workers) == 1


@pytest.mark.opentabs(clock="manual", idle=0.5)
def test_a_mark_gives_way_to_the_option(opentabs: SyncOpenTabs, page: Page, demo_site: str) -> None:
    page.goto(demo_site)
    call = opentabs.start("probe_run", key="key", steps=[{"wait": 60_000}])
    began = monotonic()

    opentabs.clock.advance("500ms")

    assert monotonic() - began >= 0.5
    expect(call).to_time_out("idle")
