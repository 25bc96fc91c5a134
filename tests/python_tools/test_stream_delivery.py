"""How a stream's updates are delivered after the response, and to which client."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated

from opentabs_py.client import Client as OwnClient
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import Server
from tests.python_tools.samples import Counter
from tests.served import raw_client
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


class Ear:
    """An SDK client, and the messages that the server sends on its own."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.news = anyio.Event()
        self.client: Client
        self.server: Server

    async def hear(self, message: object) -> None:
        self.heard.append(message)
        self.news.set()

    async def call(self, name: str, **arguments: Any) -> types.CallToolResult:
        with anyio.fail_after(PATIENT):
            # With a callback, and so with a token.
            return await self.client.call_tool(name, arguments, progress_callback=_ignore)

    def updates(self) -> list[tuple[float, str | None, Any]]:
        return [
            (each.params.progress, each.params.message, each.params.meta)
            for each in self.heard
            if isinstance(each, types.ProgressNotification)
        ]


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    """Request progress, and receive it elsewhere."""


@asynccontextmanager
async def an_ear(mode: str, *, late: bool = True) -> AsyncGenerator[tuple[Ear, str]]:
    """Connect, and open a stream that continues; also yield its address."""
    settings = load_settings(port=0, late_progress=late)
    ear = Ear()
    async with (
        Server(tools=[Counter], settings=settings) as ear.server,
        Client(ear.server.mcp_url, mode=mode, message_handler=ear.hear) as ear.client,
    ):
        result = await ear.call("count_later", n=3)
        assert result.meta is not None
        yield ear, result.meta["opentabs/streams"][0]["uri"]


async def wait_for_the_end(ear: Ear, uri: str) -> dict[str, Any]:
    after = 0
    while True:
        asked = {"id": uri, "after": after, "wait_seconds": 10}
        answer = (await ear.call("stream_read", **asked)).structured_content
        assert isinstance(answer, dict)
        after = answer["next"]
        if not answer["open"]:
            return answer


async def test_in_the_initialize_era_frames_continue_on_the_sessions_own_stream() -> None:
    async with an_ear("legacy") as (ear, _):
        await ear.call("release")
        with anyio.fail_after(PATIENT):
            while len(ear.updates()) < 4:
                ear.news = anyio.Event()
                await ear.news.wait()
    meta = {"tool_name": "count_later"}
    assert ear.updates() == [
        (1, "Begun", meta), *((n + 1, f"Update {n} of 3", meta) for n in (1, 2, 3)),
    ]  # fmt: skip


@pytest.mark.parametrize(("mode", "late"), [("legacy", False), ("auto", True)])
async def test_without_late_progress_and_in_2026_none_follows_the_response(
    mode: str, late: bool
) -> None:
    async with an_ear(mode, late=late) as (ear, uri):
        await ear.call("release")
        assert (await wait_for_the_end(ear, uri))["ended"] == "its tool ended it"
        # What was sent before this response has arrived before it.
        await ear.client.list_tools()
        assert [number for number, _, _ in ear.updates()] == [1]


@pytest.mark.parametrize("selected", ["", "?after=1"])
async def test_in_2026_a_subscription_notifies_of_a_changed_stream(selected: str) -> None:
    async with an_ear("auto") as (ear, uri):
        async with ear.client.listen(resource_subscriptions=[f"{uri}{selected}"]) as changes:
            await ear.call("release")
            with anyio.fail_after(PATIENT):
                change = await anext(aiter(changes))
        assert change == ResourceUpdated(uri)
        await wait_for_the_end(ear, uri)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_ours_follows_a_stream_through_a_gateway_too(mode: str) -> None:
    heard: list[str] = []
    all_heard = anyio.Event()

    def hear(text: str) -> None:
        heard.append(text)
        if len(heard) == 4:
            all_heard.set()

    settings = load_settings(port=0, gateway=True, late_progress=False)
    async with (
        Server(tools=[Counter], settings=settings) as server,
        OwnClient(server.mcp_url, mode=mode, on_message=hear) as client,
    ):
        await client.call_tool("opentabs_call", {"name": "count_later", "arguments": {"n": 3}})
        await client.call_tool("opentabs_call", {"name": "release"})
        with anyio.fail_after(PATIENT):
            await all_heard.wait()
    updates = ["Begun", "Update 1 of 3", "Update 2 of 3", "Update 3 of 3"]
    assert heard == [f"[tool:count_later] {each}" for each in updates]


