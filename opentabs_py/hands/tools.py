"""The tools that see and use a page, as an agent calls them."""

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio
from mcp import types
from playwright.async_api import Dialog, Error, Locator, Page
from pydantic import BaseModel, Field

from opentabs_py.core.tab_owners import TabOwners
from opentabs_py.core.text import one_line, shorten
from opentabs_py.core.tokens import first_tokens, is_longer
from opentabs_py.errors import ConfigError, ToolError
from opentabs_py.hands.pages import HandPages, Tab, Waiting, Watched, action_failed
from opentabs_py.hands.snapshot import MOST_TOKENS, changes, render
from opentabs_py.hands.tree import Node, parse
from opentabs_py.python_tools.declare import tool
from opentabs_py.python_tools.progress import Progress
from opentabs_py.python_tools.run import current_run

ACT_WITHIN: Final = 10.0  # s; for an element to be there, visible, and not covered
SETTLE_WITHIN: Final = 0.3  # s; for what an action changes, before the page is looked at again
CHANGED_TOKENS: Final = 1_500
BODY_TOKENS: Final = 5_000
_LONGEST_SIDE: Final = 8_000  # pixels of a picture of a whole page
_READS: Final = {"readOnlyHint": True, "openWorldHint": True}
_ACTS: Final = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}

TabId = Annotated[
    int | None,
    Field(description="The tab, from tabs_list. Default: your own tab, or the one in front."),
]
Ref = Annotated[str, Field(description="The element's reference in the last snapshot, as in e12.")]


class Secret(BaseModel, extra="forbid"):
    """A secret by its name, whose value only the server knows."""

    secret: str


