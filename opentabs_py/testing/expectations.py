"""`expect(call)`: says what must come of a call, and waits until it has, or cannot any more."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic as clock
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from playwright.sync_api import APIResponse, Locator, Page
from playwright.sync_api import expect as expect_of_playwright

from opentabs_py.testing import verdicts
from opentabs_py.testing.call import Call
from opentabs_py.testing.tabs import PluginView
from opentabs_py.testing.verdicts import Seen, Verdict
from opentabs_py.tracing.waterfall import report

if TYPE_CHECKING:
    from playwright.sync_api._generated import (
        APIResponseAssertions,
        LocatorAssertions,
        PageAssertions,
    )

WITHIN = 5.0  # s; Playwright's own default
_LOOK_EVERY = 0.02  # s; the end of a call is seen at once

Level = Literal["debug", "info", "warning", "error"]


class _Changing(Protocol):
    def let_time_pass(self, seconds: float) -> None:
        """Wait for a change, or for this long."""
        ...


class _Expectations:
    """What the expectations of all subjects share."""

    def __init__(self, *, message: str | None, is_soft: bool, within: float) -> None:
        self._message = message
        self._is_soft = is_soft
        self._within = within

    def _fail(self, text: str) -> None:
        __tracebackhide__ = True
        error = AssertionError(text if self._message is None else f"{self._message}\n{text}")
        if not self._is_soft:
            raise error
        # pytest-playwright collects them for each test, and fails it at its end.
        from playwright._impl._assertions import (  # noqa: PLC0415
            _record_soft_or_raise,  # pyright: ignore[reportPrivateUsage]
        )

        _record_soft_or_raise(error, True)

    def _wait(
        self, subject: _Changing, look: Callable[[], Verdict], *, wanted: bool, within: float | None
    ) -> tuple[Verdict, float]:
        """Look again and again until it is so, cannot become so, or the time is over."""
        allowed = self._within if within is None else within
        end = clock() + allowed
        while True:
            verdict = look()
            left = end - clock()
            if (
                verdict.holds is wanted
                or left <= 0
                or (self._is_steady and verdict.holds is not None)
            ):
                return verdict, allowed
            subject.let_time_pass(min(left, _LOOK_EVERY))

    _is_steady = True  # what holds of the subject, or does not, stays so


class CallExpectations(_Expectations):
    """What must come of a call. Each waits `within` seconds at most, 5 by default.

    Each has its opposite, `not_to_...`, which waits until the call has ended wherever what it
    denies may still come.
    """

    def __init__(self, call: Call, *, message: str | None, is_soft: bool, within: float) -> None:
        super().__init__(message=message, is_soft=is_soft, within=within)
        self._call = call

    def to_succeed(self, *, within: float | None = None) -> None:
        """It gives a value."""
        __tracebackhide__ = True
        self._expect("to succeed", verdicts.succeeded, within)

    def not_to_succeed(self, *, within: float | None = None) -> None:
        """It ends, and gives none."""
        __tracebackhide__ = True
        self._expect("to succeed", verdicts.succeeded, within, wanted=False)

    def to_fail(
        self,
        *,
        code: str | None = None,
        category: str | None = None,
        retryable: bool | None = None,
        message: str | re.Pattern[str] | None = None,
        within: float | None = None,
    ) -> None:
        """It ends with an error, and what is given here is so of it.

        Args:
            code: As `NOT_FOUND`.
            category: As `auth`.
            retryable: Whether the same call may succeed later.
            message: A regular expression that finds something in the error's text.
            within: Seconds to wait.
        """
        __tracebackhide__ = True
        fields = {
            "code": code, "category": category, "retryable": retryable, "message": message
        }  # fmt: skip
        what = " ".join(["to fail", *_given(fields)])
        self._expect(what, partial(verdicts.failed, **fields), within)  # type: ignore[arg-type]

    def not_to_fail(
        self,
        *,
        code: str | None = None,
        category: str | None = None,
        retryable: bool | None = None,
        message: str | re.Pattern[str] | None = None,
        within: float | None = None,
    ) -> None:
        """It ends, and not with an error of which all that is given here is so."""
        __tracebackhide__ = True
        fields = {
            "code": code, "category": category, "retryable": retryable, "message": message
        }  # fmt: skip
        what = " ".join(["to fail", *_given(fields)])
        judge = partial(verdicts.failed, **fields)  # type: ignore[arg-type]
        self._expect(what, judge, within, wanted=False)

    def to_time_out(
        self, which: Literal["idle", "ceiling"] | None = None, *, within: float | None = None
    ) -> None:
        """A timer ends it: that of its silence, that of its whole time, or either."""
        __tracebackhide__ = True
        what = "to time out" if which is None else f"to time out ({which})"
        self._expect(what, partial(verdicts.timed_out, which=which), within)

    def not_to_time_out(
        self, which: Literal["idle", "ceiling"] | None = None, *, within: float | None = None
    ) -> None:
        """It ends, and not by that timer."""
        __tracebackhide__ = True
        what = "to time out" if which is None else f"to time out ({which})"
        self._expect(what, partial(verdicts.timed_out, which=which), within, wanted=False)

    def to_be_cancelled(self, *, within: float | None = None) -> None:
        """Its caller cancels it."""
        __tracebackhide__ = True
        self._expect("to be cancelled", verdicts.cancelled, within)

    def not_to_be_cancelled(self, *, within: float | None = None) -> None:
        """It ends by itself."""
        __tracebackhide__ = True
        self._expect("to be cancelled", verdicts.cancelled, within, wanted=False)

    def to_progress(
        self,
        reports: Sequence[Mapping[str, Any]] | None = None,
        *,
        min: int | None = None,  # noqa: A002
        monotonic: bool = False,
        within: float | None = None,
    ) -> None:
        """It reports progress.

        Args:
            reports: These and no others, in this order; of each only the members given here.
            min: At least so many.
            monotonic: Each with a higher value than the one before; waits for the call's end.
            within: Seconds to wait.
        """
        __tracebackhide__ = True
        judge = partial(verdicts.progressed, reports=reports, least=min, monotonic=monotonic)
        self._expect(_progress_text(reports, min, monotonic=monotonic), judge, within)

    def not_to_progress(
        self,
        reports: Sequence[Mapping[str, Any]] | None = None,
        *,
        min: int | None = None,  # noqa: A002
        monotonic: bool = False,
        within: float | None = None,
    ) -> None:
        """It ends, and has not reported so; without arguments, not at all."""
        __tracebackhide__ = True
        judge = partial(verdicts.progressed, reports=reports, least=min, monotonic=monotonic)
        what = _progress_text(reports, min, monotonic=monotonic)
        self._expect(what, judge, within, wanted=False)

    def to_match_output_schema(self, *, within: float | None = None) -> None:
        """Its value is what the tool's output schema promises."""
        __tracebackhide__ = True
        self._expect("to match its output schema", verdicts.matches_schema, within)

    def not_to_match_output_schema(self, *, within: float | None = None) -> None:
        """It ends, and its value is not what the tool's output schema promises."""
        __tracebackhide__ = True
        self._expect("to match its output schema", verdicts.matches_schema, within, wanted=False)

    def to_return(self, subset: Any, *, within: float | None = None) -> None:
        """Its value has these members, and maybe more; of lists every item is given."""
        __tracebackhide__ = True
        what = f"to return {verdicts.shortened(subset)}"
        self._expect(what, partial(verdicts.returned, expected=subset), within)

    def not_to_return(self, subset: Any, *, within: float | None = None) -> None:
        """It ends, and its value has not all of these members."""
        __tracebackhide__ = True
        what = f"to return {verdicts.shortened(subset)}"
        self._expect(what, partial(verdicts.returned, expected=subset), within, wanted=False)

    def to_log(
        self,
        level: Level | None = None,
        text: str | re.Pattern[str] | None = None,
        *,
        within: float | None = None,
    ) -> None:
        """Its plugin logs, in its page while it runs: at this level, with this text in it."""
        __tracebackhide__ = True
        what = " ".join(["to log", *_given({"level": level, "text": text})])
        self._expect(what, partial(verdicts.logged, level=level, text=text), within)

    def not_to_log(
        self,
        level: Level | None = None,
        text: str | re.Pattern[str] | None = None,
        *,
        within: float | None = None,
    ) -> None:
        """It ends, and its plugin has logged no such thing."""
        __tracebackhide__ = True
        what = " ".join(["to log", *_given({"level": level, "text": text})])
        judge = partial(verdicts.logged, level=level, text=text)
        self._expect(what, judge, within, wanted=False)

    def _expect(
        self,
        what: str,
        judge: Callable[[Seen], Verdict],
        within: float | None,
        *,
        wanted: bool = True,
    ) -> None:
        __tracebackhide__ = True
        verdict, allowed = self._wait(
            self._call, lambda: judge(seen(self._call)), wanted=wanted, within=within
        )
        if verdict.holds is wanted:
            return
        now = verdicts.ending(seen(self._call))
        lines = [
            f"{self._call.name}: expected {'' if wanted else 'not '}{what}, within {allowed:g} s",
            f"got: {verdict.got}",
            *([] if now in verdict.got else [f"the call: {now}"]),
        ]
        if self._call.record is not None:
            lines += ["", report(self._call.record)]
        self._fail("\n".join(lines))


