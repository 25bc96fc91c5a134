"""`expect`: the expectations of a call, a plugin or a page, and Playwright's own.

An expectation waits in the test's thread, or in its task if the test is async.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import anyio
from playwright import async_api, sync_api
from playwright._impl._async_base import AsyncBase
from playwright._impl._sync_base import SyncBase

from opentabs_py.calling.running import RunningCall
from opentabs_py.session.plugins.view import PluginView
from opentabs_py.testing.call import Call
from opentabs_py.testing.expectations.expectations import (
    WITHIN,
    Awaited,
    CallExpectations,
    Expectations,
    ExpectOptions,
    PluginExpectations,
    Watch,
    check_within,
)
from opentabs_py.testing.expectations.page_expectations import PageExpectations
from opentabs_py.testing.plugin_view import SyncPluginView
from opentabs_py.testing.sync_session import chain_of

if TYPE_CHECKING:
    from playwright.async_api import _generated as of_async
    from playwright.sync_api import _generated as of_sync

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these


class _Expect:
    """Expects something of a call, a plugin, a page, a locator or a response, and waits for it.

    In async tests, await expectations about calls and plugins of the async `OpenTabs`. For pages,
    locators and responses, this is Playwright's own `expect`.
    """

    def __init__(self, *, is_soft: bool) -> None:
        self._is_soft = is_soft
        self._within = WITHIN

    @overload
    def __call__(self, actual: Call, message: str | None = None) -> CallExpectations[None]: ...
    @overload
    def __call__(
        self, actual: SyncPluginView, message: str | None = None
    ) -> PluginExpectations[None]: ...
    @overload
    def __call__(
        self, actual: RunningCall, message: str | None = None
    ) -> CallExpectations[Awaited]: ...
    @overload
    def __call__(
        self, actual: PluginView, message: str | None = None
    ) -> PluginExpectations[Awaited]: ...
    @overload
    def __call__(self, actual: sync_api.Page, message: str | None = None) -> PageExpectations: ...
    @overload
    def __call__(
        self, actual: sync_api.Locator, message: str | None = None
    ) -> "of_sync.LocatorAssertions": ...
    @overload
    def __call__(
        self, actual: sync_api.APIResponse, message: str | None = None
    ) -> "of_sync.APIResponseAssertions": ...
    @overload
    def __call__(
        self, actual: async_api.Page, message: str | None = None
    ) -> "of_async.PageAssertions": ...
    @overload
    def __call__(
        self, actual: async_api.Locator, message: str | None = None
    ) -> "of_async.LocatorAssertions": ...
    @overload
    def __call__(
        self, actual: async_api.APIResponse, message: str | None = None
    ) -> "of_async.APIResponseAssertions": ...
    def __call__(self, actual: Any, message: str | None = None) -> Any:
        """Return the expectations for an object."""
        options = ExpectOptions(message, self._is_soft, self._within)
        match actual:
            case Call():
                return CallExpectations(actual, options, _in_thread(actual.wait_up_to))
            case SyncPluginView():
                return PluginExpectations(actual, options, _in_thread(actual.sleep))
            case RunningCall():
                return CallExpectations(actual, options, _in_task(partial(_end_of, actual)))
            case PluginView():
                return PluginExpectations(actual, options, _in_task(anyio.sleep))
            case AsyncBase() | SyncBase():
                api = async_api if isinstance(actual, AsyncBase) else sync_api
                of_playwright: Any = api.expect.soft if self._is_soft else api.expect
                expectations = of_playwright(actual, message)
                if isinstance(actual, sync_api.Page):
                    return _of_page(actual, expectations, options)
                return expectations
            case _:
                raise TypeError(
                    "expect() accepts a call, a plugin, a page, a locator or a response, not a "
                    f"{type(actual).__name__}. For a call's value, use "
                    "expect(call).to_return(...); for anything else, use assert."
                )


def _of_page(
    page: sync_api.Page, playwright: "of_sync.PageAssertions", options: ExpectOptions
) -> PageExpectations:
    def sleep(seconds: float) -> None:
        chain_of(page).sleep(seconds)

    own = Expectations[None](f"page {page.url}", options, _in_thread(sleep))
    return PageExpectations(page, playwright, own)


class Expect(_Expect):
    """The `expect` function, and `expect.soft`.

    Attributes:
        soft: Like `expect`, but the test continues and fails at its end with all failures.
    """

    def __init__(self) -> None:
        super().__init__(is_soft=False)
        self.soft = _Expect(is_soft=True)

    def set_options(self, *, within: float) -> None:
        """Set how many seconds to wait by default: for calls and plugins, and in Playwright's own.

        The latter is `set_options(timeout=...)` of Playwright's `expect`, sync and async.
        """
        self._within = self.soft._within = check_within(within)  # noqa: SLF001 (of this class)
        for api in (sync_api, async_api):
            api.expect.set_options(timeout=max(1.0, within * 1000))  # 0 would be its default


expect = Expect()
"""Expectations of a call (`CallExpectations`) or a plugin (`PluginExpectations`), and Playwright's.

`expect(call).to_succeed(within=5)` waits until the outcome is clear. In an async test, await it.
If `expect.soft(...)` fails, the test continues, and fails at its end.
`expect.set_options(within=10)` changes how long all of them wait.
"""


def _in_thread(pause: Callable[[float], None]) -> Callable[[Watch], None]:
    def go(watch: Watch) -> None:
        for seconds in watch:
            pause(seconds)

    return go


def _in_task(pause: Callable[[float], Awaitable[None]]) -> Callable[[Watch], Awaited]:
    async def expectation(watch: Watch) -> None:
        for seconds in watch:
            await pause(seconds)

    return expectation


async def _end_of(call: RunningCall, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await call.wait()
