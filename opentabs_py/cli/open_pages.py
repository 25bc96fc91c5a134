"""The pages that a command opens for its calls."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from opentabs_py.session.session import OpenTabs

LISTED_WITHIN: Final = 2.0  # s; a page that has loaded says in some ms which tools it has


async def open_pages(tabs: "OpenTabs", urls: Sequence[str]) -> None:
    """Open pages, and wait for the tools that they register while they load.

    Raises:
        BrowserError: A page cannot be opened.
    """
    from opentabs_py.core.sites.match_patterns import serves

    opened = [(await tabs.open(url)).url for url in urls]
    with anyio.move_on_after(LISTED_WITHIN):
        for url in opened:
            if serves(url, tabs.settings.webmcp, ()):
                with suppress(LookupError):  # several tabs show it
                    await tabs.page_tools(url)
