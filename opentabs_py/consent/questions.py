"""The open questions to the user, for every view that can show them."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Final

import anyio

from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.core.questions import ASK_FOR, Answer, Question
from opentabs_py.errors import CallError

RELOADS_WITHIN: Final = 2.0  # s; it takes 0.1, and 1 on a busy machine


@dataclass(slots=True)
class _Waiting:
    question: Question
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Answer | None = None
    by: str = ""
    error: CallError | None = None


class Questions:
    """The questions that wait, in the order they were asked.

    Args:
        clock: The clock on which they expire.
    """

    def __init__(self, clock: AlarmClock) -> None:
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        self._viewers = 0
        self._left_at = -inf  # when the last view was closed
        self._is_back = anyio.Event()
        self._changes: Listeners[[]] = Listeners("questions")

    @property
    def waiting(self) -> Sequence[Question]:
        """The questions that are not answered yet."""
        return [each.question for each in self._waiting.values()]

    @property
    def can_be_seen(self) -> bool:
        """Whether any view is open that shows them."""
        return self._viewers > 0

    async def will_be_seen(self) -> bool:
        """Return whether a view is open that shows them, or is again once it has been reloaded."""
        until, is_back = self._left_at + RELOADS_WITHIN, self._is_back
        if not self.can_be_seen and self._clock.now() < until:
            alarm = self._clock.set_alarm(until, is_back.set)
            try:
                await is_back.wait()
            finally:
                alarm.cancel()
        return self.can_be_seen

    def seconds_left(self, question: Question) -> float:
        """Return how long a question still waits."""
        return max(0.0, question.at + ASK_FOR - self._clock.now())

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the list changes; return the unsubscriber."""
        return self._changes.subscribe(listener)

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the questions while the context is open."""
        self._viewers += 1
        self._is_back.set()
        try:
            yield
        finally:
            self._viewers -= 1
            if self._viewers == 0:
                self._left_at, self._is_back = self._clock.now(), anyio.Event()

    def answer(self, question_id: str, answer: Answer, *, by: str) -> bool:
        """Answer a question.

        Args:
            question_id: Its id.
            answer: One of its answers.
            by: Where it was answered, for example `console`.

        Returns:
            Whether it was still waiting, and this is one of its answers.
        """
        waiting = self._waiting.get(question_id)
        if waiting is None or answer not in waiting.question.answers or waiting.answered.is_set():
            return False
        waiting.answer, waiting.by = answer, by
        waiting.answered.set()
        return True

    def withdraw(self, question_id: str, error: CallError) -> None:
        """Stop waiting for an answer, because none can be given now.

        Args:
            question_id: The question's id.
            error: The error for the call that the question is about.
        """
        waiting = self._waiting.get(question_id)
        if waiting is not None and not waiting.answered.is_set():
            waiting.error = error
            waiting.answered.set()

    async def ask(self, question: Question) -> tuple[Answer, str] | CallError | None:
        """Wait for the answer to a question.

        Returns:
            The answer and where it was given; None if there was none within `ASK_FOR` seconds; the
            error of its call if it was withdrawn.
        """
        waiting = self._waiting[question.id] = _Waiting(question)
        self._changes.notify()
        alarm = self._clock.set_alarm(question.at + ASK_FOR, waiting.answered.set)
        try:
            await waiting.answered.wait()
        finally:
            alarm.cancel()
            del self._waiting[question.id]
            self._changes.notify()
        return waiting.error if waiting.answer is None else (waiting.answer, waiting.by)
