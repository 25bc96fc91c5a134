"""`expect(call)`: says what must come of a call, and waits until it has, or cannot any more.

What is judged is in `verdicts`. Each expectation is a generator that says how long to wait until
it looks again: the thread of a test goes through it, or an async test awaits it. So each is
written once; what it gives, `R`, is None, or what is awaited.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from time import monotonic as clock
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    get_args,
    overload,
)

import anyio
from playwright import async_api, sync_api
from playwright._impl._async_base import AsyncBase
from playwright._impl._sync_base import SyncBase

from opentabs_py.calls import RunningCall
from opentabs_py.core.text import visible
from opentabs_py.plugin_set import PluginView
from opentabs_py.testing import verdicts
from opentabs_py.testing.call import Call
from opentabs_py.testing.tabs import SyncPluginView
from opentabs_py.testing.values import shortened
from opentabs_py.testing.verdicts import Seen, Verdict
from opentabs_py.tracing.waterfall import report

if TYPE_CHECKING:
    from playwright.async_api import _generated as of_async
    from playwright.sync_api import _generated as of_sync

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these

WITHIN = 5.0  # s; Playwright's own default
_LOOK_EVERY = 0.02  # s; the end of a call is seen at once

Level = Literal["debug", "info", "warning", "error"]
Awaited = Coroutine[Any, Any, None]
Watch = Generator[float, None, None]
P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound="_Expectations[Any]")


@dataclass(frozen=True, slots=True)
class _Asked:
    """How something is expected.

    Attributes:
        message: What the test says of it.
        is_soft: The test goes on if it is not so.
        within: Seconds to wait, where nothing is given.
        negated: It must not be so.
    """

    message: str | None
    is_soft: bool
    within: float
    negated: bool = False


def _opposite(method: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """Make `not_to_...` of `to_...`."""

    @wraps(method)
    def negated(self: E, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(self.negated(), *args, **kwargs)

    negated.__doc__ = f"It is not so; else as `{getattr(method, '__name__', '')}`."
    return negated


class _Expectations(Generic[R]):
    """What the expectations of all subjects share."""

    def __init__(self, name: str, asked: _Asked, go: Callable[[Watch], R]) -> None:
        self._name = name
        self._asked = asked
        self._go = go

    def negated(self) -> Self:
        """Give the same, expected not to be so."""
        opposite = copy(self)
        opposite._asked = replace(self._asked, negated=True)  # noqa: SLF001 (of this class)
        return opposite

    def _watch(self, what: str, look: Callable[[], Verdict], within: float | None) -> Watch:
        """Look again and again until it is so, cannot become so, or the time is over."""
        wanted = not self._asked.negated
        allowed = self._asked.within if within is None else within
        end = clock() + allowed
        while (verdict := look()).holds is not wanted:
            left = end - clock()
            if left <= 0 or (verdict.holds is not None and not verdict.may_change):
                expected = f"expected {'' if wanted else 'not '}{what}, within {allowed:g} s"
                self._fail([f"{self._name}: {expected}", *self._shown(verdict.got)])
                return
            yield min(left, _LOOK_EVERY)

    def _shown(self, got: str) -> list[str]:
        return [f"got: {got}"]

    def _fail(self, lines: Sequence[str]) -> None:
        message = [] if self._asked.message is None else [self._asked.message]
        error = AssertionError("\n".join([*message, visible("\n".join(lines))]))
        if not self._asked.is_soft:
            raise error
        # pytest-playwright collects them for each test, and fails it at its end.
        from playwright._impl._assertions import (  # noqa: PLC0415
            _record_soft_or_raise,  # pyright: ignore[reportPrivateUsage]
        )

        _record_soft_or_raise(error.with_traceback(_line_of_test()), True)


class CallExpectations(_Expectations[R]):
    """What must come of a call. Each waits `within` seconds at most, 5 by default.

    Each has its opposite, `not_to_...`, which waits until the call has ended wherever what it
    denies may still come.
    """

    def __init__(self, call: Call | RunningCall, asked: _Asked, go: Callable[[Watch], R]) -> None:
        super().__init__(call.name, asked, go)
        self._call = call.running if isinstance(call, Call) else call
        self._record_so_far = call.record_so_far

    def to_be_running(self, *, within: float | None = None) -> R:
        """It has not ended."""
        return self._expect("to be running", verdicts.running, within)

    def to_succeed(self, *, within: float | None = None) -> R:
        """It gives a value."""
        return self._expect("to succeed", verdicts.succeeded, within)

    def to_fail(
        self,
        *,
        code: str | None = None,
        category: str | None = None,
        retryable: bool | None = None,
        message: str | re.Pattern[str] | None = None,
        within: float | None = None,
    ) -> R:
        """It ends with an error, and what is given here is so of it.

        Args:
            code: As `NOT_FOUND`.
            category: As `auth`.
            retryable: Whether the same call may succeed later.
            message: A regular expression that finds something in the error's text.
            within: Seconds to wait.
        """
        judge = partial(
            verdicts.failed, code=code, category=category, retryable=retryable, message=message
        )
        given = _given(code=code, category=category, retryable=retryable, message=message)
        return self._expect(f"to fail{given}", judge, within)

    def to_time_out(
        self, which: Literal["idle", "ceiling"] | None = None, *, within: float | None = None
    ) -> R:
        """A timer ends it: that of its silence, that of its whole time, or either."""
        _check_word("which", which, ("idle", "ceiling"))
        what = "to time out" if which is None else f"to time out ({which})"
        return self._expect(what, partial(verdicts.timed_out, which=which), within)

    def to_be_cancelled(self, *, within: float | None = None) -> R:
        """Its caller cancels it."""
        return self._expect("to be cancelled", verdicts.cancelled, within)

    def to_progress(
        self,
        reports: Sequence[Mapping[str, Any]] | None = None,
        *,
        min: int | None = None,  # noqa: A002
        monotonic: bool = False,
        within: float | None = None,
    ) -> R:
        """It reports progress.

        Args:
            reports: These and no others, in this order; of each only the members given here.
            min: At least so many.
            monotonic: Each with a higher value than the one before; waits for the call's end.
            within: Seconds to wait.
        """
        judge = partial(verdicts.progressed, reports=reports, least=min, monotonic=monotonic)
        return self._expect(_progress_text(reports, min, monotonic=monotonic), judge, within)

    def to_match_output_schema(self, *, within: float | None = None) -> R:
        """Its value is what the tool's output schema promises."""
        return self._expect("to match its output schema", verdicts.matches_schema, within)

    def to_return(self, subset: Any, *, within: float | None = None) -> R:
        """Its value has these members, and maybe more.

        Of lists every item is given; `...` stands for any value, and in a list for any number of
        items: `{"messages": [..., {"author": "Ada"}, ...]}`.
        """
        what = f"to return {shortened(subset)}"
        return self._expect(what, partial(verdicts.returned, expected=subset), within)

    def to_log(
        self,
        level: Level | None = None,
        text: str | re.Pattern[str] | None = None,
        *,
        within: float | None = None,
    ) -> R:
        """Its plugin logs, in its page while it runs: at this level, with this text in it."""
        _check_word("level", level, get_args(Level))
        judge = partial(verdicts.logged, level=level, text=text)
        return self._expect(f"to log{_given(level=level, text=text)}", judge, within)

    not_to_be_running = _opposite(to_be_running)
    not_to_succeed = _opposite(to_succeed)
    not_to_fail = _opposite(to_fail)
    not_to_time_out = _opposite(to_time_out)
    not_to_be_cancelled = _opposite(to_be_cancelled)
    not_to_progress = _opposite(to_progress)
    not_to_match_output_schema = _opposite(to_match_output_schema)
    not_to_return = _opposite(to_return)
    not_to_log = _opposite(to_log)

    def _expect(self, what: str, judge: Callable[[Seen], Verdict], within: float | None) -> R:
        return self._go(self._watch(what, lambda: judge(seen(self._call)), within))

    def _shown(self, got: str) -> list[str]:
        now = verdicts.ending(seen(self._call))
        lines = [f"got: {got}", *([] if now in got else [f"the call: {now}"])]
        record = self._record_so_far()
        if record is None:
            return lines
        return [*lines, "", report(record, is_running=not self._call.ended)]


