"""A test that hangs until its run is ended from outside; run by test_kit_lifetime.py."""

from pathlib import Path

from playwright.sync_api import Page

from e2e.kit.runs import wait_until
from opentabs_py.testing import SyncOpenTabs


def test_hangs(opentabs: SyncOpenTabs, page: Page, demo_site: str) -> None:
    page.goto(demo_site)
    call = opentabs.start("probe_run", key="k", steps=[{"wait": 60_000}])
    wait_until(page, "'k' in probe.runs")
    Path("hangs").write_text(opentabs.mcp_url)
    call.wait()
