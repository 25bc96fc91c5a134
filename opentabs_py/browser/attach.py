"""Load the extension into a running browser, then disconnect.

The debugging connection lasts only as long as loading takes. From then on, the browser is reached
by the extension alone, so nothing else of it can be read or controlled. For hands, which use pages
that no plugin covers, it is kept.
"""

import json
import logging
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
from playwright.async_api import BrowserContext
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, WebSocketException

from opentabs_py.browser.debugging import LOAD, LOAD_WITHIN, RefusedError, debug
from opentabs_py.browser.discovery import HOW_TO_ALLOW, Attach, DebuggingEndpoint, find_endpoint
from opentabs_py.errors import BrowserError

logger = logging.getLogger(__name__)

LOOK_AGAIN: Final = 1.0  # s; how often a running browser is looked for
LOOKS_FOR_EXTENSION: Final = 10  # one that reloads, or whose browser is busy, comes back before
REMIND_AFTER: Final = 30.0  # s without an answer to the browser's question
CONNECTS_WITHIN: Final = 5.0  # s; an extension that was just loaded takes a tenth of one
_AGAIN: Final = "To be asked again, restart this server or the browser."
_TURNED_OFF: Final = (
    "{} is running, but the extension in it does not connect. If you have turned it off or removed "
    "it, turn it on again on chrome://extensions, or restart this server."
)
KNOWN_BY: Final = 3.0  # s; an extension that is loaded already tries to connect once a second


async def load_extension(endpoint: DebuggingEndpoint, extension: Path) -> None:
    """Load an unpacked extension into a running browser, once its user has allowed it.

    The browser asks "Allow remote debugging?". The question has no time limit.

    Not through Playwright, as `Debugged.load` does it: that would attach to every page of the user,
    and needs a process of its own.

    Raises:
        RefusedError: The user pressed Cancel.
        BrowserError: The browser went away, or did not load the extension.
    """
    try:
        # Not through a proxy; and the browser answers when its user does.
        async with connect(endpoint.url, open_timeout=None, proxy=None, max_size=None) as socket:
            request = {"id": 1, "method": LOAD, "params": {"path": str(extension)}}
            await socket.send(json.dumps(request))
            answer: dict[str, Any] = {}
            with anyio.fail_after(LOAD_WITHIN):
                while answer.get("id") != 1:
                    answer = json.loads(await socket.recv())
    except InvalidHandshake as error:
        raise RefusedError(endpoint) from error
    except (OSError, WebSocketException, TimeoutError) as error:
        raise BrowserError(f"{endpoint.browser} closed the connection: {error}") from error
    if "error" in answer:
        why = answer["error"].get("message", answer["error"])
        raise BrowserError(f"{endpoint.browser} did not load the extension: {why}")


