"""The hands in tests: `opentabs.hands` calls them as an agent does."""

import re
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import Page

from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.core.plugin_names import HANDS
from opentabs_py.errors import ConfigError
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.arguments import merged
from opentabs_py.testing.call import Call, Caller
from opentabs_py.testing.thread import ServerThread

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these

FOUND_WITHIN = 10.0  # s; takes some ms


class SyncHands:
    """The tools that read and operate any page; see docs/hands.md.

    Each call takes the page in which it acts, or `opentabs.page` by default.
    """

    def __init__(self, caller: Caller, session: OpenTabs, thread: ServerThread) -> None:
        self._caller = caller
        self._session = session
        self._thread = thread
        self._targets: WeakKeyDictionary[Page, str] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<SyncHands of {self._session.mcp_url}>"

    def snapshot(self, page: Page | None = None, **more: Any) -> str:
        """Return what a page shows, as `page_snapshot` does.

        Args:
            page: The page.
            more: Arguments of the tool, such as `links` or `maxTokens`.
        """
        return str(self.call("page_snapshot", page=page, **more)["snapshot"])

    def ref(self, what: str, page: Page | None = None) -> str:
        """Find an element in a snapshot of a page, and return its reference.

        Args:
            what: How the element begins there: `button "Order"`.
            page: The page.

        Raises:
            LookupError: It is not there, or several are.
        """
        shown = self.snapshot(page)
        pattern = rf"(?<![^\s|]){re.escape(what)}(?=\s)[^\n|]*?\s((?:f\d+)?e\d+)\b"
        found = [*dict.fromkeys(re.findall(pattern, shown))]
        if len(found) != 1:
            problem = f"no {what}" if not found else f"{what} at {', '.join(found)}"
            raise LookupError(f"The page has {problem}:\n{shown}")
        return str(found[0])

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        page: Page | None = None,
        **more: Any,
    ) -> Any:
        """Call a tool in a page, and return its value: `call("page_click", ref="e9")`.

        Raises:
            CallError: The call failed; `error.detail` says why.
            ConfigError: Hands are not turned on in the settings.
        """
        return self._caller.call(name, self._given(arguments, more, page))

    def start(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        page: Page | None = None,
        **more: Any,
    ) -> Call:
        """Start a call in a page, for `expect(call)`; see `SyncOpenTabs.start`."""
        return self._caller.start(name, self._given(arguments, more, page))

    def _given(
        self, arguments: Mapping[str, Any] | None, more: Mapping[str, Any], page: Page | None
    ) -> Mapping[str, Any]:
        if not self._session.settings.hands:
            raise ConfigError(
                f"The tools of {HANDS} are not served. Set hands = true under [tool.opentabs] in "
                "pyproject.toml."
            )
        return {TAB_ID: self._tab(page or self._caller.page), **merged(arguments, more)}

    def _tab(self, page: Page) -> int:
        """Return the number of a page's tab."""
        target = self._targets.get(page)
        if target is None:
            session: Any = page.context.new_cdp_session(page)
            info = session.send("Target.getTargetInfo")
            session.detach()
            target = self._targets[page] = str(info["targetInfo"]["targetId"])
        found = self._thread.run(
            self._session.internals.bridge.tab_requests.targets, within=FOUND_WITHIN
        )
        number = next((each.tab_id for each in found if each.target_id == target), None)
        if number is None:
            raise LookupError(f"The browser of this test has no tab with {page.url}.")
        return number
