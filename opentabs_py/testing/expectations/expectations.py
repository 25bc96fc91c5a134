"""Expectations about a call or a plugin: each waits until it holds, or can no longer hold.

The conditions are in `verdicts`. Each expectation is a generator that yields how long to wait until
the next check: the test's thread runs it, or an async test awaits it. So each is written only once;
its return type `R` is None or an awaitable.
"""

import inspect
import re
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from time import monotonic as clock
from types import TracebackType
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    get_args,
)

from opentabs_py.calling.running import RunningCall
from opentabs_py.core.tabs.selection import PluginStatus
from opentabs_py.core.text import quantity, visible
from opentabs_py.session.plugins.view import PluginView
from opentabs_py.testing.call import Call
from opentabs_py.testing.expectations import verdicts
from opentabs_py.testing.expectations.values import shortened
from opentabs_py.testing.expectations.verdicts import CallSnapshot, Verdict
from opentabs_py.testing.plugin_view import SyncPluginView
from opentabs_py.tracing.waterfall import report

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these

WITHIN = 5.0  # s; Playwright's own default
_LOOK_EVERY = 0.02  # s; the end of a call is seen at once

Level = Literal["debug", "info", "warning", "error"]
Awaited = Coroutine[Any, Any, None]
Watch = Generator[float, None, None]
P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound="Expectations[Any]")


@dataclass(frozen=True, slots=True)
class ExpectOptions:
    """Options of an expectation.

    Attributes:
        message: The test's own message.
        is_soft: The test continues if the expectation fails.
        within: Seconds to wait by default.
        negated: The expectation must not hold.
    """

    message: str | None
    is_soft: bool
    within: float
    negated: bool = False


