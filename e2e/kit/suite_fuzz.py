"""`expect_contract` for each tool of the plugin; run by test_kit_fuzz.py."""

from pathlib import Path
from typing import Any

import pytest

from e2e.kit.promises import TOOLS
from opentabs_py.testing import SyncOpenTabs, expect_contract


@pytest.fixture(scope="session")
def opentabs_plugins() -> list[Path]:
    return [Path(__file__).parent / "tried"]


OPTIONS: dict[str, Any] = {
    "never_ends": {"within": 1.0},  # its other calls must end by then, however busy the machine is
    "is_deaf": {"stops_within": 0.2, "calls": 10},
    "breaks_when_cancelled": {"calls": 4},
    "breaks_the_page": {"calls": 8},
}


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_contract(opentabs: SyncOpenTabs, name: str) -> None:
    opentabs.open_start_page()

    expect_contract(opentabs.tool(f"tried_{name}"), **{"calls": 40, **OPTIONS.get(name, {})})
