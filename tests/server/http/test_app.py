"""The web application, with real requests to a real server on a free port of 127.0.0.1."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.server.http.app import create_app
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.server.mcp.streamable_http import run_http_apps
from tests.another_user import get, on_linux
from tests.fakes import a_bridge, hello, pages_of, tool_calls_of
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

SECRET = "s" * 64
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@asynccontextmanager
async def serving(bridge: Bridge, *, token: str | None = None) -> AsyncGenerator[int]:
    """Serve a bridge and no tools; yield the port."""
    pages = pages_of(bridge)
    server = create_mcp_server(tool_calls_of(pages))
    with bind("127.0.0.1", 0) as listener:
        async with (
            run_http_apps({"/mcp": server}, request_limit=100_000) as apps,
            serve_http(create_app(apps, pages, token=token), listener),
        ):
            yield listener.getsockname()[1]


def open_socket(
    port: int, *, origin: str | None = "chrome-extension://x", secret: str = SECRET
) -> connect:
    return connect(
        f"ws://127.0.0.1:{port}/ws",
        subprotocols=["opentabs", f"opentabs.secret.{secret}"],  # type: ignore[list-item]
        additional_headers={"Origin": origin} if origin else {},
        open_timeout=PATIENT,
    )


async def say_hello(socket: ClientConnection) -> dict[str, object]:
    await socket.send(json.dumps({"jsonrpc": "2.0", **hello()}))
    answer: dict[str, object] = json.loads(await socket.recv())
    return answer


async def test_an_extension_with_secret_and_origin_is_greeted() -> None:
    bridge = a_bridge()
    async with serving(bridge) as port, open_socket(port) as socket:
        assert (await say_hello(socket))["id"] == 1
        assert socket.subprotocol == "opentabs"  # and never the secret, because proxies may log it
        assert bridge.connected


@pytest.mark.parametrize("origin", ["https://evil.example", "chrome-extension://y", "null", None])
async def test_a_socket_of_another_origin_is_refused(origin: str | None) -> None:
    async with serving(a_bridge()) as port:
        with pytest.raises(InvalidStatus) as caught:
            async with open_socket(port, origin=origin):
                pass
    assert caught.value.response.status_code == 403


async def test_a_wrong_secret_is_closed_with_a_reason_the_user_can_act_on() -> None:
    bridge = a_bridge()
    async with serving(bridge) as port, open_socket(port, secret="t" * 64) as socket:
        with pytest.raises(ConnectionClosed) as caught:
            await socket.recv()
    received = caught.value.rcvd
    assert received is not None
    assert received.code == 4004
    assert "load the folder that this server staged" in received.reason
    assert not bridge.connected


async def test_a_wrong_version_is_closed_with_a_reason_the_user_can_act_on() -> None:
    async with serving(a_bridge()) as port, open_socket(port) as socket:
        await socket.send(json.dumps({"jsonrpc": "2.0", **hello(version=99)}))
        with pytest.raises(ConnectionClosed) as caught:
            await socket.recv()
    received = caught.value.rcvd
    assert received is not None
    assert received.code == 4001
    assert "update the extension" in received.reason


async def test_a_binary_frame_is_a_malformed_message_and_the_socket_stays() -> None:
    async with serving(a_bridge()) as port, open_socket(port) as socket:
        await socket.send(b"\x00\x01")
        assert "error" in json.loads(await socket.recv())
        assert (await say_hello(socket))["id"] == 1


async def test_an_extension_that_hangs_up_is_gone() -> None:
    bridge = a_bridge()
    async with serving(bridge) as port:
        async with open_socket(port) as socket:
            await say_hello(socket)
        async with httpx2.AsyncClient() as client:
            status = (await client.get(f"http://127.0.0.1:{port}/status", timeout=PATIENT)).json()
    assert status == {"extension": False, "plugins": {}, "problems": []}


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [({}, True), ({"Host": "evil.example"}, False), ({"Origin": "https://evil.example"}, False)],
)
@pytest.mark.parametrize("path", ["/mcp", "/status"])
async def test_only_clients_of_this_machine_are_answered(
    path: str, headers: dict[str, str], allowed: bool
) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    async with serving(a_bridge()) as port, httpx2.AsyncClient(timeout=PATIENT) as client:
        answer = await client.request(
            "GET" if path == "/status" else "POST",
            f"http://127.0.0.1:{port}{path}",
            json=PING,
            headers={**accept, **headers},
        )
    assert (answer.status_code != 403) is allowed
    assert allowed or "error" in answer.json()


@pytest.mark.parametrize("given", [None, "Bearer wrong"])
@pytest.mark.parametrize("path", ["/mcp", "/status"])
async def test_with_a_token_nobody_is_admitted_without_it(path: str, given: str | None) -> None:
    headers = {} if given is None else {"authorization": given}
    async with serving(a_bridge(), token="t" * 16) as port, httpx2.AsyncClient() as client:
        answer = await client.request(
            "GET" if path == "/status" else "POST",
            f"http://127.0.0.1:{port}{path}",
            json=PING,
            headers=headers,
        )

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer TOKEN" in answer.json()["error"]


@pytest.mark.parametrize("token", [None, "t" * 16])
@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/nothing",
    ],
)
async def test_an_unknown_path_is_404_as_json_for_everybody(path: str, token: str | None) -> None:
    async with serving(a_bridge(), token=token) as port, httpx2.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}{path}")

    assert answer.status_code == 404
    assert answer.json() == {"error": f"There is nothing at {path}. MCP clients connect to /mcp."}


async def test_a_method_that_is_not_served_is_405_as_json() -> None:
    async with serving(a_bridge()) as port, httpx2.AsyncClient() as client:
        answer = await client.put(f"http://127.0.0.1:{port}/status")

    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}
    assert answer.json() == {"error": "/status does not serve PUT."}


async def test_with_its_token_an_mcp_client_connects() -> None:
    bridge = a_bridge()
    headers = {"authorization": f"Bearer {'t' * 16}"}
    async with (
        serving(bridge, token="t" * 16) as port,
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)) as client,
    ):
        assert (await client.list_tools()).tools == []


async def test_the_extension_needs_no_token_beside_its_secret() -> None:
    bridge = a_bridge()
    async with serving(bridge, token="t" * 16) as port, open_socket(port) as socket:
        assert (await say_hello(socket))["id"] == 1


async def test_a_request_over_the_limit_is_refused() -> None:
    async with serving(a_bridge()) as port, httpx2.AsyncClient(timeout=PATIENT) as client:
        answer = await client.post(
            f"http://127.0.0.1:{port}/mcp", content=b"x" * 100_001,
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
    assert answer.status_code == 413
    assert "longer than 100,000 bytes" in answer.json()["error"]["message"]


@on_linux
@pytest.mark.parametrize("path", ["/mcp", "/status"])
async def test_another_user_of_this_machine_needs_the_token(path: str) -> None:
    async with serving(a_bridge()) as port:
        assert await get(port, path, as_another_user=True) == 403
        assert await get(port, path) != 403
    async with serving(a_bridge(), token="t" * 16) as port:
        assert await get(port, path, as_another_user=True) == 401
        token = f"Authorization: Bearer {'t' * 16}"
        assert await get(port, path, token, as_another_user=True) not in {401, 403}
