"""Show the questions of a session in the terminal while it runs, and pass on the answers."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from opentabs_py.calling.loop import call_on_loop
from opentabs_py.cli.terminal_questions import TerminalQuestions
from opentabs_py.core.questions import Answer

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
    loop = asyncio.get_running_loop()

    def answer(question_id: str, answer: Answer) -> None:
        with suppress(RuntimeError):  # the loop has ended
            call_on_loop(loop, partial(questions.answer, question_id, answer, by="terminal"))

    shown = TerminalQuestions(answer, pause)
    woken = asyncio.Event()
    unsubscribe = questions.subscribe(woken.set)
    try:
        with questions.shown():
            while True:
                woken.clear()
                shown.show([each for each in questions.waiting if not each.by_client])
                await woken.wait()
    finally:
        unsubscribe()
        shown.close()
