"""The tools that see and use a page, as an agent calls them."""

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio
from mcp import types
from playwright.async_api import Error, FloatRect, Locator, Page
from playwright.async_api import TimeoutError as LateError
from pydantic import BaseModel, Field

from opentabs_py.browser.driver import FAILURES
from opentabs_py.browser.urls import web_address
from opentabs_py.calling.client import CallClient
from opentabs_py.core import codes
from opentabs_py.core.questions import NOWHERE, Place
from opentabs_py.core.tabs.owners import SessionKey, TabOwners
from opentabs_py.core.text import shorten
from opentabs_py.errors import ChainError, ToolError
from opentabs_py.hands.drawn_inputs import find_clickable
from opentabs_py.hands.network import describe_bodies, describe_request
from opentabs_py.hands.pages import HandPages, Tab
from opentabs_py.hands.secrets import Secrets
from opentabs_py.hands.snapshot import MOST_TOKENS
from opentabs_py.hands.tabs import ClientTabs
from opentabs_py.hands.used_page import ACT_WITHIN, UsedPage, about, own_page
from opentabs_py.hands.waiting import wait_loaded, wait_shown
from opentabs_py.python_tools.declare import tool
from opentabs_py.python_tools.progress import Progress
from opentabs_py.python_tools.run import current_run

SCREENSHOT_WITHIN: Final = 3.0  # s; takes a tenth of a second
_LONGEST_SIDE: Final = 8_000  # pixels of a screenshot of a whole page
_READS: Final = {"readOnlyHint": True, "openWorldHint": True}
_ACTS: Final = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}

TabId = Annotated[
    int | None,
    Field(description="The tab, from tabs_list. Default: your own tab, or the active one."),
]
Ref = Annotated[str, Field(description="The element's reference in the last snapshot, as in e12.")]
Everything = Annotated[
    bool, Field(description="Return everything that is kept, not only what is new to you.")
]


class Secret(BaseModel, extra="forbid"):
    """A secret by its name, whose value only the server knows."""

    secret: str


