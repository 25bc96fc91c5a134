"""`expect_contract(tool)`: draw arguments, call, and shrink what breaks a promise."""

import logging
import signal
import warnings
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from threading import current_thread, main_thread
from time import monotonic
from types import FrameType
from typing import Any, Final

from hypothesis import Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning, Unsatisfiable
from hypothesis.statistics import collector
from hypothesis.strategies import SearchStrategy

from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.core.text import quantity
from opentabs_py.testing.expectations.values import shortened
from opentabs_py.testing.expectations.verdicts import CallSnapshot
from opentabs_py.testing.fuzz.contract import Breach, setup_problem
from opentabs_py.testing.fuzz.drawing import HEALTH_CHECKS, undrawn, values_of
from opentabs_py.testing.fuzz.errors import ContractError
from opentabs_py.testing.fuzz.probing import Arguments, Probe
from opentabs_py.testing.fuzz.reproduction import FuzzedTool, reproduction
from opentabs_py.testing.fuzz.values import key_of
from opentabs_py.testing.sync_session import SyncTool

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these

CALLS: Final = 100
WITHIN: Final = 5.0  # s; as long as expect(call) waits
STOPS_WITHIN: Final = 1.0  # s; a tool that listens to the signal stops within milliseconds
_SHRINK_WITHIN: Final = 20.0  # s; a call that hangs takes as long as it may, at each attempt
_QUICK: Final = 0.1  # s; each call of a quicker tool is followed by one that must still succeed
_CALLS_A_CANCEL: Final = 10  # of 10 inputs that were called, one call is cancelled
_CONFIRMATIONS: Final = 3  # with the minimal input; a busy machine may hide a failure
_CANCELS: Final = 5  # at least; the moment matters more than the input
_FEW: Final = 10  # inputs for each one that is different from which on they are too much alike
_RELOAD_AFTER: Final = frozenset({"end", "page", "cancel", "other"})  # the page may be broken


@dataclass(frozen=True, slots=True)
class _Found:
    """What breaks a promise.

    Attributes:
        breach: The promise.
        arguments: Those of the call.
        unaffected: Those of a call before it, which it affects.
        cancel_after: After how many seconds the call is cancelled; None if it is not.
    """

    breach: Breach
    arguments: Arguments
    unaffected: Arguments | None = None
    cancel_after: float | None = None


class _Broken(Exception):  # noqa: N818 (it tells Hypothesis what to shrink)
    pass


def expect_contract(
    tool: SyncTool,
    arguments: Mapping[str, Any] | None = None,
    *,
    calls: int = CALLS,
    seed: int = 0,
    within: float = WITHIN,
    stops_within: float = STOPS_WITHIN,
    fixed: Mapping[str, Any] | None = None,
    codes: Collection[str] = (),
    may_fetch: Sequence[str] = (),
    unaffected: Mapping[str, Any] | None = None,
    cancel_after: float | None = None,
) -> None:
    """Expect that a tool keeps its contract with agents, whatever valid arguments it gets.

    Arguments are drawn from its input schema. Each call has to end in time, with a value that
    matches the output schema or with a documented code; progress has to increase; a cancelled call
    has to stop; no call may affect another; and its page may fetch nothing outside the plugin's
    sites. If a call breaks a promise, its arguments are shrunk to the minimal ones that still do.

    Args:
        tool: The tool, from `opentabs.tool(name)`; a page in which it is ready has to be open.
        arguments: Check these only, instead of drawing any.
        calls: How many arguments to draw.
        seed: Other seeds draw other arguments.
        within: Seconds that a call may take.
        stops_within: Seconds in which a cancelled tool has to stop.
        fixed: Arguments that every call gets, such as the id of something that exists.
        codes: Codes of the tool's own errors, besides those of the SDK and those that its
            description names.
        may_fetch: Match patterns of what it may fetch outside the plugin's sites.
        unaffected: With `arguments`: others that succeed before, and have to succeed afterwards.
        cancel_after: With `arguments`: cancel the call this many seconds after its tool starts.

    Raises:
        ContractError: The tool broke a promise, or cannot be called here.
        KeyboardInterrupt: The user pressed Ctrl-C; its cause is a `ContractError` if the tool had
            broken a promise by then.
    """
    __tracebackhide__ = True
    given: Any = tool
    if not isinstance(given, SyncTool):
        raise TypeError(
            "expect_contract() accepts a tool, as in expect_contract(opentabs.tool(name)), "
            f"not {given!r}"
        )
    probe = Probe(tool, within=within, stops_within=stops_within, codes=codes, may_fetch=may_fetch)
    options = _without_defaults(
        within=(within, WITHIN),
        stops_within=(stops_within, STOPS_WITHIN),
        codes=(list(codes), []),
        may_fetch=(list(may_fetch), []),
    )
    with probe:
        contract = _Contract(tool, probe, options, calls=calls, seed=seed)
        if arguments is not None:
            contract.check_one(arguments, unaffected=unaffected, cancel_after=cancel_after)
        else:
            contract.check_many(fixed or {})


