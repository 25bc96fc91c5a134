"""Isolate tests that share a browser.

Only a persistent context can have an extension, and a browser has only one. So this provides what a
fresh context would: fresh pages, without the cookies, storage, permissions, routes and listeners of
the previous test. After anything that cannot be undone, the browser is not reused: the next test
gets a new one.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from playwright.sync_api import BrowserContext, CDPSession, Error, Frame, Page, StorageState

from opentabs_py.core.sites.origins import origin_of

BLANK = "about:blank"
# Methods of a context, of its clock and of its authenticator whose effects on all pages cannot be
# undone.
_IRREVERSIBLE = (
    "add_init_script",
    "expose_binding",
    "expose_function",
    "route_web_socket",
    "set_default_navigation_timeout",
    "set_default_timeout",
    "set_extra_http_headers",
    "set_geolocation",
    "set_offline",
)
_CLOCK = (
    "fast_forward",
    "install",
    "pause_at",
    "resume",
    "run_for",
    "set_fixed_time",
    "set_system_time",
)
_CREDENTIALS = ("create", "install")
# Methods of a context with which a test can change pages' permissions.
_PERMITTING = ("clear_permissions", "grant_permissions", "new_cdp_session")
_NO_STATE: Final[StorageState] = {"cookies": [], "origins": []}
_Listener = Callable[..., Any]


def pages_of(context: BrowserContext) -> list[Page]:
    """Return the pages of the test that runs: all but the first, which stays open between tests."""
    return context.pages[1:]


class Isolation:
    """Undoes what a test did to a browser.

    Args:
        context: The browser.
        permissions: The permissions that every test has.
        keeps_storage: The profile is the user's own, so its contents are kept.
        is_watched: There is a window, in which the user may grant permissions.

    Attributes:
        is_dirty: Whether the browser cannot be reused, because something cannot be undone.
    """

    def __init__(
        self,
        context: BrowserContext,
        *,
        permissions: Sequence[str],
        keeps_storage: bool,
        is_watched: bool,
    ) -> None:
        self.is_dirty = False
        self._is_watched = is_watched
        self._is_permitting = False
        self._is_signed_in = False
        self._context = context
        self._permissions = list(permissions)
        self._keeps_storage = keeps_storage
        self._origins: set[str] = set()
        self._listeners: list[tuple[str, _Listener]] = []
        self._home: tuple[Page, CDPSession] | None = None
        context.on("page", self._watch)
        for page in context.pages:
            self._watch(page)
        self._note_listeners()
        for target, names in (
            (context, _IRREVERSIBLE),
            (context.clock, _CLOCK),
            (context.credentials, _CREDENTIALS),
        ):
            for name in names:
                self._note(target, name, "is_dirty")
        for name in _PERMITTING:
            self._note(context, name, "_is_permitting")
        self._note(context, "set_storage_state", "_is_signed_in")

    def clean(self) -> None:
        """Undo everything; call this between tests."""
        context = self._context
        try:
            _, cdp = self._home_page()
            for page in context.pages:
                if self._home is None or page != self._home[0]:
                    page.close()
            context.unroute_all(behavior="ignoreErrors")
            self._remove_listeners()
            if self._is_permitting or self._is_watched:
                context.clear_permissions()
                if self._permissions:
                    context.grant_permissions(self._permissions)
                self._is_permitting = False
            if not self._keeps_storage:
                if self._is_signed_in:  # perhaps at sites that the test did not open
                    context.set_storage_state(_NO_STATE)
                    self._is_signed_in = False
                context.clear_cookies()
                if self._origins:
                    _clear_storage(cdp, self._origins)
        except Error:
            self.is_dirty = True  # the browser is gone, or hangs
        self._origins.clear()

    def _home_page(self) -> tuple[Page, CDPSession]:
        """Return the page that is always open: a browser with a window exits without one."""
        if self._home is not None and not self._home[0].is_closed() and self._home[0].url == BLANK:
            return self._home
        blank = next((page for page in self._context.pages if page.url == BLANK), None)
        page = blank or self._context.new_page()
        self._home = page, self._context.new_cdp_session(page)
        return self._home

    def _watch(self, page: Page) -> None:
        page.on("framenavigated", self._note_origin)

    def _note_origin(self, frame: Frame) -> None:
        if frame.url.startswith(("http://", "https://")):
            self._origins.add(origin_of(frame.url))

    def _note_listeners(self) -> None:
        for name in ("on", "once"):
            original = getattr(self._context, name)

            def listen(event: str, f: _Listener, *, original: _Listener = original) -> None:
                self._listeners.append((event, f))
                original(event, f)

            setattr(self._context, name, listen)

    def _remove_listeners(self) -> None:
        for event, listener in self._listeners:
            with suppress(KeyError):  # the test has already removed it
                self._context.remove_listener(event, listener)
        self._listeners.clear()

    def _note(self, target: object, name: str, what: str) -> None:
        """Wrap a method so that calling it sets one of our attributes."""
        original = getattr(target, name)

        def noted(*args: Any, **kwargs: Any) -> Any:
            setattr(self, what, True)
            return original(*args, **kwargs)

        setattr(target, name, noted)


def _clear_storage(cdp: Any, origins: Iterable[str]) -> None:
    for origin in origins:
        cdp.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    cdp.send("Network.clearBrowserCache")  # which all sites share
