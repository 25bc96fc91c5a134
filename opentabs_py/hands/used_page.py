"""A page as one call uses it: find its elements, act, and report what has changed."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

import anyio
from playwright.async_api import Dialog, Error, Locator, Page
from playwright.async_api import TimeoutError as LateError

from opentabs_py.browser.driver import FAILURES
from opentabs_py.core import codes
from opentabs_py.core.questions import Place, host_of, shown_host
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import one_line, shorten
from opentabs_py.core.tokens import first_tokens, is_longer
from opentabs_py.errors import ToolError
from opentabs_py.hands.actions import PatientAction, action_failed
from opentabs_py.hands.allowed import Allowed
from opentabs_py.hands.editors import insert
from opentabs_py.hands.pages import HandPages, Tab
from opentabs_py.hands.passwords import hide_passwords
from opentabs_py.hands.secrets import Secrets
from opentabs_py.hands.snapshot import changes, render, render_whole
from opentabs_py.hands.tree import Node, parse
from opentabs_py.hands.watching import Seen

ACT_WITHIN: Final = 10.0  # s; for an element to be there, visible, and not covered
USABLE_WITHIN: Final = 2.0  # s; for a page that enables an element after it has checked others
TITLE_WITHIN: Final = 1.0  # s; a page whose script is busy does not answer
SETTLE_WITHIN: Final = 0.3  # s; for what an action changes, before the page is looked at again
CHANGED_TOKENS: Final = 1_500
NOTHING: Final = "(nothing to read: the page is empty, or drawn, as a PDF is; take a screenshot)"
MOST_OPTIONS: Final = 20  # named in an error
_SHOW_DOTS: Final = "(field) => field.style.setProperty('-webkit-text-security', 'disc')"


class UsedPage:
    """A page as one call of a client uses it.

    Args:
        tab: Its tab.
        pages: All pages.
        client: The session of the client, which refers to what it has seen.
        secrets: Are masked in everything that it reads.
        heartbeat: Called now and then, so that the call does not time out.

    Attributes:
        page: Playwright's page.
        watched: What happened in it.
    """

    def __init__(
        self,
        tab: Tab,
        pages: HandPages,
        client: SessionKey | None,
        *,
        secrets: Secrets,
        heartbeat: Callable[[], None],
    ) -> None:
        self.page = tab.page
        self.watched = pages.watched(tab.page)
        self._number = tab.number
        self._pages = pages
        self._client = client
        self._secrets = secrets
        self._mask = secrets.mask
        self._heartbeat = heartbeat
        self._allowed: Allowed | None = None

    @property
    def seen(self) -> Seen:
        """What the client has seen of the page."""
        return self.watched.seen_by(self._client)

    def stay_on(self, place: Place, tool: str) -> None:
        """Act only on the site, and on what is there, for which the user has allowed the tool.

        Raises:
            ChainError: The page is not on the site.
        """
        self._allowed = Allowed(place, tool)
        self._allowed.check_site(self.page.url)

    def check_asked_dialog(self) -> None:
        """Check that the dialog of the page is the one that the user has been asked about.

        Raises:
            ChainError: It is another.
        """
        dialog = self.watched.dialog
        if self._allowed is not None:
            self._allowed.check_element("" if dialog is None else self._described(dialog))

    async def about(self) -> dict[str, Any]:
        """Return the title and the URL of the page; no title if it does not answer."""
        return await about(self.page, self._mask)

    async def find_place(self, ref: str) -> Place:
        """Return where an action on an element of this page would take place."""
        if (dialog := self.watched.dialog) is not None:
            element = self._described(dialog)
        else:
            node = self.watched.find_node(ref, self._client)
            element = "" if node is None else await self._describe(ref, node)
        title = (await self.about())["title"]
        return Place(host_of(self.page.url) or None, title or None, self._number, element=element)

    def _described(self, dialog: Dialog) -> str:
        return described(f"{dialog.type} dialog", self._message(dialog))

    async def _describe(self, ref: str, node: Node) -> str:
        """Return an element for users, with the site of its frame if that is another."""
        what, host = described(node.role, node.name or node.text), ""
        with suppress(*FAILURES), anyio.move_on_after(TITLE_WITHIN):
            if (element := await self._locate(ref)) is not None:
                host = host_of(await _url_around(element))
        if host in ("", host_of(self.page.url)):
            return what
        return f"{what} in a frame of {shown_host(host)}"

    async def find_element(self, ref: str) -> Locator:
        """Return the element of a reference.

        Raises:
            ToolError: It is no longer in the page; the message names similar elements.
            ChainError: The user was asked about another one.
        """
        self.check_dialog()
        if ref not in self.seen.nodes and self._pages.has_shown(ref, self._client):
            raise _unknown(ref)  # it is in another tab
        element = await self._locate(ref)
        if element is None:
            raise self._stale(ref, _by_ref(parse(await self._raw())))
        if self._allowed is not None:
            await self._check_asked_element(ref, self._allowed)
        return element

    async def _locate(self, ref: str) -> Locator | None:
        editor = await self.watched.editors.locate(ref)
        if editor is not None:
            return editor
        drawn = self.watched.drawn_inputs.locate(self.page, ref)
        element = drawn or self.page.locator(f"aria-ref={ref}")
        with suppress(*FAILURES):  # it has another form than Playwright's, or the page is gone
            if ref.isalnum() and await element.count():
                return element
        return None

    async def _check_asked_element(self, ref: str, allowed: Allowed) -> None:
        found = _by_ref(await self._nodes())
        if ref not in found:  # with another name, an element has another reference
            raise self._stale(ref, found)
        self.seen.nodes = {**self.seen.nodes, ref: found[ref]}  # for the next question
        allowed.check_element(await self._describe(ref, found[ref]))

    def _stale(self, ref: str, now: Mapping[str, Node]) -> ToolError:
        """Return the error of a reference that is not among the elements that a page has now."""
        seen = self.seen
        known = seen.nodes.get(ref) or seen.earlier.get(ref)
        if known is None:
            return _unknown(ref)
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
        self, ref: str, element: Locator, state: Literal["enabled", "editable"]
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
            node = self.seen.nodes.get(ref, Node("element"))
            raise Error(
                f"The {described(node.role, node.name)} is {what}. First do what the page asks for"
            ) from None
        finally:
            with suppress(*FAILURES):
                await handle.dispose()

    async def prepare_secret(self, name: str, element: Locator) -> str:
        """Have an element show dots, and return the value of the secret to type into it.

        Raises:
            ToolError: There is none of that name, or it may not be typed there.
        """
        value = self._secrets.value(name, await _url_around(element))
        # A screenshot would show it, if this is no password field.
        await element.evaluate(_SHOW_DOTS, timeout=ACT_WITHIN * 1000)
        return value

    async def select(self, ref: str, element: Locator, values: Sequence[str]) -> None:
        """Choose options of a list, by their labels or values.

        Raises:
            Error: It does not have them, and gets them only later than in a moment.
        """
        try:
            await element.select_option(values, timeout=USABLE_WITHIN * 1000)
        except LateError as error:
            if "option being selected is not enabled" in str(error):
                raise Error("The option is disabled. First do what the page asks for") from None
            if "did not find some options" not in str(error):
                await element.select_option(values, timeout=ACT_WITHIN * 1000)
                return
            node = _by_ref(parse(await self._raw())).get(ref, Node("element"))
            names = [self._mask(each.name) for each in node.walk() if each.role == "option"]
            listed = ", ".join(shorten(one_line(each), 60) for each in names[:MOST_OPTIONS])
            more = ", …" if len(names) > MOST_OPTIONS else ""
            what = described(node.role, self._mask(node.name))
            raise Error(f"The {what} has no such option. It has: {listed}{more}") from None

    async def act(self, action: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        """Do something in the page, and return what it changed there."""
        self.check_dialog()
        watched = self.watched
        before = self.seen.page
        opened_before, downloaded = {*watched.opened}, watched.downloaded
        async with self._pages.as_active(self.page):
            self._check_not_own()
            if self._allowed is not None:
                self._allowed.check_site(self.page.url)
            await PatientAction(watched, self._heartbeat, self.failed).run(action)
            with suppress(*FAILURES):  # it may never end
                await self.page.wait_for_load_state("networkidle", timeout=SETTLE_WITHIN * 1000)
        try:
            await self._see()
        except ToolError:
            if (dialog := watched.dialog) is None:
                # Not an error: who gets one repeats what was done.
                what = (
                    "the tab is closed"
                    if watched.closed.is_set()
                    else "the page does not answer yet"
                )
                return {**await self.about(), "changed": f"({what})"}
            return {
                "dialog": {"type": dialog.type, "message": self._message(dialog)},
                "next": "Answer it with page_dialog.",
            }
        new = self.changes_since(before, CHANGED_TOKENS)
        changed = (new or "(no visible change)") if self.seen.page else NOTHING
        result = {**await self.about(), "changed": changed}
        if opened := watched.opened - opened_before:
            result["opened"] = [
                {"tabId": tab.number, **await about(tab.page, self._mask)}
                for tab in await self._pages.tabs()
                if tab.page in opened
            ]
        if fresh := watched.downloaded - downloaded:
            result["downloads"] = [*watched.downloads][-fresh:]
        return result

    def changes_since(self, before: Sequence[Node], most: int) -> str:
        """Return what is new since a look, as far as it has at most this number of tokens."""
        now = self.seen.page
        new = changes(render_whole(before), render_whole(now))
        if is_longer(new, most):  # such as another page, of which folded lists say more
            new = changes(render(before), render(now))
        if is_longer(new, most):
            new = f"{first_tokens(new, most)}…\n(more: page_snapshot)"
        return new

    def check_dialog(self) -> None:
        """Check that no dialog of the page is open, in which case it answers nothing else.

        Raises:
            ToolError: One is.
        """
        dialog = self.watched.dialog
        if dialog is not None:
            message = one_line(shorten(self._message(dialog), 200))
            says = f', "{message}",' if message else ""
            raise ToolError(
                f"The page's {dialog.type} dialog{says} is in the way. Answer it with page_dialog.",
                codes.DIALOG_OPEN,
                retryable=True,
            )

    def _message(self, dialog: Dialog) -> str:
        return shorten(self._mask(dialog.message), 1_000)

    async def look(self, ref: str | None, most: int, *, links: bool = False, start: int = 0) -> str:
        """Return the page or a part of it as text, and remember it."""
        if ref is None:
            await self._see()
            return render(self.seen.page, most=most, links=links, start=start) or NOTHING
        self._heartbeat()
        found = _by_ref(await self._nodes())
        if ref not in found:
            raise self._stale(ref, found)
        self.seen.look(found)
        return render([found[ref]], most=most, links=links, start=start)

    async def _see(self) -> None:
        """Remember what the page shows."""
        self._heartbeat()
        nodes = await self._nodes()
        self.seen.look(_by_ref(nodes))
        self.seen.page = nodes

    def _check_not_own(self) -> None:
        if self._pages.is_own(self.page.url):  # it has become one since its tab was chosen
            raise own_page()

    async def _nodes(self) -> Sequence[Node]:
        """Return what the page shows, without secrets."""
        self.check_dialog()
        self._check_not_own()
        editors, empty = await self.watched.editors.find(self.page)
        # Always of the whole page: Playwright forgets the references outside of what it looks at.
        nodes = insert(parse(await self._raw()), empty)
        self.watched.drawn_inputs.add_refs(nodes)  # which depend on the names as they are
        every = [each for top in nodes for each in top.walk()]
        for node in every:
            if node.ref in editors:
                node.role = "textbox"
            # Not before it is parsed: values may be quoted there, and escaped.
            node.name, node.text, node.url = map(self._mask, (node.name, node.text, node.url))
        is_hidden = self._secrets.is_mask
        if not await hide_passwords(self.page, _by_ref(nodes), every, is_hidden=is_hidden):
            self.check_dialog()  # it may be why the page did not answer
        return nodes

    async def _raw(self) -> str:
        async def take() -> str:
            return await self.page.aria_snapshot(mode="ai", timeout=ACT_WITHIN * 1000)

        # Without a heartbeat: it ends within the idle timer.
        taking = PatientAction(self.watched, lambda: None, self.failed)
        while (text := await taking.run(take)) is None:
            self.check_dialog()  # unless the user has answered it
        return str(text)

    def failed(self, error: Exception) -> ToolError:
        """Return the error of an action; Playwright's text may have the value that was typed."""
        return action_failed(self._mask(str(error)))