class _Contract:
    """The check of one tool."""

    def __init__(
        self,
        tool: SyncTool,
        probe: Probe,
        options: dict[str, Any],
        *,
        calls: int,
        seed: int,
    ) -> None:
        self._tool = tool
        self._probe = probe
        self._options = options
        self._calls = calls
        self._seed = seed
        # What succeeded or failed as it may, by its arguments, with how long it took.
        self._passed: dict[str, tuple[Arguments, CallSnapshot, float]] = {}
        self._good: Arguments | None = None
        self._good_took = 0.0
        self._follows_each = False  # whether a second call follows also if the tool is slow
        self._had_more = True  # whether more inputs could have been drawn
        self._found: _Found | None = None  # by the smallest input so far
        self._forget = tool.opentabs.checkpoint()

    def check_one(
        self, arguments: Arguments, *, unaffected: Arguments | None, cancel_after: float | None
    ) -> None:
        """Check one call."""
        if unaffected is not None:
            before, _, breach = self._probe.call(unaffected)
            self._refuse_setup(before)
            if breach is not None:
                raise ContractError(
                    f"{self._tool.name}, called with {unaffected}, {breach.sentence}"
                )
        ended, breach = self._check(arguments, unaffected, cancel_after)
        self._refuse_setup(ended)
        if breach is not None:
            raise ContractError(self._text(breach, arguments))

    def _check(
        self, arguments: Arguments, unaffected: Arguments | None, cancel_after: float | None
    ) -> tuple[CallSnapshot, Breach | None]:
        """Make one call, and return how it ended and the promise it broke."""
        ended, _, breach = self._probe.call_and_again(arguments, unaffected)
        if breach is None and cancel_after is not None:
            breach = self._probe.cancel(arguments, cancel_after, ended)
        return ended, breach

    def check_many(self, fixed: Mapping[str, Any]) -> None:
        """Check many calls, then cancel some of those that kept the contract."""
        schema = self._schema(fixed)
        drawn = values_of(schema).map(lambda drawn: {**drawn, **fixed})
        if drawn.is_empty:
            raise ContractError(f"{self._tool.name}: nothing matches its input schema.")
        self._check_drawn(drawn, self._calls, self._call)
        if not self._passed:
            raise ContractError(
                f"{self._tool.name}: no arguments could be drawn from its input schema"
                f"{_what_to_give(undrawn(schema))}"
            )
        self._warn_of_few()
        inputs = [
            self._passed[key] for key in sorted(self._passed, key=lambda key: (len(key), key))
        ]
        self._follows_each = True  # another call follows each one that is cancelled
        cancels = st.tuples(st.integers(0, len(inputs) - 1), st.integers(0, 1000))

        def cancel(drawn: tuple[int, int]) -> _Found | None:
            arguments, before, took = inputs[drawn[0]]
            moment = round(took * drawn[1] / 1000, 4)
            breach = self._probe.cancel(arguments, moment, before)
            return None if breach is None else _Found(breach, arguments, cancel_after=moment)

        self._check_drawn(
            cancels, max(min(_CANCELS, self._calls), self._calls // _CALLS_A_CANCEL), cancel
        )

    def _warn_of_few(self) -> None:
        """Warn if the inputs were nearly all the same, and not because there are no others."""
        different = len(self._passed)
        if self._had_more and different * _FEW < self._calls:
            warnings.warn(
                f"{self._tool.name}: of {self._calls} inputs drawn from its input schema, only "
                f"{different} were different. Check it with arguments of your own, too: "
                "expect_contract(tool, {...}).",
                stacklevel=4,  # the line that calls expect_contract()
            )

    def _call(self, arguments: Arguments) -> _Found | None:
        # Of a slow tool, the call with the next arguments is the second one, if that is enough.
        always = self._follows_each or self._good_took <= _QUICK
        ended, took, breach = self._probe.call_and_again(arguments, self._good, always=always)
        if not self._passed:
            self._refuse_setup(ended)
        if breach is not None:
            return _Found(breach, arguments, self._good if breach.kind == "other" else None)
        self._passed[key_of(arguments)] = arguments, ended, took
        if self._good is None and ended.outcome == "succeeded":
            self._good, self._good_took = arguments, took
            if self._follows_each or took > _QUICK:  # perhaps as the first in its page
                self._good_took, breach = self._probe.call_known(arguments)
                if breach is not None:
                    return _Found(breach, arguments, unaffected=arguments)
        return None

    def _check_drawn(
        self, drawn: SearchStrategy[Any], count: int, check: Callable[[Any], _Found | None]
    ) -> None:
        """Check drawn inputs.

        Raises:
            ContractError: One broke a promise; it has the smallest one that did.
            KeyboardInterrupt: See `expect_contract`.
        """
        found: _Found | None = None
        error: ContractError | None = None
        try:
            tried = self._shrink(drawn, count, check)
            while self._found is not None:
                found = self._found
                error, is_confirmed = self._error(found)
                if is_confirmed or self._follows_each:
                    break
                # Perhaps an earlier call is to blame: follow each, and find that one instead.
                self._follows_each, self._found, self._good = True, None, None
                self._probe.recover()
                self._shrink(drawn, count, check, most=tried)
            if error is not None:
                raise error
        except KeyboardInterrupt:  # Playwright's loop may have been cut off: no more calls
            if (found := self._found or found) is None:
                raise
            raise KeyboardInterrupt from self._unconfirmed(found)

    def _shrink(
        self,
        drawn: SearchStrategy[Any],
        count: int,
        check: Callable[[Any], _Found | None],
        *,
        most: float = inf,
    ) -> int:
        """Check drawn inputs, and find the smallest one that breaks a promise.

        Args:
            drawn: The inputs.
            count: How many are drawn; which ones depends on it.
            check: Checks one.
            most: How many are checked, if none of them breaks a promise.

        Returns:
            How many were checked until the first broke a promise.
        """
        broken: dict[str, _Found] = {}
        tried, deadline = 0, 0.0

        @seeded(self._seed)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=HEALTH_CHECKS,
            verbosity=Verbosity.quiet,
        )
        @given(drawn)
        def attempt(given_input: Any) -> None:
            nonlocal tried, deadline
            if was_interrupted():
                raise KeyboardInterrupt
            key = key_of(given_input)
            least, found = self._found, broken.get(key)
            if found is None:
                is_over = tried >= most if least is None else monotonic() > deadline
                if is_over:
                    return
                tried += least is None
                found = check(given_input)
                if found is not None and found.breach.kind in _RELOAD_AFTER:
                    self._probe.recover()
            if found is None or (least is not None and not found.breach.is_like(least.breach)):
                return
            if least is None:
                deadline = monotonic() + _SHRINK_WITHIN
            self._found = broken[key] = found
            raise _Broken

        def note(statistics: Any) -> None:
            self._had_more = statistics.get("stopped-because") != "nothing left to do"

        ended: Any = collector  # which its type says is None
        with (
            warnings.catch_warnings(),
            _without_logs(),
            ended.with_value(note),
            _noting_interrupts() as was_interrupted,
            suppress(_Broken, Unsatisfiable),
        ):
            warnings.simplefilter("ignore", HypothesisWarning)
            attempt()
        return tried

    def _error(self, found: _Found) -> tuple[ContractError, bool]:
        """Do what the printed test does; return the error, and whether the test fails, too."""
        drawn = self._drawn()
        again: Breach | None = None
        tried = 0
        while again is None and tried < _CONFIRMATIONS:
            tried += 1
            self._forget()
            self._probe.recover()
            if found.unaffected is not None:
                self._probe.call(found.unaffected)
            _, again = self._check(found.arguments, found.unaffected, found.cancel_after)
        text = self._text(found.breach if again is None else again, found.arguments)
        if again is None:
            text += (
                f"\n{drawn} With them alone, the contract held each time: the failure depends on "
                "earlier calls, or on chance. The test draws them all again."
            )
            test = reproduction(self._fuzzed(), None, self._draws() | self._options)
            return ContractError(text, test), False
        if tried > 1:
            drawn += (
                f" With them alone, the contract held {tried - 1} of {tried} times: the failure "
                "comes only now and then, and so does that of the test."
            )
        return ContractError(f"{text}\n{drawn}", self._test(found)), True

    def _unconfirmed(self, found: _Found) -> ContractError:
        """Return the error of a check that ends before the smallest input is known."""
        text = self._text(found.breach, found.arguments)
        return ContractError(
            f"{text}\n{self._drawn()} Smaller ones were still being tried when you interrupted it.",
            self._test(found),
        )

    def _drawn(self) -> str:
        return f"Found with seed {self._seed} in {quantity(self._probe.made, 'call')}."

    def _test(self, found: _Found) -> str:
        options = _without_defaults(
            unaffected=(found.unaffected, None), cancel_after=(found.cancel_after, None)
        )
        return reproduction(self._fuzzed(), found.arguments, options | self._options)

    def _fuzzed(self) -> FuzzedTool:
        url = self._probe.url
        if url is not None and url == self._tool.start_page:
            return FuzzedTool(self._tool.name, plugin=self._tool.listing.owner)
        return FuzzedTool(self._tool.name, url=url)

    def _draws(self) -> dict[str, Any]:
        return _without_defaults(calls=(self._calls, CALLS), seed=(self._seed, 0))

    def _text(self, breach: Breach, arguments: Arguments) -> str:
        return (
            f"{self._tool.name} breaks its contract: it {breach.sentence}\n"
            f"Arguments: {shortened(arguments)}"
        )

    def _refuse_setup(self, ended: CallSnapshot) -> None:
        if (problem := setup_problem(ended)) is not None:
            raise ContractError(f"{self._tool.name} cannot be checked. {problem}")

    def _schema(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of its own arguments, without the choice of a tab."""
        schema = dict(self._tool.listing.input_schema)
        properties = dict(schema.get("properties", {}))
        if self._tool.listing.needs_tab:
            properties.pop(TAB_ID, None)
        properties |= {name: {"const": value} for name, value in fixed.items()}
        return {**schema, "properties": properties}


def _what_to_give(names: Sequence[str]) -> str:
    """Return the rest of a sentence: what to do about arguments that cannot be drawn."""
    if not names:
        return ". Check it with arguments of your own: expect_contract(tool, {...})."
    fixed = ", ".join(f'"{name}": ...' for name in names)
    return (
        f", because few values match that of {', '.join(names)}. Pass these: "
        f"expect_contract(tool, fixed={{{fixed}}})."
    )


@contextmanager
def _without_logs() -> Generator[None]:
    """Log nothing of what calls do: the last one shows it."""
    logger = logging.getLogger("opentabs_py")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _noting_interrupts() -> Generator[Callable[[], bool]]:
    """Yield what says whether there was a Ctrl-C.

    A `KeyboardInterrupt` is lost if it comes while Hypothesis measures a garbage collection.
    """
    raise_interrupt = signal.getsignal(signal.SIGINT)
    if not callable(raise_interrupt) or current_thread() is not main_thread():
        yield lambda: False
        return
    count = 0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        raise_interrupt(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: count > 0
    finally:
        signal.signal(signal.SIGINT, raise_interrupt)


def _without_defaults(**given: tuple[Any, Any]) -> dict[str, Any]:
    return {name: value for name, (value, default) in given.items() if value != default}
