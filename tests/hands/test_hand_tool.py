"""Where a hand acts once its user has allowed it."""

import pytest

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.config.settings import load_settings
from opentabs_py.core.limits import Limits
from opentabs_py.core.questions import NOWHERE, Place
from opentabs_py.hands.hand_tool import HandTool
from opentabs_py.session.tools.hands import create_hands

pytestmark = pytest.mark.anyio

CALL = ToolCall({"key": "Enter"}, Limits())


def a_hand() -> HandTool:
    clock = AlarmClock()
    _, tools = create_hands((), Pages((), clock=clock), load_settings(hands=True), clock, None)
    hands = [each for each in tools if isinstance(each, HandTool)]
    return next(each for each in hands if each.listing.name == "page_press")


async def test_it_acts_in_the_tab_and_on_the_site_that_the_question_named() -> None:
    place = Place("shop.example", "Shop", 3)
    bound = a_hand().in_place(CALL, place)
    assert (bound.arguments, bound.place) == ({"key": "Enter", "tabId": 3}, place)


async def test_it_acts_wherever_it_can_if_the_question_could_not_name_a_place() -> None:
    assert a_hand().in_place(CALL, NOWHERE) == CALL
