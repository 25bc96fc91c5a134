"""One form at a time asks a client's user about all that waits."""

from dataclasses import replace
from typing import Any, Literal

import anyio
import pytest
from mcp import types

from opentabs_py.core.questions import About, Answer, Question
from opentabs_py.errors import CallRefusedError
from opentabs_py.server.mcp.forms import MOST_AT_ONCE, Forms, make_form
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


def a_question(number: int = 0) -> Question:
    arguments = f"arguments {number}"
    return Question(
        f"q{number}", "chat_send", "Send", "chat", "chat.send", arguments, answers=("once", "no")
    )


async def test_questions_beyond_what_a_user_reads_are_in_the_next_form() -> None:
    forms, sizes, answers = Forms(), list[int](), list[Answer | None]()
    shown: list[str] = []

    async def elicit(message: str, schema: dict[str, Any]) -> types.ElicitResult:
        await anyio.lowlevel.checkpoint()
        sizes.append(len(schema["properties"]))
        shown.extend(line for line in message.splitlines() if line.startswith("arguments"))
        return types.ElicitResult(
            action="accept", content=dict.fromkeys(schema["properties"], "once")
        )

    async def ask(number: int) -> None:
        answers.append(await forms.ask(a_question(number), elicit))

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            for number in range(MOST_AT_ONCE + 2):
                tasks.start_soon(ask, number)
    assert sizes == [MOST_AT_ONCE, 2]
    assert answers == ["once"] * (MOST_AT_ONCE + 2)
    assert shown == [f"arguments {number}" for number in range(MOST_AT_ONCE + 2)]


async def test_a_client_that_failed_to_ask_is_still_asked_the_next_question(
    caplog: pytest.LogCaptureFixture,
) -> None:
    forms = Forms()

    async def fail(_message: str, _schema: dict[str, Any]) -> types.ElicitResult:
        raise ConnectionError("gone")

    async def elicit(_message: str, _schema: dict[str, Any]) -> types.ElicitResult:
        await anyio.lowlevel.checkpoint()
        return types.ElicitResult(action="accept", content={"answer": "once"})

    with pytest.raises(CallRefusedError, match="with an error: ConnectionError"):
        await forms.ask(a_question(1), fail)
    assert "could not ask its user: ConnectionError('gone')" in caplog.text
    assert await forms.ask(a_question(2), elicit) == "once"


async def test_the_answer_to_a_question_that_is_not_asked_any_more_is_forgotten() -> None:
    forms, is_open, go_on = Forms(), anyio.Event(), anyio.Event()
    answers = list[Answer | None]()

    async def elicit(_message: str, schema: dict[str, Any]) -> types.ElicitResult:
        assert len(schema["properties"]) == 2
        is_open.set()
        await go_on.wait()
        return types.ElicitResult(
            action="accept", content=dict.fromkeys(schema["properties"], "once")
        )

    async def ask(number: int) -> None:
        answers.append(await forms.ask(a_question(number), elicit))

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks, anyio.create_task_group() as ending:
            tasks.start_soon(ask, 0)
            ending.start_soon(ask, 1)
            await is_open.wait()
            ending.cancel_scope.cancel()
            go_on.set()
    assert answers == ["once"]
    assert forms._answers == {}


@pytest.mark.parametrize(
    ("about", "title"), [("permission", "Allow it?"), ("sign_in", "Have you signed in?")]
)
def test_a_form_for_one_question_says_what_it_asks(about: About, title: str) -> None:
    _, schema = make_form([replace(a_question(), about=about)])
    assert schema["properties"]["answer"]["title"] == title


@pytest.mark.parametrize(
    ("action", "answer"), [("accept", "always"), ("decline", "once"), ("cancel", "once")]
)
async def test_an_answer_that_was_not_offered_or_not_sent_off_is_a_no(
    action: Literal["accept", "decline", "cancel"], answer: str
) -> None:
    async def elicit(_message: str, _schema: dict[str, Any]) -> types.ElicitResult:
        await anyio.lowlevel.checkpoint()
        return types.ElicitResult(action=action, content={"answer": answer})

    assert await Forms().ask(a_question(), elicit) == "no"
