"""The ids of requests over HTTP: each belongs to one request at a time."""

import json

import anyio
import pytest

from opentabs_py.server.mcp.streamable_http import run_http_apps
from tests.fakes import FakeBridge, Json
from tests.served import INITIALIZE, INITIALIZED, Poster, Served
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio
ANSWERS = [b'"result":', b'"error":']


@pytest.mark.parametrize("request_id", [1, -1, 'a "quoted" \\ id', ""])
@pytest.mark.parametrize("method", ["tools/list", "no/such/method"])
async def test_an_id_is_free_again_before_its_answer_is_sent(
    request_id: str | int, method: str
) -> None:
    message: Json = {"id": request_id, "method": method}
    again: list[int] = []
    async with run_http_apps({"/mcp": Served().server}, request_limit=10_000) as apps:
        client = Poster(apps["/mcp"])
        assert await client.post(INITIALIZE) == 200

        async def ask_again(part: bytes) -> None:
            if any(each in part for each in ANSWERS):
                again.append(await client.post(message))

        assert await client.post(message, ask_again) == 200
    assert again == [200]


async def test_the_id_of_a_call_whose_connection_dropped_stays_taken_until_the_call_has_ended() -> (
    None
):
    bridge = FakeBridge(value={})
    bridge.hangs = True
    call: Json = {"id": 5, "method": "tools/call", "params": {"name": "chat_send"}}
    cancel: Json = {"method": "notifications/cancelled", "params": {"requestId": 5}}
    async with (
        run_http_apps({"/mcp": Served(bridge).server}, request_limit=10_000) as apps,
        anyio.create_task_group() as tasks,
    ):
        client, drop = Poster(apps["/mcp"]), anyio.Event()
        await client.post(INITIALIZE)
        tasks.start_soon(lambda: client.post(call, drop=drop))
        await bridge.called.wait()
        drop.set()
        await until_all_wait()

        assert await client.post(call) == 400
        assert not bridge.cancelled.is_set()
        await client.post(cancel)
        await until_all_wait()
        bridge.hangs = False
        assert await client.post(call) == 200

    assert len(bridge.received) == 2


@pytest.mark.parametrize("request_id", [None, True, 1.5, 2.0, [], {}])
async def test_a_request_whose_id_is_not_valid_is_refused(request_id: object) -> None:
    message: Json = {"id": request_id, "method": "tools/list"}
    async with run_http_apps({"/mcp": Served().server}, request_limit=10_000) as apps:
        client, parts = Poster(apps["/mcp"]), list[bytes]()
        await client.post(INITIALIZE)

        async def keep(part: bytes) -> None:
            parts.append(part)

        assert await client.post(message, keep) == 400
        assert await client.post({**INITIALIZED, "id": None}) == 202
    refused = json.loads(b"".join(parts))
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
