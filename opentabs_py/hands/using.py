"""The steps that all hands share: find the tab and the element, act, and report the changes."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import anyio
from playwright.async_api import Dialog, Error, Locator, Page, Request
from playwright.async_api import TimeoutError as LateError

from opentabs_py.browser.driver import FAILURES
from opentabs_py.calling.client import CallClient
from opentabs_py.core import codes
from opentabs_py.core.questions import NOWHERE, Place, host_of
from opentabs_py.core.tabs.owners import SessionKey, TabOwners
from opentabs_py.core.text import one_line, shorten
from opentabs_py.core.tokens import first_tokens, is_longer
from opentabs_py.errors import ChainError, ConfigError, ToolError
from opentabs_py.hands.editors import insert
from opentabs_py.hands.masks import Masks
from opentabs_py.hands.pages import HandPages, PatientAction, Seen, Tab, action_failed
from opentabs_py.hands.snapshot import MOST_TOKENS, changes, render
from opentabs_py.hands.tree import Node, parse
from opentabs_py.python_tools.progress import Progress
from opentabs_py.python_tools.run import current_run

ACT_WITHIN: Final = 10.0  # s; for an element to be there, visible, and not covered
USABLE_WITHIN: Final = 2.0  # s; for a page that enables an element after it has checked others
TITLE_WITHIN: Final = 1.0  # s; a page whose script is busy does not answer
SETTLE_WITHIN: Final = 0.3  # s; for what an action changes, before the page is looked at again
CHANGED_TOKENS: Final = 1_500
PASSWORDS_WITHIN: Final = 3.0  # s; to find out which fields hold passwords takes 2 ms each
HIDDEN: Final = "(a password, hidden)"
MOST_OPTIONS: Final = 20  # named in an error
BODY_TOKENS: Final = 5_000
_FIELDS: Final = frozenset({"textbox", "searchbox", "combobox"})  # the roles of a text field


class PageUser:
    """Uses pages for the clients that call tools.

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
        self.pages = pages
        self.owners = owners
        self._files = (files or Path.cwd()).resolve()
        missing = [name for name in secrets if not os.environ.get(name)]
        if missing:
            raise ConfigError(
                f"The secret {missing[0]} has no value: set the environment variable "
                f"{missing[0]}, or leave it out of `secrets`."
            )
        self._secrets = {name: os.environ[name] for name in secrets}
        self._masks = Masks(self._secrets)

    async def find_tab(self, number: int | None) -> Tab:
        """Return the tab that a call uses.

        Raises:
            ToolError: There is none, or it belongs to another client.
        """
        run = current_run.get()
        return await self._tab(number, None if run is None else run.client)

    async def _tab(self, number: int | None, caller: CallClient | None) -> Tab:
        client = None if caller is None else caller.session_key
        owners, tabs = self.owners(), await self.pages.tabs(number)
        if number is not None:
            found = next((each for each in tabs if each.number == number), None)
            if found is None:
                raise ToolError(
                    f"There is no tab {number}. tabs_list lists the tabs.", codes.TAB_NOT_FOUND,
                    category="tab",
                )  # fmt: skip
            if not owners.may_name(client, number):
                raise ToolError(
                    f"Tab {number} belongs to another client. Leave out tabId, or open your own "
                    "with tabs_open.", codes.TAB_NOT_YOURS, category="tab",
                )  # fmt: skip
            return found
        usable = set(owners.usable(client, [each.number for each in tabs]))
        mine = [each for each in tabs if each.number in usable]
        if not mine:
            raise ToolError(
                "No tab is open. Open one with tabs_open.", codes.TAB_NOT_FOUND, category="tab"
            )
        return max(mine, key=lambda each: (each.active, each.used))

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
            tab = await self._tab(number, caller)
        except (ToolError, ChainError):  # the call fails with it, if it is allowed
            return NOWHERE
        watched = self.pages.watched(tab.page)
        client = "" if caller is None else caller.session_key
        node, dialog = watched.find_node(ref or "", client), watched.dialog
        element = "" if node is None else described(node.role, node.name or node.text)
        if dialog is not None:
            element = described(f"{dialog.type} dialog", self._message(dialog))
        title = (await self.about(tab.page))["title"]
        return Place(host_of(tab.page.url) or None, title or None, tab.number, element=element)

    def seen_in(self, page: Page) -> Seen:
        """Return what the client of the running call has seen of a page."""
        return self.pages.watched(page).seen_by(_session_key())

    async def find_element(self, page: Page, ref: str) -> Locator:
        """Return the element of a reference.

        Raises:
            ToolError: It is no longer in the page; the message names similar elements.
        """
        self.check_dialog(page)
        is_known = ref in self.seen_in(page).nodes
        if is_known or not self.pages.has_shown(ref, _session_key()):  # else in another tab
            editor = await self.pages.watched(page).editors.locate(ref)
            if editor is not None:
                return editor
            element = page.locator(f"aria-ref={ref}")
            with suppress(*FAILURES):  # it has another form than Playwright's, or the page is gone
                if ref.isalnum() and await element.count():
                    return element
        raise self._stale(page, ref, self._nodes(parse(await self._raw(page))) if is_known else {})

    def _stale(self, page: Page, ref: str, now: Mapping[str, Node]) -> ToolError:
        """Return the error of a reference that is not among the elements that a page has now."""
        seen = self.seen_in(page)
        known = seen.nodes.get(ref)
        if known is None:
            return ToolError(
                f"Your last snapshot of this tab has no element {ref}. Take one with "
                "page_snapshot, or pass the tabId of the tab that has it.",
                codes.STALE_REF,
                retryable=True,
            )
        alike = [
            each.ref
            for each in now.values()
            if (each.role, each.name) == (known.role, known.name) and each.ref != ref
        ][:3]
        seen.nodes = {**seen.nodes, **dict.fromkeys(alike, known)}
        instead = f" Similar elements now: {', '.join(alike)}." if alike else ""
        what = described(known.role, known.name or known.text)
        return ToolError(
            f"The element {ref}, {what}, is gone.{instead} Take a new snapshot.",
            codes.STALE_REF,
            retryable=True,
        )

    async def wait_usable(
        self, page: Page, ref: str, element: Locator, state: Literal["enabled", "editable"]
    ) -> None:
        """Wait a moment until an element is no longer disabled or, to be editable, read-only.

        Raises:
            Error: It still is.
        """
        handle = await element.element_handle(timeout=ACT_WITHIN * 1000)
        try:
            await handle.wait_for_element_state(state, timeout=USABLE_WITHIN * 1000)
        except LateError:
            what = "disabled" if await handle.is_disabled() else "read-only"
            node = self.seen_in(page).nodes.get(ref, Node("element"))
            raise Error(
                f"The {described(node.role, node.name)} is {what}. Do first what the page asks for"
            ) from None
        finally:
            with suppress(*FAILURES):
                await handle.dispose()

    async def select(self, page: Page, ref: str, element: Locator, values: Sequence[str]) -> None:
        """Choose options of a list, by their labels or values.

        Raises:
            Error: It does not have them, and gets them only later than in a moment.
        """
        try:
            await element.select_option(values, timeout=USABLE_WITHIN * 1000)
        except LateError as error:
            if "did not find some options" not in str(error):
                await element.select_option(values, timeout=ACT_WITHIN * 1000)
                return
            node = self._nodes(parse(await self._raw(page))).get(ref, Node("element"))
            names = [self.masked(each.name) for each in node.walk() if each.role == "option"]
            listed = ", ".join(shorten(one_line(each), 60) for each in names[:MOST_OPTIONS])
            more = ", …" if len(names) > MOST_OPTIONS else ""
            what = described(node.role, self.masked(node.name))
            raise Error(f"The {what} has no such option. It has: {listed}{more}") from None

    async def act(
        self, page: Page, progress: Progress, action: Callable[[], Any]
    ) -> dict[str, Any]:
        """Do something in a page, and return what it changed there."""
        self.check_dialog(page)
        watched = self.pages.watched(page)
        before = self.seen_in(page).shown
        opened_before = {*watched.opened}
        async with self.pages.as_active(page):
            await PatientAction(watched, progress.heartbeat, self.failed).run(action)
            with suppress(*FAILURES):  # it may never end
                await page.wait_for_load_state("networkidle", timeout=SETTLE_WITHIN * 1000)
        try:
            text = await self.look(page, progress, None, MOST_TOKENS)
        except ToolError:
            if (dialog := watched.dialog) is None:
                raise
            return {
                "dialog": {"type": dialog.type, "message": self._message(dialog)},
                "next": "Answer it with page_dialog.",
            }
        new = changes(before, text) if before else text
        if is_longer(new, CHANGED_TOKENS):
            new = f"{first_tokens(new, CHANGED_TOKENS)}…\n(more: page_snapshot)"
        result = {**await self.about(page), "changed": new or "(no visible change)"}
        if opened := watched.opened - opened_before:
            result["opened"] = [
                {"tabId": tab.number, **await self.about(tab.page)}
                for tab in await self.pages.tabs()
                if tab.page in opened
            ]
        return result

    def check_dialog(self, page: Page) -> None:
        """Check that no dialog of a page is open, in which case it answers nothing else.

        Raises:
            ToolError: One is.
        """
        dialog = self.pages.watched(page).dialog
        if dialog is not None:
            message = one_line(shorten(self._message(dialog), 200))
            says = f', "{message}",' if message else ""
            raise ToolError(
                f"The page's {dialog.type} dialog{says} is in the way. Answer it with page_dialog.",
                codes.DIALOG_OPEN,
                retryable=True,
            )

    def _message(self, dialog: Dialog) -> str:
        return shorten(self.masked(dialog.message), 1_000)

    async def look(
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
        self.check_dialog(page)
        editors, empty = await self.pages.watched(page).editors.find(page)
        # Always of the whole page: Playwright forgets the references outside of what it looks at.
        nodes = insert(parse(await self._raw(page)), empty)
        for node in (each for top in nodes for each in top.walk()):
            if node.ref in editors:
                node.role = "textbox"
            # Not before it is parsed: values may be quoted there, and escaped.
            node.name, node.text, node.url = map(self.masked, (node.name, node.text, node.url))
        found, seen = self._nodes(nodes), self.seen_in(page)
        await self._hide_passwords(page, found)
        if ref is not None:
            if ref not in found:
                raise self._stale(page, ref, found)
            seen.nodes = found
            return render([found[ref]], most=most, links=links, start=start)
        text = render(nodes, most=most, links=links, start=start)
        seen.nodes, seen.shown = found, text
        return text

    async def _raw(self, page: Page) -> str:
        async def take() -> str:
            return await page.aria_snapshot(mode="ai", timeout=ACT_WITHIN * 1000)

        # Without a heartbeat: it ends within the idle timer.
        taking = PatientAction(self.pages.watched(page), lambda: None, self.failed)
        while (text := await taking.run(take)) is None:
            self.check_dialog(page)  # unless the user has answered it
        return str(text)

    async def _hide_passwords(self, page: Page, nodes: Mapping[str, Node]) -> None:
        """Replace what is in password fields, of which a page shows only dots.

        A field counts as one if it does not say in time that it is none, or is gone by then.
        """
        shown = {f"<secret {name}>" for name in self._secrets}
        fields = [each for each in nodes.values() if each.role in _FIELDS and each.text]
        hidden = {each.ref for each in fields if each.text not in shown}
        others = page.locator(":not(input[type=password])")

        async def keep(ref: str) -> None:
            with suppress(*FAILURES):
                if await page.locator(f"aria-ref={ref}").and_(others).count():
                    hidden.discard(ref)

        with anyio.move_on_after(PASSWORDS_WITHIN) as asking:
            async with anyio.create_task_group() as tasks:
                for ref in [*hidden]:
                    tasks.start_soon(keep, ref)
        if asking.cancelled_caught:
            self.check_dialog(page)  # it may be the reason
        for ref in hidden:
            nodes[ref].text = HIDDEN

    def _nodes(self, nodes: Sequence[Node]) -> Mapping[str, Node]:
        return {each.ref: each for node in nodes for each in node.walk() if each.ref}

    async def about(self, page: Page) -> dict[str, Any]:
        """Return the title and the URL of a page; no title if the page does not answer."""
        title = ""
        # It may be on its way to another page.
        with suppress(*FAILURES), anyio.move_on_after(TITLE_WITHIN):
            title = await page.title()
        return {
            "title": shorten(one_line(self.masked(title)), 120),
            "url": shorten(self.masked(page.url), 500),
        }

    async def bodies(self, request: Request) -> dict[str, Any]:
        """Return what a request sent and received, cut."""
        text = ""
        try:
            response = await request.response()  # its page may be closed
            text = "" if response is None else await response.text()
        except (*FAILURES, UnicodeDecodeError) as error:
            text = f"(cannot be shown: {type(error).__name__})"
        sent, text = self.masked(request.post_data or ""), self.masked(text)
        return {
            "url": shorten(self.masked(request.url), 500),
            "sent": first_tokens(sent, BODY_TOKENS),
            "received": first_tokens(text, BODY_TOKENS),
            "isCut": is_longer(text, BODY_TOKENS) or is_longer(sent, BODY_TOKENS),
        }

    def secret(self, name: str) -> str:
        """Return the value of a secret.

        Raises:
            ToolError: There is none of that name.
        """
        value = self._secrets.get(name)
        if value is None:
            known = ", ".join(sorted(self._secrets)) or "none"
            raise ToolError(
                f"The server has no secret {name!r}; it has: {known}.", codes.UNKNOWN_SECRET
            )
        return value

    def failed(self, error: Exception) -> ToolError:
        """Return the error of an action; Playwright's text may have the value that was typed."""
        return action_failed(self.masked(str(error)))

    def masked(self, text: str) -> str:
        """Return a string with the names of secrets in place of their values; see `Masks`."""
        return self._masks.apply(text)

    def file(self, path: str) -> Path:
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


def _session_key() -> SessionKey | None:
    """Return the key of what the client of the running call has seen."""
    run = current_run.get()
    return "" if run is None else run.session_key


def described(role: str, name: str) -> str:
    """Return an element for users, as in `button "Buy"`."""
    name = one_line(shorten(name, 60))
    return f"{role} {json.dumps(name, ensure_ascii=False)}" if name else role
