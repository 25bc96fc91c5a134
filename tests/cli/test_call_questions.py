"""Questions that `opentabs call` asks at its terminal for a running server."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from e2e.terminals import Terminal, terminal
from opentabs_py.config.settings import Settings
from opentabs_py.consent.questions import Questions
from tests.session.test_local_interface import NAME, Tools, serving
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

COMMAND = [
    sys.executable,
    "-m",
    "opentabs_py",
    "call",
    "--server",
    NAME,
    "greet",
    '{"name": "Ann"}',
]


@asynccontextmanager
async def asked() -> AsyncGenerator[tuple[Terminal, Questions]]:
    """Make a call that asks in a terminal, and yield both ends once it has asked."""
    settings = Settings(port=0, permissions={"default": "ask"})
    async with serving(Tools().greet, settings=settings) as server:
        with anyio.fail_after(PATIENT), terminal(COMMAND, Path()) as shown:
            await anyio.to_thread.run_sync(shown.wait_for, "Allow it?")
            await anyio.to_thread.run_sync(shown.wait_for, ">")
            yield shown, server.session.internals.registry.gate.questions


async def test_a_call_continues_when_its_question_is_answered_elsewhere() -> None:
    async with asked() as (shown, questions):
        [question] = questions.waiting
        questions.answer(question.id, "once", by="console")

        assert await anyio.to_thread.run_sync(shown.wait) == 0
    assert "Hello Ann" in shown.output


async def test_a_line_that_is_not_an_answer_shows_the_answers_again() -> None:
    async with asked() as (shown, _):
        await anyio.to_thread.run_sync(shown.type, "what\n")
        await anyio.to_thread.run_sync(shown.wait_for, ">")
        await anyio.to_thread.run_sync(shown.type, "o\n")

        assert await anyio.to_thread.run_sync(shown.wait) == 0


async def test_the_end_of_the_input_is_a_no() -> None:
    async with asked() as (shown, _):
        await anyio.to_thread.run_sync(shown.type, "\x04")

        assert await anyio.to_thread.run_sync(shown.wait) == 2
    assert "The user did not allow greet" in shown.output
