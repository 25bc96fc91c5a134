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


def test_what_was_in_the_way_is_named_wherever_the_last_attempt_ended() -> None:
    log = (
        "Locator.click: Timeout 1000ms exceeded.\nCall log:\n  - waiting for locator('p')\n"
        "    - locator resolved to <p></p>\n  - attempting click action\n"
        "      - waiting for element to be visible, enabled and stable\n"
        "      - element is visible, enabled and stable\n      - scrolling into view if needed\n"
        "      - done scrolling\n      - <div id=over></div> intercepts pointer events\n"
        "    - retrying click action\n      - waiting 20ms\n    - retrying click action\n"
        "      - waiting 500ms\n      - waiting for element to be visible, enabled and stable\n"
    )
    message = str(action_failed(log))
    assert "<div id=over></div> intercepts pointer events" in message
    assert "500ms" not in message
