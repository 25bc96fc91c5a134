"""Tests that fail, to check their reports and artifacts; run by test_kit_reports.py."""

import pytest
from playwright.sync_api import Page

from e2e.kit.runs import wait_until
from opentabs_py.testing import SyncMcpClient, SyncOpenTabs, expect


@pytest.fixture(autouse=True)
def chat(page: Page, demo_site: str) -> None:
    page.goto(demo_site)


def test_passes(opentabs: SyncOpenTabs) -> None:
    expect(opentabs.start("demo_list_channels")).to_succeed()


def test_fails(opentabs: SyncOpenTabs, mcp: SyncMcpClient, page: Page) -> None:
    mcp.call("demo_list_channels")
    page.evaluate("console.error('the page is not well')")
    page.evaluate("fetch('/nowhere?key=s3cret').then(() => {})")
    opentabs.call("probe_run", key="a", steps=[{"log": "read page 7"}, {"wait": 200}])
    opentabs.start("probe_run", key="b", steps=[{"report": {"progress": 4}}, {"wait": 60_000}])
    mcp.start("probe_run", {"key": "c", "steps": [{"wait": 60_000}]})
    wait_until(page, "'b' in probe.runs && 'c' in probe.runs")

    assert page.title() == "another, with 100% of: what hurts"


@pytest.fixture
def broken(opentabs: SyncOpenTabs) -> None:
    opentabs.call("demo_list_channels")
    raise RuntimeError("the fixture broke")


@pytest.mark.usefixtures("broken")
def test_never_starts() -> None:
    pass
