"""Serve the hands: the tools that see and use any page of the browsers that a session drives."""

from collections.abc import Awaitable, Callable, Sequence

import anyio
from playwright.async_api import BrowserContext

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.pages import Pages, ensure_any_browser
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.tool import Tool
from opentabs_py.config.settings import Settings
from opentabs_py.core.protocol import TabTarget
from opentabs_py.core.sites.match_patterns import serves
from opentabs_py.errors import ChainError
from opentabs_py.hands.hand_tool import HandTool
from opentabs_py.hands.pages import Driven, HandPages
from opentabs_py.hands.secrets import Secrets
from opentabs_py.hands.tools import Hands
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.session.browsers.browser import SessionBrowser

_NONE = (
    "This server has neither launched a browser nor attached to one, and hands work in no other. "
    "Ask the user to start one: opentabs serve --hands, or with --attach."
)


def create_hands(
    browsers: Sequence[SessionBrowser],
    pages: Pages,
    settings: Settings,
    clock: AlarmClock,
    drive: Callable[[], Awaitable[BrowserContext]] | None,
    own_pages: Sequence[str],
) -> tuple[Hands, Sequence[Tool]]:
    """Return the hands, and their tools.

    Args:
        browsers: The browsers, current whenever a tool is called.
        pages: The links to their extensions.
        settings: Name the secrets that may be typed.
        clock: The clock of calls.
        drive: Return the pages of the browser, if a launcher drives it elsewhere.
        own_pages: Match patterns of the pages of our server.

    Raises:
        ConfigError: A secret has no value.
    """

    async def driven() -> Sequence[Driven]:
        if drive is not None:
            return [Driven(await drive(), attached=False)]
        return [
            Driven(context, attached=each.attach is not None)
            for each in browsers
            if (context := each.driven) is not None
        ]

    async def bring() -> None:
        await ensure_any_browser([each.bridge for each in browsers])

    def missing() -> str:
        actions = (each.bridge.tabs.user_action for each in browsers)
        return next(filter(None, actions), _NONE)

    secrets = Secrets.from_environment(settings.secrets)

    def is_own(url: str) -> bool:
        return url.startswith(f"{pages.origin}/") or serves(url, own_pages, ())

    hand_pages = HandPages(
        driven,
        lambda: find_targets(pages.bridges),
        missing,
        bring,
        mask=secrets.mask,
        is_own=is_own,
    )
    for browser in browsers:
        browser.on_driven = hand_pages.follow
    hands = Hands(hand_pages, lambda: pages.tabs.owners, secrets=secrets)
    host = ToolHost(clock, settings.limits, settings.message_limit)
    return hands, [HandTool(function, host, hands) for function in hands.functions]


async def find_targets(bridges: Sequence[Bridge]) -> Sequence[TabTarget]:
    """Return which tab is which target, in all browsers whose extensions are connected.

    Raises:
        ChainError: No extension is connected.
    """
    found: list[TabTarget] = []
    errors: list[ChainError] = []

    async def ask(bridge: Bridge) -> None:
        try:
            found.extend(await bridge.tab_requests.targets())
        except ChainError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for bridge in bridges:
            tasks.start_soon(ask, bridge)
    if errors and len(errors) == len(bridges):
        raise errors[0]
    return found
