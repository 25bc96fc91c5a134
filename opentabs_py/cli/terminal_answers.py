"""Show the questions of a session in the terminal while it runs, and pass on the answers."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

from opentabs_py.cli.asking import prompt, read_line, show
from opentabs_py.core.questions import Question

if TYPE_CHECKING:
    from opentabs_py.consent.questions import Questions


async def answer_in_terminal(
    questions: "Questions", *, pause: Callable[[], AbstractContextManager[None]] = nullcontext
) -> None:
    """Show questions in the terminal and pass on the answers, until cancelled.

    Those that a client asks its user itself are left out.

    Args:
        questions: Those that wait; several are shown as one list.
        pause: Clears the terminal for as long as its context is open.
    """
    woken = asyncio.Event()
    lines = _Lines(asyncio.get_running_loop(), woken.set)
    numbers = _Numbers()
    unsubscribe = questions.subscribe(woken.set)
    try:
        with questions.shown():
            while True:
                woken.clear()
                if _to_show(questions):
                    with pause():
                        await _ask_all(questions, numbers, lines, woken)
                await woken.wait()
    finally:
        unsubscribe()


async def _ask_all(
    questions: "Questions", numbers: "_Numbers", lines: "_Lines", woken: asyncio.Event
) -> None:
    """Ask about calls until none waits."""
    shown: dict[int, Question] = {}
    while waiting := numbers.of(_to_show(questions)):
        woken.clear()
        if waiting != shown:
            shown = waiting
            lines.start()
            show(waiting)
        for line in lines.read():
            answers = read_line(line, waiting)
            for question_id, answer in (answers or {}).items():
                questions.answer(question_id, answer, by="terminal")
            if answers is None:
                prompt(waiting)
        await woken.wait()
    sys.stderr.write("\n")


def _to_show(questions: "Questions") -> list[Question]:
    return [each for each in questions.waiting if not each.by_client]


class _Numbers:
    """The numbers of questions; none is used again, so that no answer is taken for another's."""

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._next = 1

    def of(self, waiting: Sequence[Question]) -> dict[int, Question]:
        """Return questions by number."""
        before = self._by_id
        self._by_id = {}
        for question in waiting:
            number = before.get(question.id)
            if number is None:
                number, self._next = self._next, self._next + 1
            self._by_id[question.id] = number
        return {self._by_id[question.id]: question for question in waiting}


class _Lines:
    """Lines that are typed while a question is shown.

    A thread reads them, which cannot be stopped while it waits for a line; the next question then
    uses it again.

    Args:
        loop: Where the lines are wanted.
        on_line: Called there when there is one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_line: Callable[[], None]) -> None:
        self._loop = loop
        self._on_line = on_line
        self._lines: list[str] = []
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Forget what was typed before, also on an unfinished line, and read from now on."""
        import termios  # there is none on Windows

        with suppress(termios.error):  # stdin is not a terminal any more
            termios.tcflush(0, termios.TCIFLUSH)
        self._lines.clear()
        if self._thread is None or not self._thread.is_alive():
            # In the background, reading the terminal would stop the process.
            signal.signal(signal.SIGTTIN, signal.SIG_IGN)
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()

    def read(self) -> list[str]:
        """Return the lines that were typed since the last time."""
        lines, self._lines = self._lines, []
        return lines

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._on_line()

    def _read(self) -> None:
        line = b""
        while True:
            try:
                # Without Python's buffer, whose lock would be held when the interpreter exits.
                byte = os.read(0, 1)
            except OSError:
                return  # in the background: another process has the terminal
            if not byte:
                return
            line += byte
            if byte == b"\n":
                text, line = line.decode(errors="replace"), b""
                try:
                    self._loop.call_soon_threadsafe(self._add, text)
                except RuntimeError:
                    return  # the loop has ended
