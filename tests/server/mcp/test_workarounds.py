"""The server follows the specification where the MCP SDK alone would not."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.types import CLIENT_CAPABILITIES_META_KEY, HEADER_MISMATCH, PROTOCOL_VERSION_META_KEY

from opentabs_py.server.mcp.workarounds import header_mismatch
from opentabs_py.session.session import Server
from tests.fakes import Json
from tests.python_tools.samples import Counter
from tests.served import INITIALIZE, Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio
BOTH_ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
ALL: Json = {
    "tools_list_changed": True,
    "prompts_list_changed": True,
    "resources_list_changed": True,
    "resource_subscriptions": ["stream://ff", "https://example.com/"],
}


@BOTH_ERAS
async def test_a_server_declares_no_changes_that_it_never_sends(mode: str) -> None:
    async with Server(tools=[Counter]) as server, Client(server.mcp_server, mode=mode) as client:
        capabilities = client.server_capabilities
    assert capabilities.tools is not None
    assert capabilities.resources is not None
    assert capabilities.tools.list_changed is True
    assert not capabilities.resources.list_changed


@BOTH_ERAS
async def test_a_gateway_whose_two_tools_stay_declares_no_changes(mode: str) -> None:
    async with Client(Served().gateway, mode=mode) as client:
        assert client.server_capabilities.tools is not None
        assert not client.server_capabilities.tools.list_changed


@pytest.mark.parametrize(
    ("server", "honored"),
    [
        (lambda: Served().server, {"tools_list_changed": True}),
        (lambda: Served().gateway, {}),
        (
            lambda: Server(tools=[Counter]),
            {"tools_list_changed": True, "resource_subscriptions": ["stream://ff"]},
        ),
    ],
    ids=["pages", "gateway", "streams"],
)
async def test_the_acknowledgement_of_a_listener_names_what_it_will_be_sent_and_no_more(
    server: Callable[[], Any], honored: Json
) -> None:
    served = server()
    if isinstance(served, Server):
        async with served, Client(served.mcp_server) as client, client.listen(**ALL) as changes:
            assert changes.honored.model_dump(exclude_none=True) == honored
        return
    async with Client(served) as client, client.listen(**ALL) as changes:
        assert changes.honored.model_dump(exclude_none=True) == honored


@pytest.mark.parametrize("has_session", [True, False])
@pytest.mark.parametrize("version", [None, "2025-11-25", "2024-11-05"])
async def test_a_version_in_the_body_that_is_not_the_header_s_is_a_header_mismatch(
    version: str | None, has_session: bool
) -> None:
    meta = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_CAPABILITIES_META_KEY: {}}
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}}
    headers = {"accept": "application/json, text/event-stream"}
    async with Served().over_http() as url, httpx2.AsyncClient(headers=headers) as http:
        if has_session:
            begun = await http.post(url, json={"jsonrpc": "2.0", **INITIALIZE})
            http.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        if version is not None:
            http.headers["mcp-protocol-version"] = version
        answer = await http.post(url, json=asked)
    assert answer.status_code == 400
    assert answer.json()["id"] == 7
    error = answer.json()["error"]
    assert error["code"] == HEADER_MISMATCH
    assert "2026-07-28" in error["message"]
    assert (version or "missing") in error["message"]


def test_a_long_version_in_the_body_is_shortened() -> None:
    body = {"params": {"_meta": {PROTOCOL_VERSION_META_KEY: "2" * 1000}}}
    assert f"says {'2' * 119}…. Send" in str(header_mismatch({}, body))


async def test_a_request_of_the_initialize_era_needs_no_version_in_header_or_body() -> None:
    headers = {"accept": "application/json, text/event-stream"}
    async with Served().over_http() as url, httpx2.AsyncClient(headers=headers) as http:
        begun = await http.post(url, json={"jsonrpc": "2.0", **INITIALIZE})
        http.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        metas: list[Json] = [{}, {"progressToken": 1}]
        for params in ({}, *({"_meta": meta} for meta in metas)):
            asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": params}
            assert (await http.post(url, json=asked)).status_code == 200


async def test_a_client_that_wants_to_resume_its_stream_gets_a_new_one() -> None:
    headers = {"accept": "application/json, text/event-stream"}
    async with Served().over_http() as url, httpx2.AsyncClient(timeout=PATIENT) as client:
        opened = await client.post(url, json={"jsonrpc": "2.0", **INITIALIZE}, headers=headers)
        headers |= {"mcp-session-id": opened.headers["mcp-session-id"], "last-event-id": "5"}
        async with client.stream("GET", url, headers=headers) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "text/event-stream"
