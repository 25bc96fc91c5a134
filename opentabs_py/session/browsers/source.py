"""Where the browsers of a session come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from opentabs_py.browser.driver import SharedDriver
from opentabs_py.browser.launch import Launcher, launch_browser
from opentabs_py.config.paths import absolute
from opentabs_py.errors import ConfigError
from opentabs_py.session.browsers.background_launch import BackgroundLaunch
from opentabs_py.session.browsers.browser import SessionBrowser

if TYPE_CHECKING:
    from opentabs_py.browser.discovery import Attach


class BrowserSource:
    """Launches a session's browsers, or names the one that it attaches to.

    Args:
        browser: As for `OpenTabs`.
        browsers: As for `OpenTabs`.
        launch: Launches them, if not as usual.
        relaunch_urls: As for `OpenTabs`.
        is_needed: Returns whether the session's tools need a browser. Usually the settings have to
            be loaded to know, so it is asked only if nothing else decides.

    Raises:
        ConfigError: `browser` is another text, or `browsers` is not a positive number.

    Attributes:
        driver: The driver of the browsers that it launches.
        are_interchangeable: Whether any of the browsers may take any call.
        profiles: The profile directory of each browser that has one of its own.
    """

    def __init__(
        self,
        browser: Literal["launch", "none"] | Attach,
        browsers: Mapping[str, str | Path] | int | None,
        *,
        launch: Launcher | None,
        relaunch_urls: Sequence[str] | None,
        is_needed: Callable[[], bool],
    ) -> None:
        if isinstance(browser, str) and browser not in ("launch", "none"):
            raise ConfigError(
                f'browser is {browser!r}, but must be "launch", "none", or Attach() for a running '
                "browser."
            )
        if isinstance(browsers, int) and browsers < 1:
            raise ConfigError(f"browsers is {browsers}, but must be at least 1.")
        self._browser = browser
        self._launch = launch
        self._relaunch_urls = relaunch_urls
        self._is_needed = is_needed
        self.driver = SharedDriver()
        self.are_interchangeable = isinstance(browsers, int)
        self._names: Sequence[str] = ["default"]
        self.profiles: Mapping[str, Path] = {}
        if isinstance(browsers, int):
            self._names = [f"browser-{index + 1}" for index in range(browsers)]
        elif browsers:
            self._names = [*browsers]
            self.profiles = {name: absolute(Path(profile)) for name, profile in browsers.items()}

    @property
    def is_used(self) -> bool:
        """Whether the session has a browser: one that it launches, attaches to or waits for."""
        return self._launch is not None or bool(self.profiles) or self._is_needed()

    @property
    def is_loaded_by_hand(self) -> bool:
        """Whether the user loads the extension into a browser."""
        return self._browser == "none" and self.is_used

    @property
    def attach(self) -> Attach | None:
        """The running browser that the extension is loaded into, if it is one."""
        browser = self._browser
        if isinstance(browser, str) or not self.is_used:
            return None
        return browser

    async def begin(self, stack: AsyncExitStack) -> list[SessionBrowser]:
        """Return the browsers, of which those that are launched begin to start.

        Args:
            stack: Closes the browsers.
        """
        if self._browser != "launch" or not self.is_used:
            return [SessionBrowser(self._names[0], None, attach=self.attach, relaunch_urls=None)]
        launcher = self._launch or partial(launch_browser, shared=self.driver)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        launches = [BackgroundLaunch(launcher, tasks) for _ in self._names]
        for launch in launches:
            stack.push_async_callback(launch.close)
        return [
            SessionBrowser(name, launch, relaunch_urls=self._relaunch_urls)
            for name, launch in zip(self._names, launches, strict=True)
        ]
