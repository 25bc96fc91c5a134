"""A person is asked before a call runs, and their answer decides."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from opentabs_py import tool
from opentabs_py.calling.call import CallOrigin
from opentabs_py.consent.gate import REMIND_AFTER, AnswerEffect, PermissionRequest, Permit
from opentabs_py.consent.questions import RELOADS_WITHIN
from opentabs_py.core import failures
from opentabs_py.core.consent import GatedTool, Permission
from opentabs_py.core.limits import Limits
from opentabs_py.core.questions import ASK_FOR, NOWHERE, Answer, Place, Question
from opentabs_py.errors import CallError, CallRefusedError, ChainError, ConfigError
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.progress import Progress
from opentabs_py.python_tools.run import ToolHost
from tests.consent.chain import Chain, Client, show
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


async def test_a_tool_that_only_reads_runs_unasked_and_the_record_says_so() -> None:
    chain = Chain()
    assert await chain.call("chat_read") == {"sent": True}
    assert [each.allowed for each in chain.records] == ["auto"]


async def test_the_clients_user_is_asked_and_a_yes_runs_the_call_once() -> None:
    chain, client = Chain(), Client(["once", "once"])
    assert await chain.call(client=client) == {"sent": True}
    assert await chain.call(client=client) == {"sent": True}
    assert [each.tool for each in client.asked] == ["chat_send", "chat_send"]
    assert client.asked[0].client == "agent 1.0"
    assert client.asked[0].rule == "chat.send"
    assert [each.allowed for each in chain.records] == ["client: once", "client: once"]


async def test_a_no_refuses_the_call_and_nothing_reaches_the_page() -> None:
    chain, client = Chain(), Client(["no"])
    error = await chain.refused(client=client)
    assert error.detail.code == "CONSENT_REFUSED"
    assert not error.detail.retryable
    assert chain.bridge.received == []
    assert [each.outcome for each in chain.records] == ["refused"]


async def test_a_yes_for_the_session_is_that_clients_and_ends_with_it() -> None:
    chain, client = Chain(), Client(["session"])
    await chain.call(client=client)
    await chain.call(client=client)
    assert len(client.asked) == 1
    assert chain.records[1].allowed == "asked: session"
    other = Client(["no"], session_key="session 2")
    assert (await chain.refused(client=other)).detail.code == "CONSENT_REFUSED"
    chain.gate.forget("session 1")
    client.says = ["no"]
    assert (await chain.refused(client=client)).detail.code == "CONSENT_REFUSED"


async def test_a_yes_for_the_session_is_not_for_another_owners_tool_of_that_name() -> None:
    gate, client = Chain().gate, Client(["session", "no"])

    async def permit(owner: str) -> Permit:
        tool = GatedTool(owner, "page_bank_transfer", read_only=False, standing="page")
        request = PermissionRequest(tool, "Transfer", {}, client=client)
        return await gate.permit(request, lambda: gate.decide(tool))

    assert (await permit("https://bank.test")).by == "client: session"
    assert (await permit("https://bank.test")).by == "asked: session"
    with pytest.raises(CallRefusedError):
        await permit("https://bank.test:8080")


async def test_a_yes_for_the_session_is_not_offered_to_a_client_without_one() -> None:
    chain, client = Chain(), Client(["once"], session_key=None)
    await chain.call(client=client)
    assert "session" not in client.asked[0].answers


async def test_always_is_remembered_and_asks_no_user_again() -> None:
    remembered: list[tuple[str, Permission]] = []

    async def remember(rule: str, permission: Permission) -> None:
        remembered.append((rule, permission))

    chain, client = Chain(remember=remember), Client(["always"])
    await chain.call(client=client)
    await chain.call(client=Client([], session_key="session 2"))
    assert remembered == [("chat.send", "auto")]
    assert len(client.asked) == 1


async def test_always_counts_until_the_server_stops_if_it_cannot_be_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def remember(rule: str, permission: Permission) -> None:
        raise ConfigError(f"Cannot write {rule}: {permission}")

    chain = Chain(remember=remember)
    await chain.call(client=Client(["always"]))
    await chain.call(client=Client([]))
    assert "Cannot write chat.send" in caplog.text


async def test_whoever_answers_always_learns_that_it_counts_only_until_the_server_stops() -> None:
    async def remember(rule: str, permission: Permission) -> None:
        raise ConfigError(f"Cannot write {rule}: {permission}.")

    chain, effects = Chain(remember=remember), list[AnswerEffect]()
    with chain.gate.questions.shown():
        async with chain.running() as tasks:
            tasks.start_soon(chain.call)
            await until_all_wait()
            [question] = chain.gate.questions.waiting
            for _ in range(2):
                effects.append(await chain.gate.answer(question.id, "always", by="console"))
    why = "chat_send is allowed only until the server stops. Cannot write chat.send: auto."
    assert effects == [AnswerEffect(counts=True, note=why), AnswerEffect(counts=False)]


async def test_an_answer_of_which_there_is_nothing_to_know_has_no_note() -> None:
    chain = Chain()
    with chain.gate.questions.shown():
        async with chain.running() as tasks:
            tasks.start_soon(chain.call)
            await until_all_wait()
            [question] = chain.gate.questions.waiting
            effect = await chain.gate.answer(question.id, "always", by="console")
    assert effect == AnswerEffect(counts=True)


async def test_without_anybody_to_ask_the_call_is_refused_with_how_to_allow_it() -> None:
    chain = Chain()
    for client in (None, Client(can_ask=False)):
        error = await chain.refused(client=client)
        assert error.detail.code == "CONSENT_NEEDED"
        assert '"chat.send" = "auto"' in error.detail.message
        assert "opentabs ui" in error.detail.message


async def test_a_call_made_while_the_last_view_is_reloaded_asks_there() -> None:
    chain = Chain()
    async with chain.running() as tasks:
        with chain.gate.questions.shown(), chain.gate.questions.shown():
            pass
        tasks.start_soon(chain.call)
        await until_all_wait()
        assert chain.gate.questions.waiting == []
        with chain.gate.questions.shown():
            await until_all_wait()
            [question] = chain.gate.questions.waiting
            assert chain.gate.questions.answer(question.id, "once", by="console")
            await until_all_wait()
    assert [record.outcome for record in chain.records] == ["succeeded"]


async def test_a_call_is_refused_once_no_view_has_come_back() -> None:
    chain = Chain()
    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            pass
        tasks.start_soon(chain.refused)
        await until_all_wait()
        assert chain.records == []
        chain.clock.move(RELOADS_WITHIN)
        await until_all_wait()
        error = await chain.refused()  # at once, from now on
    assert "no way to ask them here" in error.detail.message
    assert [record.outcome for record in chain.records] == ["refused", "refused"]


async def test_of_two_answers_the_first_counts() -> None:
    chain = Chain()
    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            tasks.start_soon(chain.call)
            await until_all_wait()
            [question] = chain.gate.questions.waiting
            assert chain.gate.questions.answer(question.id, "once", by="console")
            assert not chain.gate.questions.answer(question.id, "no", by="panel")
            await until_all_wait()
    assert [each.allowed for each in chain.records] == ["console: once"]


async def test_always_lets_the_other_calls_of_the_tool_run_that_wait() -> None:
    chain = Chain()
    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            for _ in range(3):
                tasks.start_soon(chain.call)
            await until_all_wait()
            _, second, _ = chain.gate.questions.waiting
            assert chain.gate.questions.answer(second.id, "always", by="console")
            await until_all_wait()
            assert chain.gate.questions.waiting == []
    assert [each.outcome for each in chain.records] == ["succeeded"] * 3
    assert sorted(str(each.allowed) for each in chain.records) == [
        "auto",
        "auto",
        "console: always",
    ]


async def test_a_yes_for_the_session_lets_that_clients_other_calls_run_that_wait() -> None:
    chain, client, other = Chain(), Client(), Client(session_key="session 2")
    async with chain.running() as tasks:
        for each in (client, client, other):
            tasks.start_soon(chain.call, "chat_send", each)
            await until_all_wait()
        first, _, others = chain.gate.questions.waiting
        assert chain.gate.questions.answer(first.id, "session", by="console")
        await until_all_wait()
        assert chain.gate.questions.waiting == [others]
        allowed = [str(each.allowed) for each in chain.records]
    assert sorted(allowed) == ["asked: session", "console: session"]


async def test_what_is_decided_while_the_place_is_looked_up_is_not_asked() -> None:
    gate, client = Chain().gate, Client()
    tool = GatedTool("chat", "chat_send", read_only=False, standing="reviewed")

    async def find_place() -> Place:
        gate.set_rules({"chat": "auto"})
        return NOWHERE

    request = PermissionRequest(tool, "Send", {}, client=client, find_place=find_place)
    with anyio.fail_after(PATIENT):
        assert (await gate.permit(request, lambda: gate.decide(tool))).by == "auto"
    assert client.asked == []


async def test_a_question_ends_once_its_tool_is_turned_off() -> None:
    chain = Chain()
    refused: list[CallError] = []

    async def call() -> None:
        refused.append(await chain.refused())

    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            tasks.start_soon(call)
            await until_all_wait()
            chain.gate.set_rules({"chat": "off"})
            await until_all_wait()
            assert chain.gate.questions.waiting == []
    assert [each.detail.code for each in refused] == ["CONSENT_NEEDED"]
    assert "chat" in refused[0].detail.message


async def test_whoever_sees_the_list_can_answer_instead_of_the_client() -> None:
    chain, client = Chain(), Client()
    async with chain.running() as tasks:
        tasks.start_soon(chain.call, "chat_send", client)
        await until_all_wait()
        [question] = chain.gate.questions.waiting
        assert chain.gate.questions.answer(question.id, "once", by="console")
        await until_all_wait()
        assert not chain.gate.questions.answer(question.id, "once", by="console")
    assert [each.allowed for each in chain.records] == ["console: once"]
    assert chain.gate.questions.waiting == []


async def test_a_question_that_nobody_answers_within_two_minutes_is_refused() -> None:
    chain, client = Chain(), Client(can_ask=False)
    errors: list[CallError] = []

    async def call() -> None:
        errors.append(await chain.refused(client=client))

    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            tasks.start_soon(call)
            await until_all_wait()
            chain.clock.move(ASK_FOR - 1)
            await until_all_wait()
            assert errors == []
            chain.clock.move(1)
            await until_all_wait()
    assert errors[0].detail.code == "CONSENT_NEEDED"
    assert errors[0].detail.retryable
    assert chain.bridge.received == []


async def test_the_timers_of_a_call_start_when_it_is_allowed() -> None:
    chain = Chain()
    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            tasks.start_soon(chain.call)
            await until_all_wait()
            chain.clock.move(ASK_FOR - 1)  # longer than the idle timeout
            [question] = chain.gate.questions.waiting
            assert chain.gate.questions.seconds_left(question) == 1
            chain.gate.questions.answer(question.id, "once", by="console")
            await until_all_wait()
    assert [each.outcome for each in chain.records] == ["succeeded"]


async def test_a_waiting_client_is_reminded_that_it_waits() -> None:
    chain, client = Chain(), Client()
    async with chain.running() as tasks:
        tasks.start_soon(chain.call, "chat_send", client)
        await until_all_wait()
        assert len(client.waits) == 1
        assert "chat_send" in client.waits[0]
        chain.clock.move(REMIND_AFTER)
        await until_all_wait()
        assert len(client.waits) == 2


async def test_a_python_tool_is_not_timed_out_while_the_user_thinks_of_its_call() -> None:
    chain, client = Chain(), Client(can_ask=False)

    @tool
    async def outer(progress: Progress) -> Any:
        return await progress.call("chat_send")

    host = ToolHost(chain.alarms, Limits(idle=30.0, ceiling=300.0))
    host.caller = chain.tool_calls
    chain.registry.set_tools(PythonTools([outer], host).tools)
    values: list[Any] = []

    async def call() -> None:
        values.append(await chain.call("outer", client))

    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            tasks.start_soon(call)
            await until_all_wait()
            for _ in range(11):
                chain.clock.move(REMIND_AFTER)
                await until_all_wait()
            [question] = chain.gate.questions.waiting
            chain.gate.questions.answer(question.id, "once", by="console")
            await until_all_wait()
    assert values == [{"sent": True}]
    assert len(client.waits) == 12


async def test_a_question_leaves_the_list_when_its_call_is_cancelled() -> None:
    chain = Chain()
    changes: list[int] = []
    chain.gate.questions.subscribe(lambda: changes.append(len(chain.gate.questions.waiting)))
    async with chain.running():
        with chain.gate.questions.shown():
            async with anyio.create_task_group() as calls:
                calls.start_soon(chain.call)
                await until_all_wait()
                calls.cancel_scope.cancel()
    assert changes == [1, 0]
    assert chain.bridge.received == []


async def refused_after(chain: Chain, change: Callable[[], object]) -> str:
    """Change something while a person decides, who then allows the call; return the error code."""
    errors: list[CallError] = []

    async def call() -> None:
        errors.append(await chain.refused())

    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            tasks.start_soon(call)
            await until_all_wait()
            change()
            [question] = chain.gate.questions.waiting
            chain.gate.questions.answer(question.id, "once", by="console")
            await until_all_wait()
    assert chain.bridge.received == []
    return errors[0].detail.code


async def test_a_call_runs_in_the_tab_that_the_question_named() -> None:
    chain, client = Chain(), Client()
    show(chain.bridge, 1, 1, 2)
    async with chain.running() as tasks:
        tasks.start_soon(chain.call, "chat_send", client)
        await until_all_wait()
        [question] = client.asked
        show(chain.bridge, 2, 1, 2)  # the person switches to another account
        chain.gate.questions.answer(question.id, "once", by="console")
        await until_all_wait()

    assert question.place == Place("chat.example", "Account 1", 1)
    [received] = chain.bridge.received
    assert received.target.tab_id == 1


async def test_a_call_does_not_run_once_the_tab_that_the_question_named_has_gone() -> None:
    chain, client = Chain(), Client()
    show(chain.bridge, 1, 1, 2)
    failures: list[ChainError] = []

    async def call() -> None:
        with pytest.raises(ChainError) as caught:
            await chain.call("chat_send", client)
        failures.append(caught.value)

    async with chain.running() as tasks:
        tasks.start_soon(call)
        await until_all_wait()
        show(chain.bridge, 2, 2)
        chain.gate.questions.answer(client.asked[0].id, "once", by="console")
        await until_all_wait()

    assert chain.bridge.received == []
    [error] = failures
    assert (error.detail.code, error.detail.retryable) == ("NOT_DELIVERED", True)


async def test_a_question_ends_when_the_tab_that_it_names_is_closed_not_while_it_reloads() -> None:
    chain, client = Chain(), Client()
    show(chain.bridge, 1, 1, 2)
    failures: list[ChainError] = []

    async def call() -> None:
        with pytest.raises(ChainError) as caught:
            await chain.call("chat_send", client)
        failures.append(caught.value)

    async with chain.running() as tasks:
        tasks.start_soon(call)
        await until_all_wait()
        show(chain.bridge, 2, 2, loading=[1])
        chain.bridge.notify_changed()
        await until_all_wait()
        chain.bridge.tabs.connection_changed(connected=False, now=anyio.current_time())
        chain.bridge.notify_changed()
        await until_all_wait()
        assert len(chain.gate.questions.waiting) == 1
        show(chain.bridge, 2, 2)
        chain.bridge.notify_changed()
        await until_all_wait()
        assert chain.gate.questions.waiting == []

    assert chain.bridge.received == []
    [error] = failures
    assert (error.detail.code, error.detail.retryable) == ("NOT_DELIVERED", True)


@pytest.mark.parametrize("tab_id", [99, 99.0])
async def test_a_tab_that_the_caller_names_is_not_replaced_by_the_one_that_is_open(
    tab_id: float,
) -> None:
    chain, client = Chain(), Client(["once"])
    show(chain.bridge, 7, 7)
    with anyio.fail_after(PATIENT):
        await chain.tool_calls.call("chat_send", {"tabId": tab_id}, origin=CallOrigin.of(client))

    assert client.asked[0].place == NOWHERE
    assert [each.target.tab_id for each in chain.bridge.received] == [99]


async def test_a_call_that_needs_no_prompt_uses_the_active_tab() -> None:
    chain, client = Chain(), Client(["session"])
    show(chain.bridge, 1, 1, 2)
    await chain.call("chat_send", client)
    show(chain.bridge, 2, 1, 2)
    await chain.call("chat_send", client)

    assert [each.target.tab_id for each in chain.bridge.received] == [1, None]


async def test_a_call_without_a_tab_is_asked_about_too() -> None:
    chain, client = Chain(), Client(["once"])
    await chain.call("chat_send", client)

    assert client.asked[0].place == NOWHERE
    assert chain.bridge.received[0].target.tab_id is None


async def test_a_question_about_a_python_tool_names_no_tab() -> None:
    chain, client = Chain({"default": "ask"}), Client(["once"])

    @tool
    def greet() -> str:
        """Greet."""
        return "hi"

    host = ToolHost(chain.alarms, Limits(), 1000)
    chain.registry.set_tools(PythonTools([greet], host).tools)
    show(chain.bridge, 1, 1)
    assert await chain.call("greet", client) == "hi"
    assert client.asked[0].place == NOWHERE


async def test_a_tool_turned_off_while_the_user_thinks_does_not_run() -> None:
    chain = Chain()
    code = await refused_after(chain, lambda: chain.gate.set_rules({"chat": "off"}))
    assert code == "CONSENT_NEEDED"


async def test_a_tool_that_is_gone_when_the_user_allows_it_does_not_run() -> None:
    chain = Chain()
    code = await refused_after(chain, lambda: chain.registry.set_plugins([]))
    assert code == "UNKNOWN_TOOL"


async def test_a_call_within_another_is_never_left_to_a_client_that_would_repeat_it() -> None:
    chain, client = Chain(), Client(["once"], is_immediate=True)
    with pytest.raises(CallRefusedError) as caught:
        await chain.call(client=client, is_nested=True)
    assert caught.value.detail.code == "CONSENT_NEEDED"
    assert client.asked == []
    assert await chain.call(client=client) == {"sent": True}


async def test_a_client_that_fails_to_ask_leaves_the_answer_to_the_console() -> None:
    chain = Chain()

    class Broken(Client):
        async def ask(self, question: Question, /) -> Answer:
            raise failures.client_cannot_ask(question.tool, question.rule, "it is broken")

    error = await chain.refused(client=Broken())
    assert "it is broken" in str(error)
    async with chain.running() as tasks:
        with chain.gate.questions.shown():
            tasks.start_soon(chain.call, "chat_send", Broken())
            await until_all_wait()
            [question] = chain.gate.questions.waiting
            chain.gate.questions.answer(question.id, "once", by="console")
            await until_all_wait()
    assert chain.records[-1].allowed == "console: once"


async def test_tools_that_are_off_are_not_listed_and_calling_one_says_why() -> None:
    chain = Chain({"chat.send": "off"})
    changed: list[bool] = []
    chain.registry.subscribe(lambda: changed.append(True))
    assert [tool.listing.name for tool in chain.registry.tools] == ["chat_read"]
    error = await chain.refused()
    assert error.detail.code == "CONSENT_NEEDED"
    assert 'permissions."chat.send"' in error.detail.message
    chain.gate.set_rules({})
    assert [tool.listing.name for tool in chain.registry.tools] == ["chat_read", "chat_send"]
    assert changed == [True]


async def test_a_plugin_that_is_not_reviewed_says_so_whatever_the_rules() -> None:
    chain = Chain({"default": "auto"}, "unreviewed")
    assert chain.registry.tools == ()
    error = await chain.refused("chat_read", Client(["always"]))
    assert "opentabs review chat" in error.detail.message


async def test_the_user_who_makes_a_call_is_not_asked_about_it() -> None:
    chain = Chain()
    await chain.call(allowed_by="console")
    assert chain.records[0].allowed == "console"
    chain.gate.set_rules({"chat": "off"})
    with pytest.raises(CallRefusedError):
        await chain.call(allowed_by="console")


async def test_an_invalid_call_asks_no_user() -> None:
    chain, client = Chain(), Client(["once"])
    with pytest.raises(CallRefusedError, match="wrong"):
        await chain.tool_calls.call("chat_send", {"tabId": "wrong"}, origin=CallOrigin.of(client))
    assert client.asked == []


async def test_a_user_can_end_a_running_call_and_its_caller_is_notified() -> None:
    chain = Chain({"default": "auto"})
    chain.bridge.hangs = True
    errors: list[CallError] = []

    async def call() -> None:
        with pytest.raises(CallError) as caught:
            await chain.tool_calls.call("chat_send", {}, call_id="c1")
        errors.append(caught.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(PATIENT):
            await chain.bridge.called.wait()
        assert len(chain.tool_calls.running) == 1
        assert chain.tool_calls.running.cancel("c1", by="the user, in the console")
    assert chain.bridge.cancelled.is_set()
    assert errors[0].detail.code == "CANCELLED"
    assert "the user, in the console" in errors[0].detail.message
    assert not chain.tool_calls.running.cancel("c1", by="the user")
    assert chain.records[0].outcome == "cancelled"
    [received] = chain.bridge.received
    assert received.call.cancellation.reason == "cancelled by the user, in the console"