class PluginExpectations(_Expectations):
    """How a plugin must stand in the open pages."""

    def __init__(
        self, plugin: PluginView, *, message: str | None, is_soft: bool, within: float
    ) -> None:
        super().__init__(message=message, is_soft=is_soft, within=within)
        self._plugin = plugin

    def to_be_ready(self, *, within: float | None = None) -> None:
        """Its tools can be called: it is ready in a page."""
        __tracebackhide__ = True
        self._expect("ready", within, wanted=True)

    def not_to_be_ready(self, *, within: float | None = None) -> None:
        """It is ready in no page."""
        __tracebackhide__ = True
        self._expect("ready", within, wanted=False)

    def to_be_unavailable(self, *, within: float | None = None) -> None:
        """A page of it is open, and it is not ready in any: signed out, say."""
        __tracebackhide__ = True
        self._expect("unavailable", within, wanted=True)

    def not_to_be_unavailable(self, *, within: float | None = None) -> None:
        """It is ready in a page, or none of its pages is open."""
        __tracebackhide__ = True
        self._expect("unavailable", within, wanted=False)

    _is_steady = False  # pages come and go, and people sign in

    def _expect(self, state: str, within: float | None, *, wanted: bool) -> None:
        __tracebackhide__ = True

        def look() -> Verdict:
            readiness = self._plugin.readiness
            return Verdict(readiness == state, readiness)

        verdict, allowed = self._wait(self._plugin, look, wanted=wanted, within=within)
        if verdict.holds is not wanted:
            negated = "" if wanted else "not "
            self._fail(
                f"plugin {self._plugin.name}: expected {negated}to be {state}, within "
                f"{allowed:g} s\ngot: {verdict.got}"
            )