async def subscribe(client: Client, uri: str) -> None:
    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
    await client.session.send_request(request, types.EmptyResult)


async def wait_until_told(ear: Ear) -> None:
    """Wait until every change so far has been notified."""
    assert ear.server._python.tools is not None
    with anyio.fail_after(PATIENT):
        while ear.server._python.tools.host.streams._notified:  # noqa: ASYNC110 (no event)
            await anyio.sleep(0.01)


async def wait_for_update(ear: Ear) -> str:
    with anyio.fail_after(PATIENT):
        while True:
            for each in ear.heard:
                if isinstance(each, types.ResourceUpdatedNotification):
                    return each.params.uri
            ear.news = anyio.Event()
            await ear.news.wait()


async def test_in_the_initialize_era_a_subscriber_is_notified_of_a_changed_stream() -> None:
    async with an_ear("legacy", late=False) as (ear, uri):
        capabilities = ear.client.server_capabilities
        assert capabilities.resources is not None
        assert capabilities.resources.subscribe is True
        await subscribe(ear.client, f"{uri}?after=1")
        await ear.call("release")
        assert await wait_for_update(ear) == uri


async def test_a_client_without_a_subscription_is_not_notified() -> None:
    async with an_ear("legacy", late=False) as (ear, uri):
        await wait_until_told(ear)
        await subscribe(ear.client, uri)
        await unsubscribe(ear.client, uri)
        await unsubscribe(ear.client, "stream://never")
        await ear.call("release")
        await wait_for_the_end(ear, uri)
        await ear.client.list_tools()  # what was sent before this response has arrived before it
        assert not any(isinstance(each, types.ResourceUpdatedNotification) for each in ear.heard)


async def test_another_session_s_stream_cannot_be_subscribed_to() -> None:
    async with an_ear("legacy") as (ear, uri):
        other = Client(ear.server.mcp_url, mode="legacy")
        async with other:
            with pytest.raises(MCPError) as caught:
                await subscribe(other, uri)
        assert caught.value.code == -32002


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_stream_is_a_resource_whose_beginning_can_be_left_out(mode: str) -> None:
    async with an_ear(mode) as (ear, uri):
        await ear.call("release")
        await wait_for_the_end(ear, uri)
        for after, numbers in ((0, [1, 2, 3, 4]), (2, [3, 4])):
            [content] = (await ear.client.read_resource(f"{uri}?after={after}")).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.mime_type == "application/json"
            assert [each["n"] for each in json.loads(content.text)["updates"]] == numbers
        [template] = (await ear.client.list_resource_templates()).resource_templates
        assert template.uri_template == "stream://{id}{?after}"
        assert template.mime_type == "application/json"
        listed = (await ear.client.list_resources()).resources
        one = types.Resource(
            uri=uri,
            name="count_later",
            description="Updates of count_later; ?after=N skips the first N.",
            mime_type="application/json",
        )
        assert listed == ([one] if mode == "legacy" else [])
        unknowns = [uri.replace("stream", each, 1) for each in ("https", "opentabs://result/")]
        for unknown in (
            *unknowns,
            "stream://0",
            "stream://[x",
            "https://example.com/",
            f"{uri}?after=x",
            f"{uri}?after=-1",
        ):
            with pytest.raises(MCPError) as caught:
                await ear.client.read_resource(unknown)
            # The code was different before 2026-07-28 (SEP-2164).
            assert caught.value.code == (-32002 if mode == "legacy" else types.INVALID_PARAMS)
            assert caught.value.data == {"uri": unknown}
        with pytest.raises(MCPError, match="The cursor 'nonsense' is unknown") as caught:
            await ear.client.list_resources(cursor="nonsense")
        assert caught.value.code == types.INVALID_PARAMS
        with pytest.raises(MCPError, match="The cursor 'nonsense' is unknown"):
            await ear.client.list_resource_templates(cursor="nonsense")


