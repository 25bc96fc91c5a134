"""A person is asked to sign in where a page is not ready, and the call waits for them."""

from typing import Any

import anyio
import pytest

from opentabs_py.consent.gate import REMIND_AFTER
from opentabs_py.core import failures
from opentabs_py.core.consent import Permission
from opentabs_py.core.questions import ASK_FOR, ask_text
from opentabs_py.errors import ChainError, ErrorDetail
from tests.consent.chain import Chain, Client
from tests.fakes import FakeBridge, SignedOut
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio

ALLOWED: Any = {"chat": "auto"}


class Calls:
    """A chain with a signed-out page, and the outcome of one call."""

    def __init__(self, rules: Any = ALLOWED) -> None:
        self.page = SignedOut()
        self.chain = Chain(rules, bridge=self.page)
        self.questions = self.chain.gate.questions
        self.values: list[object] = []
        self.errors: list[ErrorDetail] = []

    async def call(self, client: Client | None = None) -> None:
        try:
            self.values.append(await self.chain.call("chat_send", client))
        except ChainError as error:
            self.errors.append(error.detail)


async def test_a_call_continues_as_soon_as_the_page_is_ready() -> None:
    calls = Calls()
    async with calls.chain.running() as tasks:
        with calls.questions.shown():
            tasks.start_soon(calls.call)
            await until_all_wait()
            [question] = calls.questions.waiting
            assert (question.about, question.answers) == ("sign_in", ("once", "no"))
            assert '“Send” on chat.example (tab "Log in"), but the page is not ready. Sign' in (
                ask_text(question)
            )
            calls.page.sign_in()
            await until_all_wait()
    assert calls.values == [{"sent": True}]
    assert calls.questions.waiting == []


async def test_the_clients_user_says_that_they_have_signed_in() -> None:
    calls, client = Calls(), Client()
    async with calls.chain.running() as tasks:
        tasks.start_soon(calls.call, client)
        await until_all_wait()
        [question] = client.asked
        calls.page.sign_in(is_noticed=False)
        calls.questions.answer(question.id, "once", by="client")
        await until_all_wait()
    assert calls.values == [{"sent": True}]
    assert client.waits == ["Waiting for the user to sign in for chat_send."]


async def test_a_call_that_was_allowed_in_one_tab_waits_until_that_tab_is_ready() -> None:
    calls, client = Calls({"chat": "ask"}), Client(["once"])
    async with calls.chain.running() as tasks:
        tasks.start_soon(calls.call, client)
        await until_all_wait()
        assert [each.about for each in client.asked] == ["permission", "sign_in"]
        assert [each.place.tab_id for each in client.asked] == [1, 1]
        calls.page.show("unavailable", "ready")  # a link of the login page opened another tab
        await until_all_wait()
        assert len(calls.questions.waiting) == 1
        calls.page.sign_in()
        await until_all_wait()
    assert calls.values == [{"sent": True}]
    assert [each.target.tab_id for each in calls.page.received] == [1]


@pytest.mark.parametrize("says", [["no"], []])
async def test_a_user_who_has_not_signed_in_is_not_asked_again_by_the_same_call(
    says: Any,
) -> None:
    calls, client = Calls(), Client(says)
    async with calls.chain.running() as tasks:
        tasks.start_soon(calls.call, client)
        await until_all_wait()
        if not says:
            calls.chain.clock.move(ASK_FOR)
            await until_all_wait()
    [error] = calls.errors
    assert (error.code, error.retryable) == ("TAB_NOT_READY", False)
    assert "They were asked and have not signed in yet" in error.message
    assert len(client.asked) == 1


async def test_a_user_who_only_says_so_gets_the_error_and_not_the_question_again() -> None:
    calls, client = Calls(), Client(["once"])
    async with calls.chain.running() as tasks:
        tasks.start_soon(calls.call, client)
        await until_all_wait()
    [error] = calls.errors
    assert error.code == "TAB_NOT_READY"
    assert "Ask the user to sign in there" in error.message
    assert len(client.asked) == 1


@pytest.mark.parametrize("client", [None, Client(can_ask=False)])
async def test_where_the_user_cannot_be_asked_the_agent_is_asked_to(client: Client | None) -> None:
    calls = Calls()
    await calls.call(client)
    [error] = calls.errors
    assert (error.code, error.retryable) == ("TAB_NOT_READY", False)
    assert "Ask the user to sign in there, and call again when they have." in error.message
    assert client is None or client.asked == []


async def test_nobody_is_asked_about_a_page_that_is_not_ready_yet() -> None:
    chain = Chain(
        ALLOWED, bridge=FakeBridge(error=failures.not_ready_yet("chat", "https://a/", "it loads"))
    )
    with chain.gate.questions.shown(), pytest.raises(ChainError) as caught:
        await chain.call()
    assert caught.value.detail.retryable


async def test_its_client_is_kept_waiting_while_the_user_signs_in() -> None:
    calls, client = Calls(), Client()
    async with calls.chain.running() as tasks:
        tasks.start_soon(calls.call, client)
        await until_all_wait()
        calls.chain.clock.move(REMIND_AFTER)
        await until_all_wait()
        assert len(client.waits) == 2
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("permission", ["ask", "auto"])
async def test_a_call_that_still_waits_for_its_user_when_the_server_stops_did_not_run(
    permission: Permission,
) -> None:
    calls, client = Calls({"chat": permission}), Client()
    async with calls.chain.running(), anyio.create_task_group() as tasks:
        tasks.start_soon(calls.call, client)
        await until_all_wait()
        assert len(client.asked) == 1
        calls.chain.tool_calls.running.stop()
    [error] = calls.errors
    assert (error.code, error.retryable) == ("SERVER_STOPPED", True)
    assert "so chat_send did not run" in error.message
