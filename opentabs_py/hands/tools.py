"""The tools that see and use a page, as an agent calls them."""

import base64
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

import anyio
from mcp import types
from playwright.async_api import FloatRect, Locator, Page
from playwright.async_api import TimeoutError as LateError
from pydantic import BaseModel, Field

from opentabs_py.browser.driver import FAILURES
from opentabs_py.browser.urls import web_address
from opentabs_py.core import codes
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import shorten
from opentabs_py.errors import ToolError
from opentabs_py.hands.pages import Tab
from opentabs_py.hands.snapshot import MOST_TOKENS, changes
from opentabs_py.hands.using import ACT_WITHIN, PageUser
from opentabs_py.python_tools.declare import tool
from opentabs_py.python_tools.progress import Progress

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


class Hands(PageUser):
    """The tools."""

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
        page = (await self.find_tab(tabId)).page
        before = self.seen_in(page).shown
        text = await self.look(page, progress, ref, maxTokens, links=links, start=start)
        if changed and ref is None:
            text = changes(before, text) or "(nothing has changed)"
        return {**await self.about(page), "snapshot": text}

    @tool(title="Go to a page", annotations=_ACTS)
    async def page_navigate(
        self,
        progress: Progress,
        url: Annotated[str | None, Field(description="Where to go, if `action` is goto.")] = None,
        action: Literal["goto", "back", "forward", "reload"] = "goto",
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Open a URL in a tab, go back or forward, or reload its page."""
        page = (await self.find_tab(tabId)).page
        if (url is None) == (action == "goto"):
            raise ToolError("Pass `url`, or an `action` other than goto.", codes.INVALID_ARGUMENTS)
        try:
            address = "" if url is None else web_address(url)
        except ValueError as error:
            raise ToolError(f"Cannot use `url`: {error}.", codes.INVALID_ARGUMENTS) from None

        async def go() -> None:
            match action:
                case "back":
                    await page.go_back(timeout=30_000)
                case "forward":
                    await page.go_forward(timeout=30_000)
                case "reload":
                    await page.reload(timeout=30_000)
                case _:
                    await page.goto(address, timeout=30_000)

        return await self.act(page, progress, go)

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
        page = (await self.find_tab(tabId)).page
        element = await self.find_element(page, ref)

        async def click() -> None:
            await self.wait_usable(page, ref, element, "enabled")
            await element.click(
                click_count=2 if double else 1,
                button=button,
                modifiers=[*modifiers],
                timeout=ACT_WITHIN * 1000,
            )

        return await self.act(page, progress, click)

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
        page = (await self.find_tab(tabId)).page
        element = await self.find_element(page, ref)
        value = text if isinstance(text, str) else self.secret(text.secret)

        async def write() -> None:
            await self.wait_usable(page, ref, element, "editable")
            if slowly:
                await element.clear(timeout=ACT_WITHIN * 1000)
                await element.press_sequentially(value, timeout=ACT_WITHIN * 3000)
            else:
                await element.fill(value, timeout=ACT_WITHIN * 1000)
            if submit:
                await element.press("Enter", timeout=ACT_WITHIN * 1000)

        return await self.act(page, progress, write)

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
        page = (await self.find_tab(tabId)).page
        element = None if ref is None else await self.find_element(page, ref)

        async def press() -> None:
            if element is None:
                await page.keyboard.press(key)
            else:
                await element.press(key, timeout=ACT_WITHIN * 1000)

        return await self.act(page, progress, press)

    @tool(title="Choose an option", annotations=_ACTS)
    async def page_select(
        self,
        progress: Progress,
        ref: Ref,
        values: Annotated[Sequence[str], Field(description="Labels or values of the options.")],
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Choose options of a list; return what changed."""
        page = (await self.find_tab(tabId)).page
        element = await self.find_element(page, ref)

        async def select() -> None:
            await self.wait_usable(page, ref, element, "enabled")
            await self.select(page, ref, element, values)

        return await self.act(page, progress, select)

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
        page = (await self.find_tab(tabId)).page
        element = await self.find_element(page, ref)
        paths = [self.file(each) for each in files]

        async def upload() -> None:
            await self.wait_usable(page, ref, element, "enabled")
            # Not `evaluate`, for which Playwright uses what the page may have replaced.
            if await element.and_(page.locator("input[type=file]")).count():
                await element.set_input_files(paths, timeout=ACT_WITHIN * 1000)
                return
            async with page.expect_file_chooser(timeout=ACT_WITHIN * 1000) as opened:
                await element.click(timeout=ACT_WITHIN * 1000)
            await (await opened.value).set_files(paths)

        return await self.act(page, progress, upload)

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
        page = (await self.find_tab(tabId)).page
        if (text, gone, url).count(None) != 2:
            raise ToolError("Pass one of `text`, `gone` and `url`.", codes.INVALID_ARGUMENTS)
        waited_for = text or gone or url or ""

        async def wait() -> None:
            timeout = seconds * 1000
            if url is not None:
                await page.wait_for_url(lambda each: waited_for in each, timeout=timeout)
                return
            state: Literal["visible", "hidden"] = "visible" if text is not None else "hidden"
            await page.get_by_text(waited_for).first.wait_for(state=state, timeout=timeout)

        progress.report(f"Waiting for {shorten(waited_for, 60)}")
        return await self.act(page, progress, wait)

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
        page = (await self.find_tab(tabId)).page
        progress.heartbeat()
        self.check_dialog(page)
        element = None if ref is None else await self.find_element(page, ref)
        try:
            async with self.pages.as_active(page):
                try:
                    data = await take_screenshot(page, element, full=full, within=SCREENSHOT_WITHIN)
                except LateError:  # of a tab in the background, often only the next succeeds
                    data = await take_screenshot(page, element, full=full, within=ACT_WITHIN)
        except FAILURES as error:
            raise self.failed(error) from None
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
        page = (await self.find_tab(tabId)).page
        watched, seen = self.pages.watched(page), self.seen_in(page)
        fresh = watched.lines if all else watched.lines - seen.lines
        seen.lines = watched.lines
        shown = [*watched.console][-fresh:] if fresh else []
        return {
            "messages": [
                {"type": kind, "text": shorten(self.masked(text), 1_000)} for kind, text in shown
            ]
        }

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
        page = (await self.find_tab(tabId)).page
        watched, seen = self.pages.watched(page), self.seen_in(page)
        if request is not None:
            found = next((each for each in watched.network if each.number == request), None)
            if found is None:
                raise ToolError(
                    f"Request {request} is no longer kept. List the requests again.",
                    codes.NOT_FOUND,
                )
            return await self.bodies(found.request)
        shown = [each for each in watched.network if all or each.number > seen.requests]
        seen.requests = watched.requests
        listed: list[dict[str, Any]] = []
        for each in shown:
            # Not `response()`, which asks the page; it may be closed.
            response = None if each.failure else each.request.existing_response
            listed.append(
                {
                    "request": each.number,
                    "method": each.request.method,
                    "url": shorten(self.masked(each.request.url), 300),
                    "type": each.request.resource_type,
                    "status": None if response is None else response.status,
                    **({"failure": each.failure} if each.failure else {}),
                }
            )
        return {"requests": listed}

    @tool(title="Answer a dialog", annotations=_ACTS)
    async def page_dialog(
        self,
        progress: Progress,
        accept: bool,
        text: Annotated[str | None, Field(description="The answer to a prompt.")] = None,
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Accept or dismiss the dialog of a page, such as an alert or a prompt."""
        page = (await self.find_tab(tabId)).page
        watched = self.pages.watched(page)
        dialog = watched.dialog
        watched.handle_closed()
        if dialog is None:
            raise ToolError("The page has no dialog open.", codes.NO_DIALOG)

        async def answer() -> None:
            if accept:
                await (dialog.accept() if text is None else dialog.accept(text))
            else:
                await dialog.dismiss()

        return await self.act(page, progress, answer)

    async def list_tabs(self, client: SessionKey | None) -> Sequence[dict[str, Any]]:
        """Return all tabs that a client may name, as `tabs_list` does."""
        owners = self.owners()
        tabs = [each for each in await self.pages.tabs() if owners.may_name(client, each.number)]
        found: dict[int, dict[str, Any]] = {}

        async def describe(tab: Tab) -> None:
            found[tab.number] = await self.about(tab.page)

        async with anyio.create_task_group() as tasks:
            for tab in tabs:
                tasks.start_soon(describe, tab)
        return [
            {"tabId": tab.number, **found[tab.number], "active": tab.active, "plugins": []}
            for tab in tabs
        ]


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