class Link(Protocol):
    """The link to an extension."""

    @property
    def connected(self) -> bool:
        """Whether it is connected."""
        ...

    async def wait_connected(self) -> None:
        """Wait until it is connected."""
        ...

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of the connection."""
        ...


class Attachment:
    """Keeps the extension loaded in a running browser, across the browser's restarts.

    Args:
        extension: The staged extension; always in the same place, so that an extension that an
            earlier server left behind finds this one.
        link: The link to the extension.
        options: Which browser.
        show: Called with what the user should do now, whenever that changes; with an empty text
            when there is nothing to do.
        on_driven: Called when the browser can be driven. With it, the debugging connection is kept.

    Attributes:
        context: The browser's pages, while the debugging connection is kept.
    """

    def __init__(
        self,
        extension: Path,
        link: Link,
        options: Attach,
        *,
        show: Callable[[str], None],
        on_driven: Callable[[BrowserContext], None] | None = None,
    ) -> None:
        self.context: BrowserContext | None = None
        self._extension = extension
        self._link = link
        self._options = options
        self._show = show
        self._on_driven = on_driven
        self._shown = ""
        # This file exists while a browser may have the extension: an earlier server may have been
        # told to leave it there, or may have been killed.
        self._mark = extension.with_name(f"{extension.name}.loaded")

    @property
    def lacks_context(self) -> bool:
        """Whether the debugging connection should be kept, but is not there."""
        return self._on_driven is not None and self.context is None

    def handle_removed(self) -> None:
        """Remove what is left of the extension, which was removed from the browser."""
        self._mark.unlink(missing_ok=True)
        shutil.rmtree(self._extension, ignore_errors=True)

    async def run(self) -> None:
        """Load the extension whenever the browser lacks it, until cancelled.

        The user is asked once for each start of the browser: after a refusal, no more. A browser
        that is suspended may seem to be gone, but has the same URL afterwards.
        """
        settled: DebuggingEndpoint | None = None  # where the extension was loaded, or refused
        said = ""  # then
        looks = 0  # since then, or since the extension was connected
        if self._mark.exists() and not self.lacks_context:
            with anyio.move_on_after(KNOWN_BY):
                await self._link.wait_connected()
        while True:
            try:
                endpoint = await self._find()
            except BrowserError as error:
                self._say(str(error))
            else:
                looks += 1
                if self._link.connected and not self.lacks_context:
                    self._say("")
                    settled, said, looks = endpoint or settled, "", 0
                elif endpoint is None:
                    place = self._options.user_data_dir
                    which = "" if place is None else f" with the user data directory {place}"
                    self._say(
                        f"No running browser{which} allows debugging. {HOW_TO_ALLOW} Waiting."
                    )
                elif endpoint != settled:
                    await self._use(endpoint)
                    settled, said, looks = endpoint, self._shown, 0
                elif said or looks >= LOOKS_FOR_EXTENSION:
                    self._say(said or _TURNED_OFF.format(endpoint.browser))
            while self._link.connected and not self.lacks_context:
                await self._link.changed().wait()
            await anyio.sleep(LOOK_AGAIN)

    async def _find(self) -> DebuggingEndpoint | None:
        options = self._options
        return await anyio.to_thread.run_sync(find_endpoint, options.user_data_dir, options.cdp)

    async def _use(self, endpoint: DebuggingEndpoint) -> None:
        """Load the extension; for hands, keep the connection until it ends."""
        try:
            if self._on_driven is None:
                async with self._asking(endpoint):
                    await load_extension(endpoint, self._extension)
                self._handle_loaded(endpoint)
            else:
                await self._keep(endpoint, self._on_driven)
        except RefusedError as error:
            self._say(f"{error} {_AGAIN}")
        except BrowserError as error:
            self._say(str(error))

    async def _keep(
        self, endpoint: DebuggingEndpoint, on_driven: Callable[[BrowserContext], None]
    ) -> None:
        async with AsyncExitStack() as stack:
            async with self._asking(endpoint):
                browser = await stack.enter_async_context(debug(endpoint))
            on_driven(browser.context)
            # Again, if an earlier server has left it: without hands, that one cannot say which
            # page is which tab.
            await browser.load(self._extension)
            with anyio.move_on_after(CONNECTS_WITHIN):
                await self._link.wait_connected()
            self.context = browser.context
            try:
                self._handle_loaded(endpoint)
                await browser.wait_gone()
            finally:
                self.context = None
            # Before the connection is let go, which may take long: calls say this meanwhile.
            self._say(
                f"{endpoint.browser} has closed the debugging connection, which hands need; "
                f"plugins do not. {_AGAIN}"
            )

    def _handle_loaded(self, endpoint: DebuggingEndpoint) -> None:
        self._mark.touch()
        self._say("")
        logger.info("%s has loaded the extension", endpoint.browser)

    @asynccontextmanager
    async def _asking(self, endpoint: DebuggingEndpoint) -> AsyncGenerator[None]:
        """Ask the user to answer the browser's question, and remind them until they have."""
        self._say(f'{endpoint.browser} asks "Allow remote debugging?". Click Allow there.')
        failure: BrowserError | None = None  # which the task group would wrap
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._remind, endpoint)
            try:
                yield
            except BrowserError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _remind(self, endpoint: DebuggingEndpoint) -> None:
        while True:
            await anyio.sleep(REMIND_AFTER)
            self._show(f"{endpoint.browser} still asks. Click Allow there.")

    def _say(self, text: str) -> None:
        if text != self._shown:
            self._shown = text
            self._show(text)
