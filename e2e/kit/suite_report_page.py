"""Tests with every outcome, for the report of their run; run by test_kit_report_page.py."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from opentabs_py.testing import SyncMcpClient, SyncOpenTabs, expect

# The page does not respond for 3 s.
BUSY = "setTimeout(() => { const end = Date.now() + 3000; while (Date.now() < end); })"
HOSTILE = "</script><script>document.title='owned'</script><!--<img src=x onerror=alert(1)>"


def test_passes(opentabs: SyncOpenTabs, page: Page, demo_site: str) -> None:
    page.goto(demo_site)
    page.evaluate(BUSY)
    assert opentabs.call("demo_list_channels")


def test_fails(opentabs: SyncOpenTabs, page: Page, demo_site: str) -> None:
    page.goto(demo_site)
    print("what it printed")
    opentabs.call("demo_list_channels")
    page.evaluate("document.body.style.opacity = 0")
    page.evaluate("document.documentElement.style.background = 'rgb(200, 0, 0)'")
    expect(opentabs.start("demo_list_channels")).to_return({"channels": "none"})


def test_flaky(opentabs: SyncOpenTabs, page: Page, demo_site: str) -> None:
    page.goto(demo_site)
    opentabs.call("demo_list_channels")
    seen = Path(os.environ["SEEN"])
    is_first = not seen.exists()
    seen.touch()
    assert not is_first, "the site is slow today"


def test_faults(opentabs: SyncOpenTabs, page: Page, demo_site: str, mcp: SyncMcpClient) -> None:
    page.goto(demo_site)
    opentabs.faults.delay("port", 0.05, kind="tool.result")
    expect(mcp.start("demo_list_channels", {})).to_succeed()


@pytest.mark.skip(reason="not yet")
def test_skipped() -> None: ...


@pytest.mark.xfail(reason="a known bug")
def test_expected() -> None:
    pytest.fail("as it should")


@pytest.fixture
def broken(page: Page, demo_site: str) -> None:
    page.goto(demo_site)
    raise RuntimeError("no fixture today")


@pytest.mark.usefixtures("opentabs", "broken")
def test_error() -> None: ...


@pytest.mark.parametrize("text", [HOSTILE], ids=["<img src=x>"])
def test_hostile(text: str) -> None:
    print(text)
    raise AssertionError(text)


@pytest.mark.opentabs(recording="recorded.har")
def test_recording(opentabs: SyncOpenTabs, page: Page) -> None:
    page.goto(opentabs.recording.url)
    for _ in range(2):
        page.evaluate("fetch('/api/new?page=2').catch(() => {})")