class PluginExpectations(_Expectations[R]):
    """How a plugin must stand in the open pages; each has its opposite, `not_to_...`."""

    def __init__(
        self, plugin: PluginView | SyncPluginView, asked: _Asked, go: Callable[[Watch], R]
    ) -> None:
        super().__init__(f"plugin {plugin.name}", asked, go)
        self._plugin = plugin

    def to_be_ready(self, *, within: float | None = None) -> R:
        """Its tools can be called: it is ready in a page."""
        return self._expect("ready", within)

    def to_be_unavailable(self, *, within: float | None = None) -> R:
        """A page of it is open, and it is not ready in any: signed out, say."""
        return self._expect("unavailable", within)

    not_to_be_ready = _opposite(to_be_ready)
    not_to_be_unavailable = _opposite(to_be_unavailable)

    def _expect(self, state: str, within: float | None) -> R:
        def look() -> Verdict:
            readiness = self._plugin.readiness
            # Pages come and go, and people sign in.
            return Verdict(readiness == state, readiness, may_change=True)

        return self._go(self._watch(f"to be {state}", look, within))


class _Expect:
    """Says what must be so of something, and waits for it.

    In async tests, of calls and plugins of the async `OpenTabs`, it is awaited. What it says of a
    page, a locator or a response is Playwright's own `expect`.
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
    def __call__(
        self, actual: sync_api.Page, message: str | None = None
    ) -> "of_sync.PageAssertions": ...
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
        """Give the expectations of something."""
        asked = _Asked(message, self._is_soft, self._within)
        match actual:
            case Call():
                return CallExpectations(actual, asked, _in_thread(actual.let_time_pass))
            case SyncPluginView():
                return PluginExpectations(actual, asked, _in_thread(actual.let_time_pass))
            case RunningCall():
                return CallExpectations(actual, asked, _in_task(partial(_end_of, actual)))
            case PluginView():
                return PluginExpectations(actual, asked, _in_task(anyio.sleep))
            case AsyncBase() | SyncBase():
                api = async_api if isinstance(actual, AsyncBase) else sync_api
                of_playwright: Any = api.expect.soft if self._is_soft else api.expect
                return of_playwright(actual, message)
            case _:
                raise TypeError(
                    "expect() takes a call, a plugin, a page, a locator or a response, not a "
                    f"{type(actual).__name__}. Of a call's value say "
                    "expect(call).to_return(...); of any other, assert it."
                )


class Expect(_Expect):
    """The same, and of the tests that go on: `expect.soft`.

    Attributes:
        soft: The test goes on, and fails at its end with all that failed.
    """

    def __init__(self) -> None:
        super().__init__(is_soft=False)
        self.soft = _Expect(is_soft=True)

    def set_options(self, *, within: float) -> None:
        """Set how long calls and plugins are waited for, in seconds, where nothing is given."""
        self._within = self.soft._within = within  # noqa: SLF001 (of this class)


expect = Expect()


def seen(call: RunningCall) -> Seen:
    """Give what is known of a call now."""
    ended = call.ended  # first: what is read later is then complete
    return Seen(
        name=call.name,
        ended=ended,
        cancelled=call.cancelled,
        value=call.value if ended and call.error is None and not call.cancelled else None,
        error=call.error,
        reports=tuple(call.reports),
        logs=tuple(call.logs),
        output_schema=call.output_schema,
    )


def _line_of_test() -> TracebackType | None:
    """Return a traceback of the line outside this package that called it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("opentabs_py."):
        frame = frame.f_back
    return None if frame is None else TracebackType(None, frame, frame.f_lasti, frame.f_lineno)


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
        await call.wait_end()


def _check_word(name: str, value: str | None, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        words = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise ValueError(f"{name}={value!r}: it must be {words}.")


def _given(**fields: Any) -> str:
    # Of a pattern its own text, without what Python writes around it.
    given = {name: getattr(value, "pattern", value) for name, value in fields.items()}
    joined = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    return f" with {joined}" if joined else ""


def _progress_text(
    reports: Sequence[Mapping[str, Any]] | None, least: int | None, *, monotonic: bool
) -> str:
    if reports is not None:
        text = f"to report progress {len(reports)} times, as given"
    elif least is not None:
        text = f"to report progress {least} times at least"
    else:
        text = "to report progress"
    return f"{text}, increasing" if monotonic else text
