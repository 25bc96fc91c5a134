"""Set up the browsers of a session: the extension of each, the link to it, and its launch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.discovery import Attach
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.browser.signed_in import read_sign_in
from opentabs_py.browser.stage import StagedExtension, kept_secret, stage_extension
from opentabs_py.browser.switches import configured_sandbox
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.config.paths import data_dir
from opentabs_py.config.settings import Settings
from opentabs_py.core.page_tools import PageRegistrations
from opentabs_py.directories import create_private
from opentabs_py.errors import BrowserError
from opentabs_py.session.browsers.browser import SessionBrowser
from opentabs_py.session.browsers.webmcp import browser_features
from opentabs_py.session.seams import Seams


@dataclass(frozen=True, slots=True)
class BrowserPlan:
    """How the browsers of a session are started, and told apart.

    Attributes:
        profiles: Their profile directories by name, if not that of the settings.
        args: More command-line switches for Chromium.
        ignore_default_args: Playwright switches to leave out.
        by_hand: The user loads the extension into their own browser.
        attach: The running browser that it is loaded into, if that is done.
        interchangeable: Whether any of the browsers may take any call.
    """

    profiles: Mapping[str, Path]
    args: Sequence[str]
    ignore_default_args: Sequence[str]
    by_hand: bool
    attach: Attach | None
    interchangeable: bool

    @property
    def in_place(self) -> bool:
        """Whether the extension stays where it is, for browsers that keep it."""
        return self.by_hand or self.attach is not None


class BrowserSetup:
    """Sets up the browsers of a session.

    Args:
        settings: Where to connect to, what to launch.
        options: How they are started.
        clock: The clock of the calls' timers.
        seams: Where tests take the place of the chain's parts.
        sites: Match patterns of the sites that plugins need.
        port: The server's port.
        guide_url: The page that guides through loading the extension by hand, if that is done.

    Attributes:
        extensions: The extension of each browser that was set up.
    """

    def __init__(
        self,
        settings: Settings,
        options: BrowserPlan,
        *,
        clock: AlarmClock,
        seams: Seams,
        sites: Sequence[str],
        port: int,
        guide_url: str | None,
    ) -> None:
        self._settings = settings
        self._options = options
        self._clock = clock
        self._seams = seams
        self._sites = sites
        self._port = port
        self._guide_url = guide_url
        self.extensions: list[StagedExtension] = []

    def set_up(self, browsers: Sequence[SessionBrowser], directory: Path) -> None:
        """Create the link to each browser, and let those that are to be launched start.

        Args:
            browsers: The browsers.
            directory: For everything that is removed with the session.

        Raises:
            BrowserError: There is no Chromium, or the extension cannot be written.
            ConfigError: There is no such saved sign-in, or it cannot be decrypted.
        """
        in_place = self._options.in_place
        is_launched = any(browser.launch is not None for browser in browsers)
        chromium = configured_chromium(self._settings) if is_launched else None
        signed_in = self._settings.signed_in
        sign_in = None if signed_in is None else read_sign_in(signed_in)
        for index, browser in enumerate(browsers):
            # None within another's: a browser's end is that of all that runs in its directory.
            scratch = directory / str(index) if len(browsers) > 1 else directory
            try:
                extension = self._stage_in_place() if in_place else self._stage(scratch)
            except OSError as error:
                raise BrowserError(
                    f"Cannot write {error.filename}: {error.strerror}. The extension is "
                    "copied there, so the directory must be yours and have some space left."
                ) from error
            self.extensions.append(extension)
            browser.bridge = self._link(extension, browser.name, index)
            if browser.launch is not None and chromium is not None:
                browser.sign_in = sign_in
                browser.launch.set_plan(self._plan(browser.name, extension, chromium, scratch))

    def join(self, name: str, index: int) -> SessionBrowser:
        """Return one more browser, into which the user has loaded the extension."""
        browser = SessionBrowser(name, None, relaunch_urls=None)
        browser.bridge = self._link(self.extensions[0], name, index)
        return browser

    def _link(self, extension: StagedExtension, name: str, index: int) -> Bridge:
        bridge = Bridge(
            page_tools=PageRegistrations() if self._settings.webmcp else None,
            secret=extension.secret,
            origin=extension.origin,
            message_limit=self._settings.message_limit,
            clock=self._clock,
            wrap_socket=self._seams.wrap_socket,
            name=name,
            number=self._seams.first_number + index,
        )
        if self._guide_url is not None:
            bridge.tabs.advice = f"{self._guide_url} shows how to load it into your browser."
        return bridge

    def _plan(
        self, name: str, extension: StagedExtension, chromium: Path, scratch: Path
    ) -> LaunchPlan:
        settings, options = self._settings, self._options
        # Equal browsers cannot share one profile.
        profile = options.profiles.get(name, None if options.interchangeable else settings.profile)
        return LaunchPlan(
            chromium=chromium,
            extension=extension.path,
            profile=profile or scratch / "profile",
            scratch=scratch,
            headed=settings.headed,
            sandbox=configured_sandbox(settings),
            keeps_profile=profile is not None,
            args=options.args,
            ignore_default_args=options.ignore_default_args,
            features=browser_features(settings),
        )

    def _stage(self, scratch: Path) -> StagedExtension:
        extension = stage_extension(
            scratch / "extension",
            port=self._port,
            host=self._settings.url_host,
            sites=self._sites,
            relay_script=self._seams.relay_script,
        )
        return self._permitted(extension)

    def _stage_in_place(self) -> StagedExtension:
        """Stage the extension where it was the last time, with the secret that it had.

        The one that is loaded by hand has to serve future plugins, so it keeps access to all sites.
        """
        attach = self._options.attach
        if attach is None:
            kept = data_dir() / "extension"
            secret_file = data_dir() / "secret"
        else:
            kept = data_dir() / attach.directory_name
            secret_file = kept / "secret"
        create_private(kept)
        extension = stage_extension(
            kept,
            port=self._port,
            host=self._settings.url_host,
            secret=kept_secret(secret_file),
            sites=None if attach is None else self._sites,
            reloads=attach is None,
        )
        return extension if attach is None else self._permitted(extension)

    def _permitted(self, extension: StagedExtension) -> StagedExtension:
        if self._settings.hands:
            extension.permit("debugger")  # it says which page is which tab; nothing is debugged
        return extension
