"""`expect(page).to_offer_tool(...)`, beside Playwright's expectations of a page."""

from playwright.sync_api import Page
from playwright.sync_api import _generated as of_playwright

from opentabs_py.testing.expectations.expectations import Expectations
from opentabs_py.testing.expectations.verdicts import Verdict
from opentabs_py.testing.sync_session import chain_of


class PageExpectations(of_playwright.PageAssertions):
    """Playwright's expectations of a page, and those of the tools that it registers itself.

    Each waits at most `within` seconds, 5 by default.
    """

    def __init__(
        self,
        page: Page,
        playwright: of_playwright.PageAssertions,
        expectations: Expectations[None],
    ) -> None:
        super().__init__(playwright._impl_obj)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        self._page = page
        self._expectations = expectations

    def to_offer_tool(self, name: str, *, within: float | None = None) -> None:
        """Expect that the page offers a tool of this name, registered or as a form."""
        __tracebackhide__ = True
        self._expect(self._expectations, name, within)

    def not_to_offer_tool(self, name: str, *, within: float | None = None) -> None:
        """Expect that the page offers no tool of this name."""
        __tracebackhide__ = True
        self._expect(self._expectations.negated(), name, within)

    def _expect(self, expectations: Expectations[None], name: str, within: float | None) -> None:
        __tracebackhide__ = True

        def look() -> Verdict:
            names = [tool.name for tool in chain_of(self._page).page_tools(self._page)]
            got = f"it offers {', '.join(names) or 'none'}"
            return Verdict(name in names, got, may_change=True)

        expectations.expect(f"to offer the tool {name!r}", look, within)
