"""A test of the manual clock that is run with time itself; run by test_kit_timing.py."""

from time import monotonic

import pytest
from playwright.sync_api import Page

from opentabs_py.testing import SyncOpenTabs, expect


@pytest.mark.opentabs(clock="manual", idle=0.5)
def test_a_mark_gives_way_to_the_option(opentabs: SyncOpenTabs, page: Page, demo_site: str) -> None:
    page.goto(demo_site)
    call = opentabs.start("probe_run", key="key", steps=[{"wait": 60_000}])
    began = monotonic()

    opentabs.clock.advance("500ms")

    assert monotonic() - began >= 0.5
    expect(call).to_time_out("idle")
