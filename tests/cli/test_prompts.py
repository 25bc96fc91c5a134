"""Answers that are typed at prompts in a terminal."""

import io
import os
import pty
import sys
from pathlib import Path

import pytest

from opentabs_py.cli.prompts import is_someone_there, read_line
from opentabs_py.cli.terminal_questions import Numbers
from opentabs_py.core.questions import Question


def a_question(question_id: str) -> Question:
    return Question(question_id, "chat_send", "Send", "chat", "chat.send", "{}")


def test_a_progress_bar_at_the_terminal_hides_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    master, terminal = pty.openpty()
    before = os.dup(0), os.dup(2)
    try:
        os.dup2(terminal, 0)
        os.dup2(terminal, 2)
        monkeypatch.setattr(sys, "stderr", io.StringIO())  # as Rich replaces it
        assert is_someone_there()
        with Path(os.devnull).open() as nobody:
            os.dup2(nobody.fileno(), 0)
        assert not is_someone_there()
    finally:
        for number, was in zip((0, 2), before, strict=True):
            os.dup2(was, number)
            os.close(was)
        os.close(master)
        os.close(terminal)


def test_a_number_answers_one_question_and_no_number_all() -> None:
    waiting = Numbers().of([a_question("a"), a_question("b")])
    assert read_line("2 o\n", waiting) == {"b": "once"}
    assert read_line("no\n", waiting) == {"a": "no", "b": "no"}


@pytest.mark.parametrize("line", ["\n", "3 o\n", "0 o\n", "maybe\n", "2\n", "o 2\n"])
def test_what_is_not_an_answer_answers_nothing(line: str) -> None:
    assert read_line(line, Numbers().of([a_question("a"), a_question("b")])) is None


def test_a_number_is_not_used_for_another_question_later() -> None:
    numbers = Numbers()
    numbers.of([a_question("a"), a_question("b")])
    waiting = numbers.of([a_question("b"), a_question("c")])
    assert read_line("1 o\n", waiting) is None
    assert read_line("2 o\n", waiting) == {"b": "once"}
    assert read_line("3 o\n", waiting) == {"c": "once"}
