"""Serve the hands: the tools that see and use any page of the browsers that a session launches."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from playwright.async_api import BrowserContext

from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.tool import Tool
from opentabs_py.config.settings import Settings
from opentabs_py.core.plugin_names import HANDS
from opentabs_py.core.tab_owners import TabOwners
from opentabs_py.errors import BrowserError
from opentabs_py.hands.pages import HandPages
from opentabs_py.hands.tools import Hands
from opentabs_py.python_tools.python_tool import PythonTool
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.session.browser import SessionBrowser


def create_hands(
    browsers: Sequence[SessionBrowser],
    owners: Callable[[], TabOwners],
    settings: Settings,
    clock: AlarmClock,
) -> tuple[Hands, Sequence[Tool]]:
    """Return the hands, and their tools.

    Args:
        browsers: The browsers, current whenever a tool is called.
        owners: Returns which tabs belong to which clients.
        settings: Name the secrets that may be typed.
        clock: The clock of calls.

    Raises:
        ConfigError: A secret has no value.
    """

    def contexts() -> Sequence[tuple[BrowserContext, int]]:
        found: list[tuple[BrowserContext, int]] = []
        for browser in browsers:
            try:
                found.append((browser.context, browser.bridge.number))
            except BrowserError:
                continue  # it is not there now
        return found

    hands = Hands(HandPages(contexts), owners, secrets=settings.secrets)
    host = ToolHost(clock, settings.limits, settings.message_limit)
    tools = [PythonTool(function, host) for function in hands.functions]
    for tool in tools:
        tool.listing = replace(tool.listing, owner=HANDS)
    return hands, tools
