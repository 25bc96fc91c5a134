"""Whether an action of Playwright has failed."""

from contextlib import nullcontext
from typing import Any

import pytest
from playwright.async_api import Error

from opentabs_py.errors import ToolError
from opentabs_py.hands.actions import PatientAction, action_failed
from opentabs_py.hands.watching import Watched

CLOSED = "Locator.click: Target page, context or browser has been closed\nCall log:\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("  - performing click action\n", nullcontext()),
        ("  - waiting for element to be visible\n", pytest.raises(ToolError, match="closed")),
    ],
)
async def test_a_click_that_closes_its_tab_has_not_failed(log: str, expected: Any) -> None:
    async def click() -> None:
        raise Error(CLOSED + log)

    with expected:
        action = PatientAction(Watched(), lambda: None, lambda error: action_failed(str(error)))
        assert await action.run(click) is None
