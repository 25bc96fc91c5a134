"""Ask the user at the terminal whether calls may run."""

import os
import re
from collections.abc import Mapping
from typing import Final

from opentabs_py.core.questions import ANSWERS, Answer, Question, answer_texts, ask_text

_LINE: Final = re.compile(r"\s*(\d*)\s*([a-z]*)\s*", re.IGNORECASE)


def is_someone_there() -> bool:
    """Return whether the user can read what we write to stderr, and type an answer."""
    # While a progress bar is shown, sys.stderr is Rich's, which before Rich 15 is not a terminal.
    return os.isatty(0) and os.isatty(2)


def read_line(line: str, waiting: Mapping[int, Question]) -> dict[str, Answer] | None:
    """Return the answers that a typed line gives, by question; None if it is not an answer.

    Args:
        line: `o`, `once` or `n` answers all questions, `2 o` only the one with the number 2.
        waiting: The questions by number.
    """
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    number, word = found[1], found[2].lower()
    fitting: list[Answer] = [each for each in ANSWERS if word and each.startswith(word)]
    if not fitting or (number and int(number) not in waiting):
        return None
    answer = fitting[0]
    chosen = [waiting[int(number)]] if number else [*waiting.values()]
    if any(answer not in each.answers for each in chosen):
        return None
    return {each.id: answer for each in chosen}


def show(waiting: Mapping[int, Question]) -> None:
    """Print questions, as a numbered list if there are several, and the possible answers."""
    from rich.markup import escape

    from opentabs_py.cli.terminal import err

    if len(waiting) > 1:
        err.print(f"\n[bold]{len(waiting)} calls wait for you.[/]")
    for number, question in waiting.items():
        which = f"{number}. " if len(waiting) > 1 else ""
        err.print(f"\n[bold yellow]?[/] {which}{escape(ask_text(question))}", soft_wrap=True)
        if question.arguments != "{}":
            err.print(f"[dim]{escape(question.arguments)}[/]", soft_wrap=True)
    prompt(waiting)


def prompt(waiting: Mapping[int, Question]) -> None:
    """Print the answers that can be typed to these questions."""
    from opentabs_py.cli.terminal import err

    # The first letter of an answer is enough, and tells them apart.
    choices = "  ".join(
        f"[bold]{answer[0]}[/] {text.lower()}"
        for answer, text in answer_texts([*waiting.values()]).items()
    )
    first = min(waiting)
    several = f"  (for one of them, its number first: {first} o)" if len(waiting) > 1 else ""
    err.print(f"{choices}{several} [bold]>[/] ", end="", soft_wrap=True)