class Expect:
    """Says what must be so of a call, a plugin, or one of Playwright's objects, and waits for it.

    What it says of a page, a locator or a response is Playwright's own `expect`.
    """

    def __init__(self) -> None:
        self._within = WITHIN

    def set_options(self, *, within: float) -> None:
        """Set how long calls and plugins are waited for, in seconds, where nothing is given."""
        self._within = within

    @overload
    def __call__(self, actual: Call, message: str | None = None) -> CallExpectations: ...
    @overload
    def __call__(self, actual: PluginView, message: str | None = None) -> PluginExpectations: ...
    @overload
    def __call__(self, actual: Page, message: str | None = None) -> "PageAssertions": ...
    @overload
    def __call__(self, actual: Locator, message: str | None = None) -> "LocatorAssertions": ...
    @overload
    def __call__(
        self, actual: APIResponse, message: str | None = None
    ) -> "APIResponseAssertions": ...
    def __call__(self, actual: Any, message: str | None = None) -> Any:
        """Give the expectations of something."""
        return self._expectations(actual, message, is_soft=False)

    @overload
    def soft(self, actual: Call, message: str | None = None) -> CallExpectations: ...
    @overload
    def soft(self, actual: PluginView, message: str | None = None) -> PluginExpectations: ...
    @overload
    def soft(self, actual: Page, message: str | None = None) -> "PageAssertions": ...
    @overload
    def soft(self, actual: Locator, message: str | None = None) -> "LocatorAssertions": ...
    @overload
    def soft(self, actual: APIResponse, message: str | None = None) -> "APIResponseAssertions": ...
    def soft(self, actual: Any, message: str | None = None) -> Any:
        """The same, but the test goes on, and fails at its end with all that failed."""
        return self._expectations(actual, message, is_soft=True)

    def _expectations(self, actual: Any, message: str | None, *, is_soft: bool) -> Any:
        if isinstance(actual, Call):
            return CallExpectations(actual, message=message, is_soft=is_soft, within=self._within)
        if isinstance(actual, PluginView):
            return PluginExpectations(actual, message=message, is_soft=is_soft, within=self._within)
        of_playwright: Any = expect_of_playwright.soft if is_soft else expect_of_playwright
        return of_playwright(actual, message)


expect = Expect()


def seen(call: Call) -> Seen:
    """Give what is known of a call now."""
    ended = call.ended  # first: what is read later is then complete
    return Seen(
        name=call.name,
        ended=ended,
        cancelled=call.cancelled,
        value=call.value if ended and call.error is None and not call.cancelled else None,
        error=call.error,
        reports=call.progress,
        logs=call.logs,
        output_schema=call.output_schema,
    )


def _given(fields: Mapping[str, object]) -> list[str]:
    given = {name: value for name, value in fields.items() if value is not None}
    joined = ", ".join(f"{name}={_plain(value)!r}" for name, value in given.items())
    return [f"with {joined}"] if joined else []


def _plain(value: Any) -> object:
    # A pattern's own text, without what Python writes around it.
    return getattr(value, "pattern", value)


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