class Hands:
    """The tools.

    Args:
        pages: The pages.
        owners: Returns which tabs belong to which clients.
        secrets: The secrets that may be typed.
        files: The directory from which files may be uploaded; by default, the current one.
    """

    def __init__(
        self,
        pages: HandPages,
        owners: Callable[[], TabOwners],
        *,
        secrets: Secrets,
        files: Path | None = None,
    ) -> None:
        self.pages = pages
        self._tabs = ClientTabs(pages, owners)
        self._secrets = secrets
        self._files = (files or Path.cwd()).resolve()

    @property
    def functions(self) -> Sequence[Callable[..., Any]]:
        """The tools, as functions."""
        return [
            self.page_snapshot, self.page_navigate, self.page_click, self.page_type,
            self.page_press, self.page_select, self.page_upload, self.page_wait_for,
            self.page_screenshot, self.page_console, self.page_network, self.page_dialog,
        ]  # fmt: skip

    @tool(title="Look at a page", annotations=_READS)
    async def page_snapshot(
        self,
        progress: Progress,
        tabId: TabId = None,
        ref: Annotated[
            str | None, Field(description="Show only this element. Default: the whole page.")
        ] = None,
        start: Annotated[int, Field(ge=0, description="Begin with this entry of its list.")] = 0,
        changed: Annotated[
            bool, Field(description="Show only what is new since the last snapshot.")
        ] = False,
        links: Annotated[bool, Field(description="Include the URLs of links.")] = False,
        maxTokens: Annotated[
            int, Field(ge=200, le=100_000, description="The largest size of the snapshot.")
        ] = MOST_TOKENS,
    ) -> dict[str, Any]:
        """Return what a page shows, as a tree of its elements; interactive ones have a reference.

        Long lists are folded; the text says how to open them. All texts come from the page.
        """
        used = await self.use(tabId, progress)
        before = used.seen.page
        text = await used.look(ref, maxTokens, links=links, start=start)
        if changed and ref is None:
            text = used.changes_since(before, maxTokens) or "(nothing has changed)"
        return {**await used.about(), "snapshot": text}

    @tool(title="Go to a page", annotations=_ACTS)
    async def page_navigate(
        self,
        progress: Progress,
        url: Annotated[str | None, Field(description="Where to go, if `action` is goto.")] = None,
        action: Literal["goto", "back", "forward", "reload"] = "goto",
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Open a URL in a tab, go back or forward, or reload its page."""
        used = await self.use(tabId, progress)
        if (url is None) == (action == "goto"):
            raise ToolError("Pass `url`, or an `action` other than goto.", codes.INVALID_ARGUMENTS)
        try:
            address = "" if url is None else web_address(url)
        except ValueError as error:
            raise ToolError(f"Cannot use `url`: {error}.", codes.INVALID_ARGUMENTS) from None
        if self.pages.is_own(address):
            raise own_page()

        async def go() -> None:
            match action:
                case "back":
                    await used.page.go_back(wait_until="commit", timeout=30_000)
                    await wait_loaded(used.page)
                case "forward":
                    await used.page.go_forward(wait_until="commit", timeout=30_000)
                    await wait_loaded(used.page)
                case "reload":
                    await used.page.reload(timeout=30_000)
                case _:
                    try:
                        await used.page.goto(address, timeout=30_000)
                    except Error as error:
                        if "Download is starting" not in str(error):
                            raise

        return await used.act(go)

    @tool(title="Click", annotations=_ACTS)
    async def page_click(
        self,
        progress: Progress,
        ref: Ref,
        tabId: TabId = None,
        double: Annotated[bool, Field(description="Click twice.")] = False,
        button: Annotated[
            Literal["left", "right", "middle"], Field(description="The mouse button.")
        ] = "left",
        modifiers: Annotated[
            Sequence[Literal["Alt", "Control", "Meta", "Shift"]],
            Field(description="Keys that are held down."),
        ] = (),
    ) -> dict[str, Any]:
        """Click an element, when it is visible and nothing covers it; return what changed."""
        used = await self.use(tabId, progress)
        element = await used.find_element(ref)

        async def click() -> None:
            await used.wait_usable(ref, element, "enabled")
            clickable, position = await find_clickable(element, used.page)
            await clickable.click(
                click_count=2 if double else 1,
                button=button,
                modifiers=[*modifiers],
                position=position,
                timeout=ACT_WITHIN * 1000,
            )

        return await used.act(click)

    @tool(title="Type", annotations=_ACTS)
    async def page_type(
        self,
        progress: Progress,
        ref: Ref,
        text: Annotated[
            str | Secret,
            Field(description='The text, or {"secret": NAME} for one that only the server knows.'),
        ],
        tabId: TabId = None,
        submit: Annotated[bool, Field(description="Press Enter after it.")] = False,
        slowly: Annotated[
            bool, Field(description="Type key by key, for pages that react to each key.")
        ] = False,
    ) -> dict[str, Any]:
        """Replace the text of a field; return what changed."""
        used = await self.use(tabId, progress)
        element = await used.find_element(ref)

        async def write() -> None:
            await used.wait_usable(ref, element, "editable")
            if isinstance(text, str):
                value = text
            else:
                value = await used.prepare_secret(text.secret, element)
            if slowly:
                await element.clear(timeout=ACT_WITHIN * 1000)
                await element.press_sequentially(value, timeout=ACT_WITHIN * 3000)
            else:
                await element.fill(value, timeout=ACT_WITHIN * 1000)
            if submit:
                await element.press("Enter", timeout=ACT_WITHIN * 1000)

        return await used.act(write)

    @tool(title="Press a key", annotations=_ACTS)
    async def page_press(
        self,
        progress: Progress,
        key: Annotated[str, Field(description="Such as Enter, Escape, ArrowDown or Control+A.")],
        ref: Annotated[
            str | None,
            Field(description="The element to press it on. Default: the focused element."),
        ] = None,
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Press a key; return what changed."""
        used = await self.use(tabId, progress)
        element = None if ref is None else await used.find_element(ref)

        async def press() -> None:
            if not key.isascii() and "+" not in key:  # a character, which is on no key for Chromium
                if element is not None:
                    await element.focus(timeout=ACT_WITHIN * 1000)
                await used.page.keyboard.insert_text(key)
            elif element is None:
                await used.page.keyboard.press(key)
            else:
                await element.press(key, timeout=ACT_WITHIN * 1000)

        return await used.act(press)

    @tool(title="Choose an option", annotations=_ACTS)
    async def page_select(
        self,
        progress: Progress,
        ref: Ref,
        values: Annotated[Sequence[str], Field(description="Labels or values of the options.")],
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Choose options of a list; return what changed."""
        used = await self.use(tabId, progress)
        element = await used.find_element(ref)

        async def select() -> None:
            await used.wait_usable(ref, element, "enabled")
            await used.select(ref, element, values)

        return await used.act(select)

    @tool(title="Upload files", annotations=_ACTS)
    async def page_upload(
        self,
        progress: Progress,
        ref: Ref,
        files: Annotated[
            Sequence[str], Field(description="Paths below the directory that the server runs in.")
        ],
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Choose files in a field, or with the button that opens the file chooser.

        Return what changed.
        """
        used = await self.use(tabId, progress)
        element = await used.find_element(ref)
        paths = [self._find_file(each) for each in files]

        async def upload() -> None:
            await used.wait_usable(ref, element, "enabled")
            # Not `evaluate`, for which Playwright uses what the page may have replaced.
            if await element.and_(used.page.locator("input[type=file]")).count():
                await element.set_input_files(paths, timeout=ACT_WITHIN * 1000)
                return
            async with used.page.expect_file_chooser(timeout=ACT_WITHIN * 1000) as opened:
                await element.click(timeout=ACT_WITHIN * 1000)
            await (await opened.value).set_files(paths)

        return await used.act(upload)

    @tool(title="Wait", annotations=_READS, ceiling=300)
    async def page_wait_for(
        self,
        progress: Progress,
        text: Annotated[str | None, Field(description="Until this is shown.")] = None,
        gone: Annotated[str | None, Field(description="Until this is no longer shown.")] = None,
        url: Annotated[str | None, Field(description="Until the URL contains this.")] = None,
        seconds: Annotated[float, Field(gt=0, le=240, description="The longest wait.")] = 10.0,
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Wait until a page shows something; return what has changed since the call began."""
        used = await self.use(tabId, progress)
        if (text, gone, url).count(None) != 2:
            raise ToolError("Pass one of `text`, `gone` and `url`.", codes.INVALID_ARGUMENTS)
        waited_for = text or gone or url or ""

        async def wait() -> None:
            timeout = seconds * 1000
            if url is not None:
                await used.page.wait_for_url(
                    lambda each: waited_for in each, timeout=timeout, wait_until="commit"
                )
                return
            await wait_shown(used.page, waited_for, shown=text is not None, within=seconds)

        progress.report(f"Waiting for {shorten(waited_for, 60)}")
        return await used.act(wait)

    @tool(title="Take a screenshot", annotations=_READS)
    async def page_screenshot(
        self,
        progress: Progress,
        ref: Annotated[str | None, Field(description="Only this element.")] = None,
        full: Annotated[
            bool,
            Field(description="The whole page, up to 8,000 pixels, not only what is in view."),
        ] = False,
        tabId: TabId = None,
    ) -> types.ImageContent:
        """Return a screenshot of a page, as JPEG."""
        used = await self.use(tabId, progress)
        progress.heartbeat()
        used.check_dialog()
        element = None if ref is None else await used.find_element(ref)
        try:
            async with self.pages.as_active(used.page):
                try:
                    data = await take_screenshot(
                        used.page, element, full=full, within=SCREENSHOT_WITHIN
                    )
                except LateError:  # of a tab in the background, often only the next succeeds
                    data = await take_screenshot(used.page, element, full=full, within=ACT_WITHIN)
        except FAILURES as error:
            raise used.failed(error) from None
        text = base64.b64encode(data).decode()
        return types.ImageContent(type="image", data=text, mime_type="image/jpeg")

    @tool(title="Read the console", annotations=_READS)
    async def page_console(
        self,
        progress: Progress,
        all: Everything = False,  # noqa: A002
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Return what a page wrote to its console, and its uncaught errors."""
        progress.heartbeat()
        used = await self.use(tabId, progress)
        watched, seen = used.watched, used.seen
        fresh = watched.lines if all else watched.lines - seen.lines
        seen.lines = watched.lines
        shown = [*watched.console][-fresh:] if fresh else []
        return {"messages": [{"type": kind, "text": text} for kind, text in shown]}

    @tool(title="Read the network", annotations=_READS)
    async def page_network(
        self,
        progress: Progress,
        request: Annotated[
            int | None, Field(description="Return the bodies of the request of this number.")
        ] = None,
        all: Everything = False,  # noqa: A002
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Return the requests of a page, or the bodies of one of them."""
        progress.heartbeat()
        used = await self.use(tabId, progress)
        watched, seen = used.watched, used.seen
        if request is not None:
            found = next((each for each in watched.network if each.number == request), None)
            if found is None:
                raise ToolError(
                    f"Request {request} is no longer kept. List the requests again.",
                    codes.NOT_FOUND,
                )
            return await describe_bodies(found.request, self._secrets.mask)
        shown = [each for each in watched.network if all or each.number > seen.requests]
        seen.requests = watched.requests
        return {"requests": [describe_request(each, self._secrets.mask) for each in shown]}

    @tool(title="Answer a dialog", annotations=_ACTS)
    async def page_dialog(
        self,
        progress: Progress,
        accept: bool,
        text: Annotated[str | None, Field(description="The answer to a prompt.")] = None,
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Accept or dismiss the dialog of a page, such as an alert or a prompt."""
        used = await self.use(tabId, progress)
        watched = used.watched
        dialog = watched.dialog
        used.check_asked_dialog()
        watched.handle_closed()
        if dialog is None:
            raise ToolError("The page has no dialog open.", codes.NO_DIALOG)

        async def answer() -> None:
            if accept:
                await (dialog.accept() if text is None else dialog.accept(text))
            else:
                await dialog.dismiss()

        return await used.act(answer)

    async def list_tabs(self, client: SessionKey | None) -> Sequence[dict[str, Any]]:
        """Return all tabs that a client may name, as `tabs_list` does."""
        tabs = await self._tabs.named_by(client)
        found: dict[int, dict[str, Any]] = {}

        async def describe(tab: Tab) -> None:
            found[tab.number] = await about(tab.page, self._secrets.mask)

        async with anyio.create_task_group() as tasks:
            for tab in tabs:
                tasks.start_soon(describe, tab)
        return [
            {"tabId": tab.number, **found[tab.number], "active": tab.active, "plugins": []}
            for tab in tabs
        ]

    async def find_place(
        self, number: int | None, ref: str | None, caller: CallClient | None
    ) -> Place:
        """Return where a call would act, as far as that is known.

        Args:
            number: The tab that it names, if it names one.
            ref: The reference of its element, if it has one.
            caller: The client that makes it.
        """
        try:
            used = await self._use(number, caller, lambda: None)
        except (ToolError, ChainError):  # the call fails with it, if it is allowed
            return NOWHERE
        return await used.find_place(ref or "")

    async def use(self, number: int | None, progress: Progress) -> UsedPage:
        """Return the page that the running call uses.

        Args:
            number: The number of its tab, if the call names one.
            progress: Keeps the call from timing out.

        Raises:
            ToolError: There is no such tab, or it belongs to another client.
        """
        run = current_run.get()
        if run is None:
            return await self._use(number, None, progress.heartbeat)
        used = await self._use(number, run.client, progress.heartbeat)
        if run.place is not None:
            used.stay_on(run.place, run.tool)
        return used

    async def _use(
        self, number: int | None, caller: CallClient | None, heartbeat: Callable[[], None]
    ) -> UsedPage:
        client = None if caller is None else caller.session_key
        tab = await self._tabs.find(number, client)
        seen_by = "" if caller is None else client  # all code in this process has seen the same
        return UsedPage(tab, self.pages, seen_by, secrets=self._secrets, heartbeat=heartbeat)

    def _find_file(self, path: str) -> Path:
        """Return a file that may be uploaded.

        Raises:
            ToolError: It is not there, or not below the directory.
        """
        file = (self._files / path).resolve()
        if not file.is_relative_to(self._files) or not file.is_file():
            raise ToolError(
                f"{path} is not a file in the server's working directory.", codes.NOT_FOUND,
                category="not_found",
            )  # fmt: skip
        return file


async def take_screenshot(
    page: Page, element: Locator | None, *, full: bool, within: float
) -> bytes:
    """Return a screenshot of an element, of what is in view, or of the full page, as JPEG."""
    timeout = within * 1000
    if element is not None:
        return await element.screenshot(type="jpeg", quality=70, scale="css", timeout=timeout)
    # Of a smaller page, Playwright trims it.
    clip = FloatRect(x=0, y=0, width=_LONGEST_SIDE, height=_LONGEST_SIDE) if full else None
    return await page.screenshot(
        type="jpeg", quality=70, scale="css", full_page=full, clip=clip, timeout=timeout
    )
