"""Tests that pass, and of which something fails afterwards; run by test_reports.py."""

from collections.abc import Generator
from pathlib import Path

import pytest

from opentabs_py.testing import SyncOpenTabs


def test_has_no_place_for_its_trace(opentabs: SyncOpenTabs, output_path: str) -> None:
    Path(output_path).parent.mkdir()
    Path(output_path).write_text(f"where {opentabs.mcp_url} has a directory")


@pytest.fixture
def stubborn(opentabs: SyncOpenTabs, demo_site: str) -> Generator[None]:
    opentabs.page.goto(demo_site)
    yield
    raise RuntimeError("the fixture was not undone")


@pytest.mark.usefixtures("stubborn")
def test_is_the_last(opentabs: SyncOpenTabs) -> None:
    opentabs.start("probe_run", key="k", steps=[{"wait": 60_000}])
