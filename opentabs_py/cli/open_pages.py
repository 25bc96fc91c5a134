"""The pages that a command opens for its calls."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio

from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.session.session import OpenTabs

LISTED_WITHIN: Final = 2.0  # s; a page that has loaded says in some ms which tools it has


def check_has_browser(tabs: "OpenTabs", urls: Sequence[str]) -> None:
    """Refuse pages to open where no browser is launched, because there are only Python tools.

    Raises:
        ConfigError: There are some.
    """
    if urls and not tabs.internals.launches_browser:
        raise ConfigError(
            "--open needs a browser, and none is launched for Python tools alone. Pass the plugin "
            "that uses the page with --plugin DIR, or leave out --open."
        )


async def open_pages(tabs: "OpenTabs", urls: Sequence[str]) -> None:
    """Open pages, and wait for the tools that they register while they load.

    Raises:
        BrowserError: A page cannot be opened.
        ConfigError: There is no browser for them.
    """
    from opentabs_py.core.sites.match_patterns import serves

    check_has_browser(tabs, urls)
    opened = [(await tabs.open(url)).url for url in urls]
    with anyio.move_on_after(LISTED_WITHIN):
        for url in opened:
            if serves(url, tabs.settings.webmcp, ()):
                with suppress(LookupError):  # several tabs show it
                    await tabs.page_tools(url)
