"""Forms in which a client asks its user: one at a time, each with every waiting question."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import anyio
from mcp import types
from mcp.shared.exceptions import MCPError

from opentabs_py.core import failures
from opentabs_py.core.questions import ANSWERS, Answer, Question, answer_texts, ask_text

logger = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 10  # questions in one form; a longer one would not be read

Elicit = Callable[[str, dict[str, Any]], Awaitable[types.ElicitResult]]


class Forms:
    """Asks the user of one connected client, with one form at a time.

    Questions that come while a form is open are in the next one, all together.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Question] = {}
        self._answers: dict[str, Answer] = {}
        self._one = anyio.Lock()

    async def ask(self, question: Question, elicit: Elicit) -> Answer:
        """Return the answer to a question.

        Args:
            question: The question.
            elicit: Sends a form, on the stream of the question's call.

        Raises:
            CallRefusedError: The client could not ask it after all.
        """
        self._waiting[question.id] = question
        try:
            async with self._one:
                if question.id not in self._answers:
                    await self._send(question, elicit)
            return self._answers[question.id]
        finally:
            del self._waiting[question.id]
            self._answers.pop(question.id, None)

    async def _send(self, first: Question, elicit: Elicit) -> None:
        others = [each for each in self._waiting.values() if each is not first]
        # None of them has an answer: they are asked in the order in which they came.
        questions = [first, *others[: MOST_AT_ONCE - 1]]
        try:
            result = await elicit(*make_form(questions))
        except Exception as error:
            # It claims that it can; whatever it does instead, there are other ways to ask.
            logger.warning("A client could not ask its user: %r", error)
            why = error.error.message if isinstance(error, MCPError) else repr(error)
            raise failures.client_cannot_ask(first.tool, first.rule, why) from error
        for question, answer in zip(questions, read_answers(result, len(questions)), strict=True):
            if question.id in self._waiting:
                self._answers[question.id] = answer if answer in question.answers else "no"


def make_form(questions: Sequence[Question]) -> tuple[str, dict[str, Any]]:
    """Return the text of a form that asks these questions, and the schema of its content."""
    if len(questions) == 1:
        [question] = questions
        message = f"{ask_text(question)}\n\n{question.arguments}"
        title = "Allow it?" if question.about == "permission" else "Have you signed in?"
        return message, _schema({"answer": _choice(title, question)})
    parts = [f"{len(questions)} calls wait for you."]
    fields: dict[str, Any] = {}
    for number, question in enumerate(questions, 1):
        parts.append(f"{number}. {ask_text(question)}\n{question.arguments}")
        fields[f"answer_{number}"] = _choice(f"{number}. {question.tool}", question)
    return "\n\n".join(parts), _schema(fields)


def _schema(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields]}


def _choice(title: str, question: Question) -> dict[str, Any]:
    texts = answer_texts([question])
    return {"type": "string", "title": title, "enum": [*texts], "enumNames": [*texts.values()]}


def read_answers(result: types.ElicitResult, count: int) -> list[Answer]:
    """Return a form's answers, in order; whatever is not clearly a yes is a no."""
    content = (result.content or {}) if result.action == "accept" else {}
    names = ["answer"] if count == 1 else [f"answer_{number}" for number in range(1, count + 1)]
    return [_read_answer(content.get(name)) for name in names]


def _read_answer(value: object) -> Answer:
    for answer in ANSWERS:
        if answer == value:
            return answer
    return "no"
