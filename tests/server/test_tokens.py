"""Progress tokens: each belongs to one call at a time, and invalid ones are tolerated."""

from typing import Any

import anyio
import httpx2
import pytest

from tests.fakes import FakeBridge, Json
from tests.served import INITIALIZE, INITIALIZED, Served, raw_client
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


def a_call(number: int, token: object) -> Json:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    params = {"name": "chat_send", "arguments": {"id": number}, **meta}
    return {"id": number, "method": "tools/call", "params": params}


def ids(served: Served) -> list[object]:
    """Return the ids of the calls that have reached the bridge."""
    return [each.call.arguments["id"] for each in served.bridge.received]


def hanging() -> Served:
    bridge = FakeBridge(value={})
    bridge.hangs = True
    return Served(bridge)


async def wait_for_calls(served: Served, count: int) -> None:
    with anyio.fail_after(PATIENT):
        while len(served.bridge.received) < count:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("token", ["t", 7])
async def test_of_two_calls_with_one_token_at_once_the_second_is_refused_by_the_rule(
    token: object,
) -> None:
    served = hanging()
    async with raw_client(served.server) as client:
        await client.say(INITIALIZED)
        await client.say(a_call(2, token))
        await wait_for_calls(served, 1)
        await client.say(a_call(3, token))
        refused = await client.read()
    assert refused["id"] == 3
    assert refused["error"]["code"] == -32602
    assert f"{token!r} belongs to a call that is still running" in refused["error"]["message"]
    assert "unique across active requests" in refused["error"]["message"]
    assert ids(served) == [2]


@pytest.mark.parametrize("others", [(1, "1"), ("a", "b"), (None, None)])
async def test_calls_with_other_tokens_or_none_run_at_once(others: tuple[object, object]) -> None:
    served = hanging()
    async with raw_client(served.server) as client:
        await client.say(a_call(2, others[0]))
        await client.say(a_call(3, others[1]))
        await wait_for_calls(served, 2)
    assert ids(served) == [2, 3]


@pytest.mark.parametrize("token", [True, False])
async def test_a_token_that_is_a_boolean_is_refused_as_the_other_wrong_types_are(
    token: bool,
) -> None:
    served = Served(FakeBridge(value={}))
    async with raw_client(served.server) as client:
        await client.say(INITIALIZED)
        await client.say(a_call(2, token))
        refused = await client.read()
        assert refused["error"]["code"] == -32602
        await client.say(a_call(3, 1.5))
        assert (await client.read())["error"]["code"] == -32602
    assert "must be a string or an integer" in refused["error"]["message"]
    assert served.bridge.received == []


async def test_a_token_can_be_used_again_once_its_call_has_ended() -> None:
    served = Served(FakeBridge(value={}))
    async with raw_client(served.server) as client:
        for number in (2, 3):
            await client.say(a_call(number, "t"))
            assert (await client.read())["id"] == number
    assert ids(served) == [2, 3]


async def test_a_token_can_be_used_again_once_its_call_was_cancelled() -> None:
    served = hanging()
    async with raw_client(served.server) as client:
        await client.say(a_call(2, "t"))
        await wait_for_calls(served, 1)
        await client.say({"method": "notifications/cancelled", "params": {"requestId": 2}})
        with anyio.fail_after(PATIENT):
            await served.bridge.cancelled.wait()
        await client.say(a_call(3, "t"))
        await wait_for_calls(served, 2)
    assert ids(served) == [2, 3]


async def test_clients_over_http_may_use_the_same_token_at_once() -> None:
    served = hanging()
    headers = {"accept": "application/json, text/event-stream"}
    async with served.over_http() as url, httpx2.AsyncClient(headers=headers) as http:

        async def post(session: dict[str, str], message: Json) -> Any:
            return await http.post(url, json={"jsonrpc": "2.0", **message}, headers=session)

        sessions = [
            {"mcp-session-id": (await post({}, INITIALIZE)).headers["mcp-session-id"]}
            for _ in range(2)
        ]
        async with anyio.create_task_group() as tasks:
            for session in sessions:
                tasks.start_soon(post, session, a_call(2, "t"))
            await wait_for_calls(served, 2)
            refused = await post(sessions[0], a_call(3, "t"))
            tasks.cancel_scope.cancel()
    assert "is still running" in refused.text
    assert ids(served) == [2, 2]


@pytest.mark.parametrize(("number", "shown"), [(2, "2"), ("n" * 1000, f"'{'n' * 119}…'")])
async def test_of_two_requests_with_one_id_the_second_is_refused_and_the_first_answered(
    number: int | str, shown: str
) -> None:
    served = hanging()
    headers = {"accept": "application/json, text/event-stream"}
    answers: list[Any] = []
    async with served.over_http() as url, httpx2.AsyncClient(headers=headers) as http:
        response = await http.post(url, json={"jsonrpc": "2.0", **INITIALIZE})
        http.headers["mcp-session-id"] = response.headers["mcp-session-id"]

        async def call() -> None:
            asked = {"jsonrpc": "2.0", **a_call(2, None), "id": number}
            answers.append(await http.post(url, json=asked))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await wait_for_calls(served, 1)
            await call()
            cancel = {"method": "notifications/cancelled", "params": {"requestId": number}}
            await http.post(url, json={"jsonrpc": "2.0", **cancel})
    refused, first = answers
    assert (refused.status_code, refused.json()["id"]) == (400, number)
    assert f"the id {shown} is still running" in refused.json()["error"]["message"]
    assert "Request cancelled" in first.text
    assert len(served.bridge.received) == 1


MALFORMED: list[Json] = [
    {"progressToken": "nobody's", "progress": 1},
    {"progressToken": 2, "progress": 5},
    {"progressToken": 2, "progress": 1},
    {"progressToken": 2, "progress": "a lot"},
    {"progressToken": 2},
    {"progressToken": None, "progress": 1},
    {"progressToken": [], "progress": {}, "total": "x"},
    {},
]


async def test_malformed_progress_from_a_client_is_ignored_over_stdio() -> None:
    served = Served(FakeBridge(value={}))
    async with raw_client(served.server) as client:
        await client.say(INITIALIZED)
        for params in MALFORMED * 3:
            await client.say({"method": "notifications/progress", "params": params})
        await client.say(a_call(2, "t"))
        answer = await client.read()  # the first message: nothing was answered before
    assert answer["id"] == 2
    assert answer["result"]["isError"] is False


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_malformed_progress_from_a_client_is_ignored_over_http(era: str) -> None:
    served = Served(FakeBridge(value={}))
    headers = {"accept": "application/json, text/event-stream"}
    async with served.over_http() as url, httpx2.AsyncClient(headers=headers) as http:
        response = await http.post(url, json={"jsonrpc": "2.0", **INITIALIZE})
        session = {"mcp-session-id": response.headers["mcp-session-id"]}
        modern = {"mcp-protocol-version": era, "mcp-method": "notifications/progress"}
        for params in MALFORMED:
            message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            sender = session if era == "2025-11-25" else modern
            assert (await http.post(url, json=message, headers=sender)).status_code == 202
        call = {"jsonrpc": "2.0", **a_call(2, "t")}
        answer = await http.post(url, json=call, headers=session)
    assert '"isError":false' in answer.text
