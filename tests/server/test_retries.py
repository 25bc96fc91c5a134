"""Calls that clients of 2026-07-28 repeat with an answer, on a clock that the test sets."""

from dataclasses import dataclass

import anyio
import pytest
from mcp import types
from mcp.server.lowlevel import Server

from opentabs_py.core.questions import ASK_FOR, Question
from opentabs_py.server.mcp.elicitation import Answered, ConsentAskedError, Retries, RetryAsker

YES = types.ElicitResult(action="accept", content={"answer": "once"})
QUESTION = Question(
    id="q1",
    tool="chat_send",
    title="Send",
    plugin="chat",
    rule="chat.send",
    arguments="{}",
    answers=("once", "no"),
    about="permission",
)


@dataclass
class Clock:
    """The time, in seconds."""

    now: float = 1_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(anyio, "current_time", lambda: clock.now)
    return clock


@pytest.fixture
def retries() -> Retries:
    return Retries(Server("a server"))


def repeated(
    asked: types.InputRequiredResult, answer: types.InputResponse | None = YES
) -> types.CallToolRequestParams:
    responses = None if answer is None else dict.fromkeys(asked.input_requests or {}, answer)
    return types.CallToolRequestParams(
        name="chat_send", input_responses=responses, request_state=asked.request_state
    )


@pytest.mark.parametrize(("after", "counts"), [(ASK_FOR, True), (ASK_FOR + 1, False)])
def test_an_answer_counts_until_its_question_expires(
    clock: Clock, retries: Retries, after: float, counts: bool
) -> None:
    asked = retries.ask(QUESTION, Answered())
    clock.now += after
    answers = {"permission": "once"} if counts else {}
    assert retries.read(repeated(asked)).answers == answers


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("answer", [None, types.ListRootsResult(roots=[])])
def test_a_call_repeated_without_an_answer_to_a_form_has_none(
    retries: Retries, answer: types.ListRootsResult | None
) -> None:
    asked = retries.ask(QUESTION, Answered())
    assert retries.read(repeated(asked, answer)) == Answered()


def test_questions_that_expired_are_forgotten_with_the_next(clock: Clock, retries: Retries) -> None:
    for _ in range(3):
        retries.ask(QUESTION, Answered())
    clock.now += ASK_FOR
    retries.ask(QUESTION, Answered())
    assert len(retries._asked) == 1


@pytest.mark.anyio
async def test_asking_fails_a_call_with_a_code_of_its_own_for_its_trace() -> None:
    retries = Retries(Server("a server"))
    with pytest.raises(ConsentAskedError) as caught:
        await RetryAsker(Answered(), retries).ask(QUESTION)
    assert (caught.value.detail.code, caught.value.detail.category) == (
        "CONSENT_ASKED",
        "permission",
    )
    assert retries.read(repeated(caught.value.result)).answers == {"permission": "once"}