async def test_a_client_without_a_token_is_sent_log_messages_in_place_of_progress() -> None:
    async with Server(tools=[Counter]) as server, raw_client(server.mcp_server) as client:
        call = {"name": "count_to", "arguments": {"n": 2}}
        await client.say({"id": 2, "method": "tools/call", "params": call})
        said = [await client.read() for _ in range(3)]
    assert [each.get("method") for each in said] == ["notifications/message"] * 2 + [None]
    assert said[0]["params"] == {
        "level": "info",
        "logger": "count_to",
        "data": "At 1 of 2",
        "_meta": {"tool_name": "count_to"},
    }


@pytest.mark.parametrize(
    ("client", "mode", "kinds"),
    [
        ("mcp", "legacy", ["text", "text"]),  # like most frameworks, AutoGen among them
        ("mcp", "auto", ["text", "text"]),
        ("claude-code", "legacy", ["text", "text", "resource_link"]),
        ("claude-code", "auto", ["text", "text", "resource_link"]),
    ],
)
async def test_a_result_names_its_stream_in_words_and_by_a_link_to_clients_that_read_links(
    client: str, mode: str, kinds: list[str]
) -> None:
    info = types.Implementation(name=client, version="1")
    async with (
        Server(tools=[Counter]) as server,
        Client(server.mcp_server, mode=mode, client_info=info) as connected,
    ):
        result = await connected.call_tool("count_later", {"n": 3})
    assert result.meta is not None
    [stream] = result.meta["opentabs/streams"]
    assert [block.type for block in result.content] == kinds
    assert isinstance(result.content[1], types.TextContent)
    assert f"stream_read with the id '{stream['id']}'" in result.content[1].text
    assert {block.uri for block in result.content if isinstance(block, types.ResourceLink)} <= {
        stream["uri"]
    }


async def test_through_a_gateway_a_result_says_to_read_its_stream_through_it_too() -> None:
    settings = load_settings(gateway=True)
    async with (
        Server(tools=[Counter], settings=settings) as server,
        Client(server.mcp_server) as connected,
    ):
        given = {"name": "count_later", "arguments": {"n": 3}}
        result = await connected.call_tool("opentabs_call", given)
    assert isinstance(result.content[1], types.TextContent)
    assert "call stream_read through opentabs_call with the id" in result.content[1].text


async def test_a_revision_without_links_is_sent_none() -> None:
    async with (
        Server(tools=[Counter]) as server,
        raw_client(server.mcp_server, revision="2025-03-26", name="claude-code") as client,
    ):
        call = {"name": "count_later", "arguments": {"n": 3}}
        await client.say({"id": 2, "method": "tools/call", "params": call})
        while "id" not in (answer := await client.read()):
            pass
    assert [block["type"] for block in answer["result"]["content"]] == ["text", "text"]


async def test_without_a_module_there_are_no_resources_and_no_tools_for_streams() -> None:
    async def one() -> str:
        return "one"

    async with Server(tools=[one]) as server, Client(server.mcp_server, mode="legacy") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["one"]
        assert client.server_capabilities.resources is None


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_streams_of_a_module_that_came_later_are_resources_too(mode: str) -> None:
    async def one() -> str:
        return "one"

    async with Server(tools=[one]) as server:
        async with Client(server.mcp_server, mode=mode) as client:
            assert client.server_capabilities.resources is None
        server.replace_tools([Counter])
        async with Client(server.mcp_server, mode=mode) as client:
            assert client.server_capabilities.resources is not None
            assert client.server_capabilities.resources.subscribe is True
            meta = (await client.call_tool("count_later", {"n": 3})).meta
            assert meta is not None
            [stream] = meta["opentabs/streams"]
            [content] = (await client.read_resource(stream["uri"])).contents
            assert isinstance(content, types.TextResourceContents)
            assert json.loads(content.text)["id"] == stream["id"]
