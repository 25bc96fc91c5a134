"""Questions in the terminal: shown until they are answered there or elsewhere."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress

from opentabs_py.cli.prompts import prompt, read_line, show
from opentabs_py.core.questions import Answer, Question


class TerminalQuestions:
    """Shows questions, and reads what is typed while there are any.

    A thread reads it, which cannot be stopped while it waits for a line; the next question then
    uses it again.

    Args:
        answer: Passes on an answer, by the question's id; called in that thread.
        pause: Clears the terminal for as long as its context is open.
    """

    def __init__(
        self,
        answer: Callable[[str, Answer], object],
        pause: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._answer = answer
        self._pause = pause
        self._paused = ExitStack()
        self._numbers = Numbers()
        self._shown: Mapping[int, Question] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def show(self, questions: Sequence[Question]) -> None:
        """Show these questions instead of those before, several as one list."""
        waiting = self._numbers.of(questions)
        with self._lock:
            before = self._shown
            if waiting == before:
                return
            self._shown = waiting
            if not waiting:
                sys.stderr.write("\n")
                self._paused.close()
                return
            if not before:
                self._paused.enter_context(self._pause())
            self._start()
            show(waiting)

    def close(self) -> None:
        """Stop showing questions."""
        self.show([])

    def _start(self) -> None:
        """Forget what was typed before, also on an unfinished line, and read from now on."""
        import termios  # there is none on Windows

        with suppress(termios.error):  # stdin is no longer a terminal
            termios.tcflush(0, termios.TCIFLUSH)
        if self._thread is None or not self._thread.is_alive():
            # In the background, reading the terminal would stop the process.
            signal.signal(signal.SIGTTIN, signal.SIG_IGN)
            self._thread = threading.Thread(target=self._read, daemon=True)
            self._thread.start()

    def _read(self) -> None:
        line = b""
        while True:
            try:
                # Without Python's buffer, whose lock would be held when the interpreter exits.
                byte = os.read(0, 1)
            except OSError:
                return  # in the background: another process has the terminal
            if byte not in (b"", b"\n"):
                line += byte
                continue
            # The end of the input, such as Ctrl-D, is a no.
            self._handle(line.decode(errors="replace") if byte else "no", self._shown)
            if not byte:
                return
            line = b""

    def _handle(self, line: str, shown: Mapping[int, Question]) -> None:
        with self._lock:
            if shown is not self._shown:
                return  # it was typed for other questions
            answers = read_line(line, shown)
            if shown and answers is None:
                prompt(shown)
        for question_id, answer in (answers or {}).items():
            self._answer(question_id, answer)


class Numbers:
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
