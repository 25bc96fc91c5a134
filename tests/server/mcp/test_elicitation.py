"""MCP clients of both eras ask their user whether a call may run."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
import pytest
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from opentabs_py import tool
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.consent.gate import Gate
from opentabs_py.core.consent import Permission
from opentabs_py.core.protocol import DocumentState
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.progress import Progress
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.server.mcp import elicitation
from opentabs_py.server.mcp.connections import ClientConnection
from opentabs_py.server.mcp.results import ERROR_META_KEY
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.server.mcp.streamable_http import run_http_apps
from tests.fakes import FakeBridge, Json, SignedOut, a_document, a_manifest, a_tool, tool_calls_of
from tests.served import Poster, Served, initialize
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])
Answers = Callable[[types.ElicitRequestFormParams], types.ElicitResult]


class Asking(Served):
    """A server whose tool asks."""

    def __init__(self, bridge: FakeBridge | None = None) -> None:
        super().__init__()
        self.remembered: list[tuple[str, Permission]] = []
        self.bridge = bridge or FakeBridge(value={"sent": True})
        self.gate = Gate(AlarmClock(), remember=self._remember)
        self.tool_calls = tool_calls_of(self.bridge.pages, gate=self.gate)
        self.registry = self.tool_calls.registry
        self.registry.set_plugins([a_manifest(a_tool("send"))], {"chat": "reviewed"})
        self.server = create_mcp_server(self.tool_calls)
        self.gateway = create_mcp_server(self.tool_calls, as_gateway=True)

    async def _remember(self, rule: str, permission: Permission) -> None:
        self.remembered.append((rule, permission))


@asynccontextmanager
async def connected(
    served: Served, mode: Any, answer: Answers | None, *, path: str = ""
) -> AsyncGenerator[Client]:
    async def elicit(_context: Any, params: Any) -> types.ElicitResult:
        assert answer is not None
        return answer(params)

    callback: Any = None if answer is None else elicit
    async with served.over_http() as url:
        transport = streamable_http_client(url + path)
        with anyio.fail_after(PATIENT):
            async with Client(transport, mode=mode, elicitation_callback=callback) as client:
                yield client


def show_accounts(
    bridge: FakeBridge, *, front: int, readiness: str = "ready", tabs: Sequence[int] = (1, 2)
) -> None:
    """Report tabs in which the call could run."""
    given = [
        a_document(
            documentId=f"{tab:032x}",
            tabId=tab,
            title=f"Account {tab}",
            active=tab == front,
            readiness=readiness,
        )
        for tab in tabs
    ]
    now = anyio.current_time()
    bridge.tabs.connection_changed(connected=True, now=now)
    bridge.tabs.update([DocumentState.model_validate(each) for each in given], now)


def says(word: str, seen: list[types.ElicitRequestFormParams] | None = None) -> Answers:
    def answer(params: types.ElicitRequestFormParams) -> types.ElicitResult:
        if seen is not None:
            seen.append(params)
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content=dict.fromkeys(fields, word))

    return answer


@ERAS
@pytest.mark.parametrize("path", ["", "/gateway"])
async def test_a_yes_runs_the_call(mode: str, path: str) -> None:
    served, seen = Asking(), list[types.ElicitRequestFormParams]()
    name, arguments = "chat_send", dict[str, Any]()
    if path:
        arguments = {"name": "chat_send", "arguments": {}}
    async with connected(served, mode, says("once", seen), path=path) as client:
        if path:
            [name] = [
                each.name for each in (await client.list_tools()).tools if "call" in each.name
            ]
        result = await client.call_tool(name, arguments)
    assert result.structured_content == {"sent": True}
    [params] = seen
    assert "chat_send" in params.message
    assert params.requested_schema["properties"]["answer"]["enum"][0] == "once"
    assert len(served.bridge.received) == 1


@ERAS
async def test_the_call_runs_in_the_tab_that_the_question_named(mode: str) -> None:
    served = Asking()

    def answer(params: types.ElicitRequestFormParams) -> types.ElicitResult:
        assert '(tab "Account 1")' in params.message
        show_accounts(served.bridge, front=2)  # the person switches to another account
        return types.ElicitResult(action="accept", content={"answer": "once"})

    show_accounts(served.bridge, front=1)
    async with connected(served, mode, answer) as client:
        await client.call_tool("chat_send", {})

    [received] = served.bridge.received
    assert received.target.tab_id == 1


@ERAS
async def test_a_call_runs_in_no_other_tab_if_the_one_that_the_question_named_is_closed(
    mode: str,
) -> None:
    served = Asking()

    def answer(params: types.ElicitRequestFormParams) -> types.ElicitResult:
        assert '(tab "Account 1")' in params.message
        show_accounts(served.bridge, front=2, tabs=[2])
        return types.ElicitResult(action="accept", content={"answer": "once"})

    show_accounts(served.bridge, front=1)
    async with connected(served, mode, answer) as client:
        result = await client.call_tool("chat_send", {})

    assert (result.meta or {})[ERROR_META_KEY]["code"] == "NOT_DELIVERED"
    assert served.bridge.received == []


@ERAS
@pytest.mark.parametrize(
    "answer",
    [
        types.ElicitResult(action="decline"),
        types.ElicitResult(action="cancel"),
        types.ElicitResult(action="accept", content={"answer": "no"}),
        types.ElicitResult(action="accept", content={"answer": "sure"}),
        types.ElicitResult(action="accept"),
    ],
)
async def test_anything_but_a_yes_refuses_the_call(mode: str, answer: types.ElicitResult) -> None:
    served = Asking()
    async with connected(served, mode, lambda _params: answer) as client:
        result = await client.call_tool("chat_send", {})
    assert (result.meta or {})[ERROR_META_KEY]["code"] == "CONSENT_REFUSED"
    assert served.bridge.received == []


@ERAS
async def test_always_adds_a_rule_and_the_next_call_asks_no_user(mode: str) -> None:
    served, seen = Asking(), list[types.ElicitRequestFormParams]()
    async with connected(served, mode, says("always", seen)) as client:
        await client.call_tool("chat_send", {})
        await client.call_tool("chat_send", {})
    assert served.remembered == [("chat.send", "auto")]
    assert len(seen) == 1


@dataclass
class Request:
    """The part of a request that says what its client can do."""

    client_capabilities: types.ClientCapabilities
    protocol_version: str = "2025-06-18"
    request: None = None

    @property
    def session(self) -> "Request":
        return self


@pytest.mark.parametrize(
    ("capability", "can"),
    [
        ({}, True),  # when there were only forms
        ({"form": {}}, True),
        ({"form": {}, "url": {}}, True),
        ({"url": {}}, False),
        (None, False),
    ],
)
def test_a_client_is_asked_only_if_it_can_show_a_form(capability: Any, can: bool) -> None:
    capabilities = types.ClientCapabilities.model_validate({"elicitation": capability})
    request: Any = Request(capabilities)
    params = types.CallToolRequestParams(name="chat_send")
    retries = elicitation.Retries(Server("a server"))
    found = elicitation.find_asker(request, params, ClientConnection(), retries)
    assert (found is not None) is can


@ERAS
async def test_a_client_that_cannot_ask_is_refused_at_once(mode: str) -> None:
    served = Asking()
    async with connected(served, mode, None) as client:
        result = await client.call_tool("chat_send", {})
    assert (result.meta or {})[ERROR_META_KEY]["code"] == "CONSENT_NEEDED"


@ERAS
@pytest.mark.parametrize("permission", ["ask", "auto"])
async def test_a_user_who_is_signed_out_signs_in_and_the_call_runs(
    mode: str, permission: Permission
) -> None:
    page, asked = SignedOut(), list[str]()
    served = Asking(page)
    served.gate.set_rules({"chat": permission})

    def answer(params: types.ElicitRequestFormParams) -> types.ElicitResult:
        is_about_signing_in = "Sign in there" in params.message
        asked.append("sign in" if is_about_signing_in else "allow")
        if is_about_signing_in:
            page.sign_in(is_noticed=False)
        return types.ElicitResult(action="accept", content={"answer": "once"})

    async with connected(served, mode, answer) as client:
        result = await client.call_tool("chat_send", {})

    assert result.structured_content == {"sent": True}
    assert asked == (["allow", "sign in"] if permission == "ask" else ["sign in"])
    assert len(page.received) == 1


@ERAS
async def test_a_call_whose_user_signs_in_stays_in_the_tab_that_they_allowed_it_for(
    mode: str,
) -> None:
    page = SignedOut()
    served = Asking(page)

    def answer(params: types.ElicitRequestFormParams) -> types.ElicitResult:
        if "Sign in there" in params.message:
            page.is_signed_in = True
        else:
            assert '(tab "Account 1")' in params.message
        show_accounts(
            page, front=2, readiness="unavailable"
        )  # the person switches to another account
        return types.ElicitResult(action="accept", content={"answer": "once"})

    show_accounts(page, front=1)
    async with connected(served, mode, answer) as client:
        await client.call_tool("chat_send", {})

    [received] = page.received
    assert received.target.tab_id == 1


@ERAS
async def test_signing_in_does_not_allow_a_call_that_had_no_prompt(mode: str) -> None:
    page, asked = SignedOut(), list[str]()
    served = Asking(page)
    served.gate.set_rules({"chat": "auto"})

    def answer(params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(params.message)
        if "Sign in there" not in params.message:
            return types.ElicitResult(action="decline")
        page.sign_in(is_noticed=False)
        served.gate.set_rules({"chat": "ask"})  # they think better of it
        return types.ElicitResult(action="accept", content={"answer": "once"})

    async with connected(served, mode, answer) as client:
        result = await client.call_tool("chat_send", {})

    if mode == "auto":  # the call is made again, so the new rule holds for it
        assert (result.meta or {})[ERROR_META_KEY]["code"] == "CONSENT_REFUSED"
        assert len(asked) == 2
        assert page.received == []
    else:
        assert len(page.received) == 1


@ERAS
@pytest.mark.parametrize("signs_in", [True, False], ids=["only says so", "does not want to"])
async def test_a_user_who_does_not_sign_in_is_not_asked_again_by_the_same_call(
    mode: str, signs_in: bool
) -> None:
    page, asked = SignedOut(), list[str]()
    served = Asking(page)

    def answer(params: types.ElicitRequestFormParams) -> types.ElicitResult:
        asked.append(params.message)
        says = "once" if signs_in or "Sign in there" not in params.message else "no"
        return types.ElicitResult(action="accept", content={"answer": says})

    async with connected(served, mode, answer) as client:
        result = await client.call_tool("chat_send", {})

    assert (result.meta or {})[ERROR_META_KEY]["code"] == "TAB_NOT_READY"
    assert len(asked) == 2
    assert page.received == []


async def test_a_client_that_fails_to_ask_is_told_how_it_has_failed() -> None:
    def fail(_params: types.ElicitRequestFormParams) -> types.ElicitResult:
        raise MCPError(types.INTERNAL_ERROR, "no window\nis open" + "!" * 1000)

    async with connected(Asking(), "legacy", fail) as client:
        result = await client.call_tool("chat_send", {})

    assert isinstance(result.content[0], types.TextContent)
    said = result.content[0].text.partition("\n")[0]
    assert "code=CONSENT_NEEDED category=permission retryable=false" in said
    assert "The client answered the question with an error: no window is open!" in said
    assert '"chat.send" = "auto"' in said
    assert len(said) < 700


async def test_questions_that_come_while_one_is_open_are_asked_in_one_form() -> None:
    served = Asking()
    forms: list[types.ElicitRequestFormParams] = []
    first_is_open, go_on = anyio.Event(), anyio.Event()

    async def elicit(_context: Any, params: Any) -> types.ElicitResult:
        forms.append(params)
        if len(forms) == 1:
            first_is_open.set()
            await go_on.wait()
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content=dict.fromkeys(fields, "once"))

    async with served.over_http() as url:
        transport, callback = streamable_http_client(url), cast("Any", elicit)
        with anyio.fail_after(PATIENT):
            async with (
                Client(transport, mode="legacy", elicitation_callback=callback) as client,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(client.call_tool, "chat_send", {})
                await first_is_open.wait()
                for _ in range(9):
                    tasks.start_soon(client.call_tool, "chat_send", {})
                while len(served.gate.questions.waiting) < 10:
                    await until_all_wait()
                go_on.set()
    assert [len(form.requested_schema["properties"]) for form in forms] == [1, 9]
    assert "9 calls wait for you." in forms[1].message
    assert len(served.bridge.received) == 10


async def test_the_form_of_a_call_whose_connection_dropped_does_not_delay_the_next() -> None:
    served, forms = Asking(), [anyio.Event(), anyio.Event()]
    form_ids: list[int] = []

    async def handle(part: bytes) -> None:
        if b"elicitation/create" in part:
            form_ids.append(json.loads(part.partition(b"data: ")[2])["id"])
            forms[len(form_ids) - 1].set()

    def a_call(number: int) -> Json:
        return {"id": number, "method": "tools/call", "params": {"name": "chat_send"}}

    async with run_http_apps({"/mcp": served.server}, request_limit=10_000) as apps:
        client, drop = Poster(apps["/mcp"]), anyio.Event()
        await client.post(initialize(capabilities={"elicitation": {}}))
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.post, a_call(1), handle, drop)
                await forms[0].wait()
                drop.set()
                tasks.start_soon(client.post, a_call(2), handle)
                await forms[1].wait()
                yes = {"action": "accept", "content": {"answer": "once"}}
                await client.post({"id": form_ids[1], "result": yes})

    assert len(served.bridge.received) == 1
    assert served.gate.questions.waiting == []


class Either:
    """Reads the response to a call: a result or a question."""

    @staticmethod
    def model_validate(raw: Any, **how: Any) -> Any:
        is_asking = raw.get("resultType") == "input_required"
        kind = types.InputRequiredResult if is_asking else types.CallToolResult
        return kind.model_validate(raw, **how)


async def a_modern_call(client: Client, **more: Any) -> Any:
    params = types.CallToolRequestParams(name="chat_send", arguments={}, **more)
    request = types.CallToolRequest(params=params)
    return await client.session.send_request(request, cast("Any", Either))


async def test_an_answer_counts_once_and_only_with_what_the_server_sent() -> None:
    served = Asking()
    yes = types.ElicitResult(action="accept", content={"answer": "once"})
    async with connected(served, "auto", says("once")) as client:
        forged = await a_modern_call(client, input_responses={"consent": yes})
        assert isinstance(forged, types.InputRequiredResult)
        with pytest.raises(MCPError):
            await a_modern_call(
                client, input_responses={"consent": yes}, request_state="v1.made-up"
            )
        assert served.bridge.received == []
        state = forged.request_state
        again = {"input_responses": {"consent": yes}, "request_state": state}
        assert isinstance(await a_modern_call(client, **again), types.CallToolResult)
        repeated = await a_modern_call(client, **again)
        assert isinstance(repeated, types.InputRequiredResult)
    assert len(served.bridge.received) == 1


async def test_questions_that_no_client_comes_back_with_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elicitation, "MOST_ASKED", 2)
    served = Asking()
    yes = types.ElicitResult(action="accept", content={"answer": "once"})
    async with connected(served, "auto", says("once")) as client:
        asked = [await a_modern_call(client) for _ in range(3)]
        results = [
            await a_modern_call(
                client, input_responses={"consent": yes}, request_state=each.request_state
            )
            for each in reversed(asked)  # the last one first, because asking again forgets another
        ]
    kinds = [types.CallToolResult, types.CallToolResult, types.InputRequiredResult]
    assert [type(each) for each in results] == kinds


async def test_a_python_tools_own_call_asks_only_a_client_that_can_be_asked_meanwhile() -> None:
    served = Asking()

    @tool
    async def outer(progress: Progress) -> Any:
        return await progress.call("chat_send")

    host = ToolHost(AlarmClock())
    host.caller = served.tool_calls
    served.registry.set_tools(PythonTools([outer], host).tools)
    async with connected(served, "auto", says("once")) as client:
        result = await client.call_tool("outer", {})
        assert (result.meta or {})[ERROR_META_KEY]["code"] == "CONSENT_NEEDED"
    async with connected(served, "legacy", says("once")) as client:
        assert not (await client.call_tool("outer", {})).is_error
