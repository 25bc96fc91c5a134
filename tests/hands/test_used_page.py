"""A page as one call uses it, when it does not answer."""

from typing import Any, cast

import anyio
import pytest

from opentabs_py.errors import ToolError
from opentabs_py.hands.actions import PatientAction
from opentabs_py.hands.watching import Watched
from tests.hands.one_page import (
    PROGRESS,
    AlertingPage,
    PageOfDeadDriver,
    PageThatStops,
    use,
)
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


async def test_a_dead_driver_fails_what_is_done_in_a_page_and_says_so() -> None:
    page = cast("Any", PageOfDeadDriver())
    used = use(page)
    action = PatientAction(Watched(), PROGRESS.heartbeat, used.failed)
    with pytest.raises(ToolError, match="the handler is closed"):
        await action.run(page.title)
    with pytest.raises(ToolError, match="the handler is closed"):
        await used.look(None, 100)


async def test_a_page_of_a_dead_driver_has_no_title() -> None:
    used = use(PageOfDeadDriver())
    assert await used.about() == {"title": "", "url": "https://a.example/"}


async def test_a_dialog_that_opens_during_a_look_ends_it_and_is_quoted() -> None:
    watched = Watched()
    used = use(AlertingPage(watched), watched)
    for _ in range(2):
        with anyio.fail_after(PATIENT), pytest.raises(ToolError) as error:
            await used.look(None, 100)
        assert error.value.detail.code == "DIALOG_OPEN"
        assert 'alert dialog, "Two lines", is in the way' in error.value.detail.message


async def test_an_action_is_done_although_the_page_does_not_answer_after_it() -> None:
    used = use(PageThatStops())

    async def action() -> None: ...

    assert await used.act(action) == {
        "title": "",
        "url": "https://a.example/",
        "changed": "(the page does not answer yet)",
    }


async def test_a_dialog_that_opens_after_an_action_is_its_result() -> None:
    watched = Watched()
    used = use(AlertingPage(watched), watched)

    async def action() -> None: ...

    with anyio.fail_after(PATIENT):
        done = await used.act(action)
    assert done["dialog"] == {"type": "alert", "message": "Two\nlines"}


async def test_nothing_is_done_in_a_page_that_has_become_one_of_ours() -> None:
    used = use(PageThatStops(), is_own=True)

    async def act() -> None:
        raise AssertionError

    with pytest.raises(ToolError, match="for the user only"):
        await used.act(act)
    with pytest.raises(ToolError, match="for the user only"):
        await used.look(None, 1000)