def _unknown(ref: str) -> ToolError:
    return ToolError(
        f"Your last snapshot of this tab has no element {ref}. Take one with page_snapshot, or "
        "pass the tabId of the tab that has it.",
        codes.STALE_REF,
        retryable=True,
    )


def own_page() -> ToolError:
    """Return the error for a page of ours."""
    return ToolError(
        "This is OpenTabs' own page, which is for the user only. Use another tab.",
        codes.TAB_NOT_FOUND,
        category="tab",
    )


async def _url_around(element: Locator) -> str:
    """Return the URL of an element's frame.

    A frame without a host, such as about:blank, is of the site of the frame around it.
    """
    handle = await element.element_handle(timeout=ACT_WITHIN * 1000)
    frame = await handle.owner_frame()
    while frame is not None and frame.parent_frame is not None and not host_of(frame.url):
        frame = frame.parent_frame
    await handle.dispose()
    return "" if frame is None else frame.url


def _by_ref(nodes: Sequence[Node]) -> Mapping[str, Node]:
    found: dict[str, Node] = {}
    for each in (each for node in nodes for each in node.walk() if each.ref):
        found.setdefault(each.ref, each)
    return found


async def about(page: Page, mask: Callable[[str], str]) -> dict[str, Any]:
    """Return the title and the URL of a page; no title if the page does not answer."""
    title = ""
    # It may be on its way to another page.
    with suppress(*FAILURES), anyio.move_on_after(TITLE_WITHIN):
        title = await page.title()
    return {
        "title": shorten(one_line(mask(title)), 120),
        "url": shorten(mask(page.url), 500),
    }


def described(role: str, name: str) -> str:
    """Return an element for users, as in `button "Buy"`."""
    name = one_line(shorten(name, 60))
    return f"{role} {json.dumps(name, ensure_ascii=False)}" if name else role