def _opposite(method: Callable[Concatenate[E, P], R]) -> Callable[Concatenate[E, P], R]:
    """Return the `not_to_...` counterpart of a `to_...` method."""

    @wraps(method)
    def negated(self: E, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(self.negated(), *args, **kwargs)

    negated.__doc__ = f"The opposite of `{getattr(method, '__name__', '')}`."
    return negated


class Expectations(Generic[R]):
    """Base of the expectations of all subjects."""

    def __init__(self, name: str, options: ExpectOptions, go: Callable[[Watch], R]) -> None:
        self._name = name
        self._options = options
        self._go = go

    def negated(self) -> Self:
        """Return a copy that expects the opposite."""
        opposite = copy(self)
        opposite._options = replace(self._options, negated=True)  # noqa: SLF001 (of this class)
        return opposite

    def _watch(self, what: str, look: Callable[[], Verdict], within: float | None) -> Watch:
        """Check repeatedly until it holds, can no longer hold, or the time is over."""
        wanted = not self._options.negated
        allowed = self._options.within if within is None else check_within(within)
        end = clock() + allowed
        while (verdict := look()).holds is not wanted:
            left = end - clock()
            if left <= 0 or (verdict.holds is not None and not verdict.may_change):
                expected = f"expected {'' if wanted else 'not '}{what}, within {allowed:g} s"
                self._fail([f"{self._name}: {expected}", *self._shown(verdict.got)])
                return
            yield min(left, _LOOK_EVERY)

    def expect(self, what: str, look: Callable[[], Verdict], within: float | None) -> R:
        """Wait until `look` says that what is expected holds."""
        return self._go(self._watch(what, look, within))

    def _shown(self, got: str) -> list[str]:
        return [f"got: {got}"]

    def _fail(self, lines: Sequence[str]) -> None:
        message = [] if self._options.message is None else [self._options.message]
        error = AssertionError("\n".join([*message, visible("\n".join(lines))]))
        if not self._options.is_soft:
            raise error
        # pytest-playwright collects soft failures and fails the test at its end.
        from playwright._impl._assertions import (
            _record_soft_or_raise,  # pyright: ignore[reportPrivateUsage]
        )

        _record_soft_or_raise(error.with_traceback(_line_of_test()), True)


class CallExpectations(Expectations[R]):
    """Expectations about a call. Each waits at most `within` seconds, 5 by default.

    Each has an opposite, `not_to_...`, which waits until the call has ended if the condition could
    still become true.
    """

    def __init__(
        self, call: Call | RunningCall, options: ExpectOptions, go: Callable[[Watch], R]
    ) -> None:
        super().__init__(call.name, options, go)
        self._call = call.running if isinstance(call, Call) else call
        self._record_so_far = call.record_so_far

    def to_be_running(self, *, within: float | None = None) -> R:
        """Expect that the call has not ended."""
        return self._expect("to be running", verdicts.running, within)

    def to_succeed(self, *, within: float | None = None) -> R:
        """Expect that the call returns a value."""
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
        """Expect that the call ends with an error, and that the error has these fields.

        Args:
            code: For example `NOT_FOUND`.
            category: For example `auth`.
            retryable: Whether the same call may succeed later.
            message: A regular expression to search for in the error's text.
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
        """Expect that a timer ends the call: the idle timer, the ceiling, or either."""
        _check_word("which", which, ("idle", "ceiling"))
        what = "to time out" if which is None else f"to time out ({which})"
        return self._expect(what, partial(verdicts.timed_out, which=which), within)

    def to_be_cancelled(self, *, within: float | None = None) -> R:
        """Expect that the call is cancelled: by its caller, or by the user."""
        return self._expect("to be cancelled", verdicts.cancelled, within)

    def to_progress(
        self,
        reports: Sequence[Mapping[str, Any]] | None = None,
        *,
        min: int | None = None,  # noqa: A002
        monotonic: bool = False,
        within: float | None = None,
    ) -> R:
        """Expect that the tool reports progress.

        Args:
            reports: Exactly these reports, in this order; only the members given are compared.
                Waits for the end of the call.
            min: At least this many reports.
            monotonic: Each value is above the previous one; waits for the end of the call.
            within: Seconds to wait.
        """
        _check_progress(reports, min)
        judge = partial(verdicts.progressed, reports=reports, least=min, monotonic=monotonic)
        return self._expect(_progress_text(reports, min, monotonic=monotonic), judge, within)

    def to_match_output_schema(self, *, within: float | None = None) -> R:
        """Expect that the value matches the tool's output schema."""
        return self._expect("to match its output schema", verdicts.matches_schema, within)

    def to_return(self, subset: Any, *, within: float | None = None) -> R:
        """Expect that the value has these members, and possibly more.

        Lists must match item by item. `...` stands for any value, and inside a list for any number
        of items: `{"messages": [..., {"author": "Ada"}, ...]}`.
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
        """Expect that the plugin logs this text at this level in its page, during the call."""
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

    def _expect(
        self, what: str, judge: Callable[[CallSnapshot], Verdict], within: float | None
    ) -> R:
        return self.expect(what, lambda: judge(CallSnapshot.of(self._call)), within)

    def _shown(self, got: str) -> list[str]:
        now = verdicts.ending(CallSnapshot.of(self._call))
        lines = [f"got: {got}", *([] if now in got else [f"the call: {now}"])]
        record = self._record_so_far()
        if record is None:
            return lines
        return [*lines, "", report(record, is_running=not self._call.ended)]


class PluginExpectations(Expectations[R]):
    """Expectations about a plugin in the open pages; each has an opposite, `not_to_...`."""

    def __init__(
        self, plugin: PluginView | SyncPluginView, options: ExpectOptions, go: Callable[[Watch], R]
    ) -> None:
        super().__init__(f"plugin {plugin.name}", options, go)
        self._plugin = plugin

    def to_be_ready(self, *, within: float | None = None) -> R:
        """Expect that the plugin is ready in a page, so that its tools can be called."""
        return self._expect("ready", within)

    def to_be_unavailable(self, *, within: float | None = None) -> R:
        """Expect that pages of the plugin are open, but it is ready in none (e.g. signed out)."""
        return self._expect("unavailable", within)

    not_to_be_ready = _opposite(to_be_ready)
    not_to_be_unavailable = _opposite(to_be_unavailable)

    def _expect(self, wanted: PluginStatus, within: float | None) -> R:
        def look() -> Verdict:
            status = self._plugin.status
            # Pages come and go, and users sign in.
            return Verdict(status == wanted, status, may_change=True)

        return self.expect(f"to be {wanted}", look, within)


def _line_of_test() -> TracebackType | None:
    """Return a traceback of the line outside this package that called it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("opentabs_py."):
        frame = frame.f_back
    return None if frame is None else TracebackType(None, frame, frame.f_lasti, frame.f_lineno)


def _check_word(name: str, value: str | None, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        words = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise ValueError(f"{name}={value!r}: it must be {words}.")


def check_within(within: Any) -> float:
    """Return how long to wait.

    Raises:
        ValueError: It is not a number.
    """
    if type(within) not in (int, float):
        raise ValueError(f"within={within!r} must be a number of seconds.")
    return float(within)


def _check_progress(reports: Sequence[Mapping[str, Any]] | None, least: int | None) -> None:
    if reports is not None and least is not None:
        raise ValueError("Pass either the exact reports or min=, not both.")
    if least is not None and type(least) is not int:
        raise ValueError(f"min={least!r} must be a number of reports.")
    if reports is None:
        return
    if not _are_reports(reports):
        raise ValueError(f'{reports!r} must be a list of reports, such as [{{"progress": 1}}].')
    known = ("progress", "total", "message")
    for name in (name for each in reports for name in each):
        if name not in known:
            raise ValueError(f"A report has no {name!r}; use 'progress', 'total' or 'message'.")


def _are_reports(value: Any) -> bool:
    return type(value) in (list, tuple) and all(isinstance(each, Mapping) for each in value)


def _given(**fields: Any) -> str:
    # Show a pattern's own text, without Python's re.compile(...) around it.
    given = {name: getattr(value, "pattern", value) for name, value in fields.items()}
    joined = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    return f" with {joined}" if joined else ""


def _progress_text(
    reports: Sequence[Mapping[str, Any]] | None, least: int | None, *, monotonic: bool
) -> str:
    if reports is not None:
        text = f"to report progress {quantity(len(reports), 'time')}, as given"
    elif least is not None:
        text = f"to report progress at least {quantity(least, 'time')}"
    else:
        text = "to report progress"
    return f"{text}, increasing" if monotonic else text