class Hands:
    """The tools.

    Args:
        pages: The pages.
        owners: Returns which tabs belong to which clients.
        secrets: The names of the environment variables that may be typed.
        files: The directory from which files may be uploaded.
    """

    def __init__(
        self,
        pages: HandPages,
        owners: Callable[[], TabOwners],
        *,
        secrets: Sequence[str] = (),
        files: Path | None = None,
    ) -> None:
        self._pages = pages
        self._owners = owners
        self._files = (files or Path.cwd()).resolve()
        self._secrets: Mapping[str, str] = {}
        missing = [name for name in secrets if not os.environ.get(name)]
        if missing:
            raise ConfigError(
                f"The secret {missing[0]} has no value: set the environment variable "
                f"{missing[0]}, or leave it out of `secrets`."
            )
        self._secrets = {name: os.environ[name] for name in secrets}

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
        links: Annotated[bool, Field(description="Show where links lead.")] = False,
        maxTokens: Annotated[int, Field(ge=200, le=100_000)] = MOST_TOKENS,
    ) -> dict[str, Any]:
        """Return what a page shows, as a tree of its elements; those to use have a reference.

        Long lists are folded; the text says how to open them. The page has written the texts.
        """
        page = (await self._tab(tabId)).page
        before = self._pages.watched(page).shown
        text = await self._look(page, progress, ref, maxTokens, links=links, start=start)
        if changed and ref is None:
            text = changes(before, text) or "(nothing has changed)"
        return {**await self._about(page), "snapshot": text}

    @tool(title="Go to a page", annotations=_ACTS)
    async def page_navigate(
        self,
        progress: Progress,
        url: Annotated[str | None, Field(description="Where to go, if `action` is goto.")] = None,
        action: Literal["goto", "back", "forward", "reload"] = "goto",
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Open an address in a tab, go back or forward, or load its page again."""
        page = (await self._tab(tabId)).page
        if (url is None) == (action == "goto"):
            raise ToolError("Give `url`, or an `action` other than goto.", "INVALID_ARGUMENTS")
        if url is not None and "://" not in url:
            url = f"https://{url}"
        if url is not None and not url.startswith(("http://", "https://")):
            raise ToolError("Only http and https addresses can be opened.", "INVALID_ARGUMENTS")

        async def go() -> None:
            match action:
                case "back":
                    await page.go_back(timeout=30_000)
                case "forward":
                    await page.go_forward(timeout=30_000)
                case "reload":
                    await page.reload(timeout=30_000)
                case _:
                    await page.goto(url or "", timeout=30_000)

        return await self._act(page, progress, go)

    @tool(title="Click", annotations=_ACTS)
    async def page_click(
        self,
        progress: Progress,
        ref: Ref,
        tabId: TabId = None,
        double: bool = False,
        button: Literal["left", "right", "middle"] = "left",
        modifiers: Sequence[Literal["Alt", "Control", "Meta", "Shift"]] = (),
    ) -> dict[str, Any]:
        """Click an element, when it is visible and nothing covers it; return what changed."""
        page = (await self._tab(tabId)).page
        element = await self._element(page, ref)

        async def click() -> None:
            await element.click(
                click_count=2 if double else 1,
                button=button,
                modifiers=[*modifiers],
                timeout=ACT_WITHIN * 1000,
            )

        return await self._act(page, progress, click)

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
        slowly: Annotated[bool, Field(description="Key by key, for pages that listen.")] = False,
    ) -> dict[str, Any]:
        """Replace the text of a field; return what changed."""
        page = (await self._tab(tabId)).page
        element = await self._element(page, ref)
        value = text if isinstance(text, str) else self._secret(text.secret)

        async def write() -> None:
            if slowly:
                await element.clear(timeout=ACT_WITHIN * 1000)
                await element.press_sequentially(value, timeout=ACT_WITHIN * 3000)
            else:
                await element.fill(value, timeout=ACT_WITHIN * 1000)
            if submit:
                await element.press("Enter", timeout=ACT_WITHIN * 1000)

        return await self._act(page, progress, write)

    @tool(title="Press a key", annotations=_ACTS)
    async def page_press(
        self,
        progress: Progress,
        key: Annotated[str, Field(description="Such as Enter, Escape, ArrowDown or Control+A.")],
        ref: Annotated[str | None, Field(description="Where. Default: what has the focus.")] = None,
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Press a key; return what changed."""
        page = (await self._tab(tabId)).page
        element = None if ref is None else await self._element(page, ref)

        async def press() -> None:
            if element is None:
                await page.keyboard.press(key)
            else:
                await element.press(key, timeout=ACT_WITHIN * 1000)

        return await self._act(page, progress, press)

    @tool(title="Choose an option", annotations=_ACTS)
    async def page_select(
        self,
        progress: Progress,
        ref: Ref,
        values: Annotated[Sequence[str], Field(description="Labels or values of the options.")],
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Choose options of a list; return what changed."""
        page = (await self._tab(tabId)).page
        element = await self._element(page, ref)

        async def select() -> None:
            await element.select_option([*values], timeout=ACT_WITHIN * 1000)

        return await self._act(page, progress, select)

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
        """Choose files in a field, or by the button that opens the choice; return what changed."""
        page = (await self._tab(tabId)).page
        element = await self._element(page, ref)
        paths = [self._file(each) for each in files]

        async def upload() -> None:
            is_field = await element.evaluate("(it) => it.matches('input[type=file]')")
            if is_field:
                await element.set_input_files(paths, timeout=ACT_WITHIN * 1000)
                return
            async with page.expect_file_chooser(timeout=ACT_WITHIN * 1000) as opened:
                await element.click(timeout=ACT_WITHIN * 1000)
            await (await opened.value).set_files(paths)

        return await self._act(page, progress, upload)

    @tool(title="Wait", annotations=_READS, ceiling=300)
    async def page_wait_for(
        self,
        progress: Progress,
        text: Annotated[str | None, Field(description="Until this is shown.")] = None,
        gone: Annotated[str | None, Field(description="Until this is not shown any more.")] = None,
        url: Annotated[str | None, Field(description="Until the address contains this.")] = None,
        seconds: Annotated[float, Field(gt=0, le=240, description="At most.")] = 10.0,
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Wait until a page shows something; return what changed meanwhile."""
        page = (await self._tab(tabId)).page
        if (text, gone, url).count(None) != 2:
            raise ToolError("Give one of `text`, `gone` and `url`.", "INVALID_ARGUMENTS")
        waited_for = text or gone or url or ""

        async def wait() -> None:
            timeout = seconds * 1000
            if url is not None:
                await page.wait_for_url(lambda each: waited_for in each, timeout=timeout)
                return
            state: Literal["visible", "hidden"] = "visible" if text is not None else "hidden"
            await page.get_by_text(waited_for).first.wait_for(state=state, timeout=timeout)

        progress.report(f"Waiting for {shorten(waited_for, 60)}")
        return await self._act(page, progress, wait)

    @tool(title="Take a picture", annotations=_READS)
    async def page_screenshot(
        self,
        progress: Progress,
        ref: Annotated[str | None, Field(description="Of this element only.")] = None,
        full: Annotated[bool, Field(description="Of the whole page, not what is in view.")] = False,
        tabId: TabId = None,
    ) -> types.ImageContent:
        """Return a picture of a page, as JPEG."""
        page = (await self._tab(tabId)).page
        progress.heartbeat()
        try:
            if ref is not None:
                element = await self._element(page, ref)
                data = await element.screenshot(type="jpeg", quality=70, scale="css")
            else:
                height = await page.evaluate("document.documentElement.scrollHeight")
                clip = full and height > _LONGEST_SIDE
                data = await page.screenshot(
                    type="jpeg",
                    quality=70,
                    scale="css",
                    full_page=full,
                    clip={"x": 0, "y": 0, "width": 1280, "height": _LONGEST_SIDE} if clip else None,
                )
        except Error as error:
            raise action_failed(error) from None
        text = base64.b64encode(data).decode()
        return types.ImageContent(type="image", data=text, mime_type="image/jpeg")

    @tool(title="Read the console", annotations=_READS)
    async def page_console(
        self,
        progress: Progress,
        all: Annotated[bool, Field(description="Not only since the last time.")] = False,  # noqa: A002
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Return what a page wrote to its console, and its uncaught errors."""
        progress.heartbeat()
        watched = self._pages.watched((await self._tab(tabId)).page)
        fresh = watched.lines if all else watched.lines - watched.read_console
        watched.read_console = watched.lines
        shown = [*watched.console][-fresh:] if fresh else []
        return {
            "messages": [
                {"type": kind, "text": self._redacted(shorten(text, 1_000))} for kind, text in shown
            ]
        }

    @tool(title="Read the network", annotations=_READS)
    async def page_network(
        self,
        progress: Progress,
        request: Annotated[
            int | None, Field(description="Return the bodies of the request of this number.")
        ] = None,
        all: Annotated[bool, Field(description="Not only since the last time.")] = False,  # noqa: A002
        tabId: TabId = None,
    ) -> dict[str, Any]:
        """Return the requests of a page, or the bodies of one of them."""
        progress.heartbeat()
        watched = self._pages.watched((await self._tab(tabId)).page)
        if request is not None:
            found = next((each for each in watched.network if each.number == request), None)
            if found is None:
                raise ToolError(f"There is no request {request} any more.", "NOT_FOUND")
            return await self._bodies(found.request)
        shown = [each for each in watched.network if all or each.number > watched.read_network]
        watched.read_network = watched.requests
        listed: list[dict[str, Any]] = []
        for each in shown:
            response = None if each.failure else await each.request.response()
            listed.append(
                {
                    "request": each.number,
                    "method": each.request.method,
                    "url": self._redacted(shorten(each.request.url, 300)),
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
        """Accept or dismiss the dialog of a page, such as an alert or a question."""
        page = (await self._tab(tabId)).page
        watched = self._pages.watched(page)
        dialog, watched.dialog, watched.asks = watched.dialog, None, anyio.Event()
        if dialog is None:
            raise ToolError("The page has no dialog open.", "NO_DIALOG")

        async def answer() -> None:
            if accept:
                await (dialog.accept() if text is None else dialog.accept(text))
            else:
                await dialog.dismiss()

        return await self._act(page, progress, answer)

    async def list_tabs(self, client: str | None) -> Sequence[dict[str, Any]]:
        """Return all tabs that a client may name, as `tabs_list` does."""
        owners = self._owners()
        found: list[dict[str, Any]] = []
        for tab in await self._pages.tabs():
            if owners.may_name(client, tab.number):
                about = await self._about(tab.page)
                found.append({"tabId": tab.number, **about, "active": tab.active, "plugins": []})
        return found

    # --- parts ---

    async def _tab(self, number: int | None) -> Tab:
        """Return the tab that a call uses.

        Raises:
            ToolError: There is none, or it belongs to another client.
        """
        run = current_run.get()
        client = None if run is None or run.client is None else run.client.owner
        owners, tabs = self._owners(), await self._pages.tabs()
        if number is not None:
            found = next((each for each in tabs if each.number == number), None)
            if found is None:
                raise ToolError(
                    f"There is no tab {number}. tabs_list lists the tabs.", "TAB_NOT_FOUND",
                    category="tab",
                )  # fmt: skip
            if not owners.may_name(client, number):
                raise ToolError(
                    f"Tab {number} belongs to another client.", "TAB_NOT_YOURS", category="tab"
                )
            return found
        usable = set(owners.usable(client, [each.number for each in tabs]))
        mine = [each for each in tabs if each.number in usable]
        if not mine:
            raise ToolError(
                "No tab is open. Open one with tabs_open.", "TAB_NOT_FOUND", category="tab"
            )
        return max(mine, key=lambda each: (each.active, each.used))

    async def _element(self, page: Page, ref: str) -> Locator:
        """Return the element of a reference.

        Raises:
            ToolError: It is not in the page any more; the text says what looks like it now.
        """
        watched = self._pages.watched(page)
        self._check_dialog(watched)
        element = page.locator(f"aria-ref={ref}")
        try:
            if ref.isalnum() and await element.count():
                return element
        except Error:
            pass  # the reference has another form than Playwright's
        known = watched.nodes.get(ref)
        if known is None:
            raise ToolError(
                f"The last snapshot has no element {ref}. Take one with page_snapshot.",
                "STALE_REF",
                retryable=True,
            )
        nodes = self._nodes(parse(await self._raw(page, None)))
        alike = [
            each.ref
            for each in nodes.values()
            if (each.role, each.name) == (known.role, known.name) and each.ref != ref
        ]
        what = f'{known.role} "{shorten(one_line(known.name), 60)}"'
        now = f" What looks like it now: {', '.join(alike[:3])}." if alike else ""
        raise ToolError(
            f"The element {ref}, {what}, is gone.{now} Take a new snapshot.",
            "STALE_REF",
            retryable=True,
        )

    async def _act(
        self, page: Page, progress: Progress, action: Callable[[], Any]
    ) -> dict[str, Any]:
        """Do something in a page, and return what it changed there."""
        watched = self._pages.watched(page)
        self._check_dialog(watched)
        before = watched.shown
        await Waiting(watched, progress.heartbeat).run(action)
        with suppress(Error):  # it may go on for ever
            await page.wait_for_load_state("networkidle", timeout=SETTLE_WITHIN * 1000)
        dialog: Dialog | None = watched.dialog
        if dialog is not None:
            return {
                "dialog": {"type": dialog.type, "message": shorten(dialog.message, 1_000)},
                "next": "Answer it with page_dialog.",
            }
        text = await self._look(page, progress, None, MOST_TOKENS)
        new = changes(before, text) if before else text
        if is_longer(new, CHANGED_TOKENS):
            new = f"{first_tokens(new, CHANGED_TOKENS)}…\n(more: page_snapshot)"
        return {**await self._about(page), "changed": new or "(nothing that a snapshot shows)"}

    def _check_dialog(self, watched: Watched) -> None:
        if watched.dialog is not None:
            raise ToolError(
                f"The page's {watched.dialog.type} dialog is in the way. Answer it with "
                "page_dialog.",
                "DIALOG_OPEN",
                retryable=True,
            )

    async def _look(
        self,
        page: Page,
        progress: Progress,
        ref: str | None,
        most: int,
        *,
        links: bool = False,
        start: int = 0,
    ) -> str:
        """Return a page or a part of it as text, and remember it."""
        progress.heartbeat()
        if ref is not None:
            await self._element(page, ref)
        nodes = parse(await self._raw(page, ref))
        watched = self._pages.watched(page)
        text = self._redacted(render(nodes, most=most, links=links, start=start))
        if ref is None:
            watched.nodes = self._nodes(nodes)
            watched.shown = text
        return text

    async def _raw(self, page: Page, ref: str | None) -> str:
        try:
            if ref is None:
                return await page.aria_snapshot(mode="ai", timeout=ACT_WITHIN * 1000)
            element = page.locator(f"aria-ref={ref}")
            return await element.aria_snapshot(mode="ai", timeout=ACT_WITHIN * 1000)
        except Error as error:
            raise action_failed(error) from None

    def _nodes(self, nodes: Sequence[Node]) -> Mapping[str, Node]:
        return {each.ref: each for node in nodes for each in node.walk() if each.ref}

    async def _about(self, page: Page) -> dict[str, Any]:
        try:
            title = await page.title()
        except Error:
            title = ""  # it is on its way to another page
        return {
            "title": self._redacted(shorten(one_line(title), 120)),
            "url": self._redacted(shorten(page.url, 500)),
        }

    async def _bodies(self, request: Any) -> dict[str, Any]:
        response = await request.response()
        text = ""
        try:
            text = "" if response is None else await response.text()
        except (Error, UnicodeDecodeError) as error:
            text = f"(cannot be shown: {type(error).__name__})"
        sent = request.post_data or ""
        return {
            "url": self._redacted(shorten(request.url, 500)),
            "sent": self._redacted(first_tokens(sent, BODY_TOKENS)),
            "received": self._redacted(first_tokens(text, BODY_TOKENS)),
            "isCut": is_longer(text, BODY_TOKENS) or is_longer(sent, BODY_TOKENS),
        }

    def _secret(self, name: str) -> str:
        value = self._secrets.get(name)
        if value is None:
            known = ", ".join(sorted(self._secrets)) or "none"
            raise ToolError(
                f"The server has no secret {name!r}; it has: {known}.", "UNKNOWN_SECRET"
            )
        return value

    def _redacted(self, text: str) -> str:
        for name, value in self._secrets.items():
            text = text.replace(value, f"<secret {name}>")
        return text

    def _file(self, path: str) -> Path:
        file = (self._files / path).resolve()
        if not file.is_relative_to(self._files) or not file.is_file():
            raise ToolError(
                f"{path} is not a file below the server's directory.", "NOT_FOUND",
                category="not_found",
            )  # fmt: skip
        return file
