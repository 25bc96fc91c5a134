"""The tools that a page registers itself, in tests; and `expect(page).to_offer_tool(...)`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from playwright.sync_api import Page
from playwright.sync_api import _generated as of_playwright

from opentabs_py.bridge.page_tool import PageTool
from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.testing.call import Call
from opentabs_py.testing.verdicts import Verdict

if TYPE_CHECKING:
    from opentabs_py.testing.expectations import Expectations
    from opentabs_py.testing.tabs import SyncOpenTabs

_CHAIN = "_opentabs_chain"  # an attribute of a test's browser context


class SyncPageTool:
    """A tool that a page registered itself; its calls run in that page.

    Attributes:
        name: The tool's name in the page.
        mcp_name: The tool's name for MCP clients.
        opentabs: The chain.
    """

    def __init__(self, tool: PageTool, tab_id: int, opentabs: "SyncOpenTabs") -> None:
        self.name = tool.tool.registered.name
        self.mcp_name = tool.listing.name
        self.opentabs = opentabs
        self._tool = tool
        self._tab_id = tab_id

    def __repr__(self) -> str:
        return f"<SyncPageTool {self.name}>"

    @property
    def title(self) -> str:
        """The tool's title, as the page wrote it; empty if it has none."""
        return self._tool.tool.registered.title

    @property
    def description(self) -> str:
        """The tool's description, as the page wrote it."""
        return self._tool.tool.registered.description

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments, as the page wrote it."""
        return self._tool.tool.registered.input_schema

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The tool's hints, as MCP clients see them."""
        return self._tool.tool.annotations

    def call(self, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
        """Call it, wait until it has ended, and return its value; see `SyncOpenTabs.call`."""
        __tracebackhide__ = True
        return self.opentabs.call(self.mcp_name, self._given(arguments, more))

    def start(self, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Call:
        """Start a call, and return it once it has been sent; see `SyncOpenTabs.start`."""
        return self.opentabs.start(self.mcp_name, self._given(arguments, more))

    def _given(self, arguments: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Any:
        return {**(arguments or {}), **more, TAB_ID: self._tab_id}


class PageExpectations(of_playwright.PageAssertions):
    """Playwright's expectations of a page, and those of the tools that it registers itself.

    Each waits at most `within` seconds, 5 by default.
    """

    def __init__(
        self,
        page: Page,
        playwright: of_playwright.PageAssertions,
        expectations: "Expectations[None]",
    ) -> None:
        super().__init__(playwright._impl_obj)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._page = page
        self._expectations = expectations

    def to_offer_tool(self, name: str, *, within: float | None = None) -> None:
        """Expect that the page offers a tool of this name, registered or as a form."""
        __tracebackhide__ = True
        self._expect(self._expectations, name, within)

    def not_to_offer_tool(self, name: str, *, within: float | None = None) -> None:
        """The opposite of `to_offer_tool`."""
        __tracebackhide__ = True
        self._expect(self._expectations.negated(), name, within)

    def _expect(self, expectations: "Expectations[None]", name: str, within: float | None) -> None:
        __tracebackhide__ = True

        def look() -> Verdict:
            names = [tool.name for tool in chain_of(self._page).page_tools(self._page)]
            got = f"it offers {', '.join(names) or 'none'}"
            return Verdict(name in names, got, may_change=True)

        expectations.expect(f"to offer the tool {name!r}", look, within)


def attach_chain(opentabs: "SyncOpenTabs") -> None:
    """Let `expect(page)` find the chain of a page's browser."""
    setattr(opentabs.context, _CHAIN, opentabs)


def chain_of(page: Page) -> "SyncOpenTabs":
    """Return the chain of a page's browser.

    Raises:
        TypeError: It is not a browser with the extension.
    """
    chain: SyncOpenTabs | None = getattr(page.context, _CHAIN, None)
    if chain is None:
        raise TypeError("Only a page of the browser of the fixture `opentabs` has tools to expect.")
    return chain
