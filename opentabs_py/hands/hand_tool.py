"""A hand as a served tool, whose questions say in which tab it acts, and on which element."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio

from opentabs_py.calling.call import ToolCall
from opentabs_py.core import failures
from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.core.plugin_names import HANDS
from opentabs_py.core.questions import Place
from opentabs_py.errors import CallError
from opentabs_py.hands.tools import Hands
from opentabs_py.python_tools.python_tool import PythonTool
from opentabs_py.python_tools.run import ToolHost


class HandTool(PythonTool):
    """A tool that sees or uses a page.

    Args:
        function: The function to run.
        host: State shared with the other tools of its server.
        hands: Finds the page of a call.
    """

    def __init__(self, function: Callable[..., Any], host: ToolHost, hands: Hands) -> None:
        super().__init__(function, host, owner=HANDS)
        self._hands = hands

    async def find_place(self, call: ToolCall) -> Place:
        """Return where a call would run now, as far as that is known."""
        return await self._hands.find_place(
            call.arguments.get(TAB_ID), call.arguments.get("ref"), call.origin.client
        )

    def in_place(self, call: ToolCall, place: Place) -> ToolCall:
        """Return a call that runs in this tab, and on this site there, or not at all."""
        return replace(call, arguments={**call.arguments, TAB_ID: place.tab_id}, place=place)

    async def wait_gone(self, place: Place) -> CallError:
        """Wait until the tab is closed or leaves the site; return the error for a call there."""
        if place.tab_id is None:
            await anyio.sleep_forever()
        else:
            await self._hands.pages.wait_left(place.tab_id, place.site)
        return failures.asked_tab_gone(self.listing.name)
