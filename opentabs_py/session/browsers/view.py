"""What the users of a session see of one of its browsers."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page


class BrowserView(Protocol):
    """A browser that a session uses.

    Attributes:
        name: Its name, for users and agents; `default` if it is the only one that is launched.
        restarts: How often it was relaunched.
    """

    name: str
    restarts: int

    @property
    def context(self) -> "BrowserContext":
        """Playwright's browser context; its pages are the browser's tabs.

        Raises:
            BrowserError: This session did not launch the browser.
        """
        ...

    @property
    def is_gone(self) -> bool:
        """Whether it was closed or died while the session ran."""
        ...

    async def open(self, url: str) -> "Page":
        """Open a page in a new tab and wait for it to load.

        Args:
            url: With or without its scheme, as users type it.

        Raises:
            BrowserError: The page cannot be opened.
        """
        ...

    async def close(self) -> None:
        """Close it, as its user might; `relaunch` starts it again."""
        ...

    async def relaunch(self) -> None:
        """Relaunch it in the same way, if it was closed or has died.

        Raises:
            BrowserError: It did not start or connect.
        """
        ...

    async def wait_gone(self) -> None:
        """Wait until it was closed or died."""
        ...
