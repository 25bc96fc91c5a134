"""Long results are cut for the model and kept complete as resources, in both eras."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from mcp import types
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from opentabs_py.calling.tool import Output
from opentabs_py.core.tokens import estimate_tokens
from opentabs_py.errors import ErrorDetail, ToolFailedError
from opentabs_py.server.mcp.long_results import RESULT_ADDRESS, WHOLE_META_KEY, LongResults
from opentabs_py.server.mcp.server import create_mcp_server
from tests.fakes import FakeBridge
from tests.served import Served

pytestmark = pytest.mark.anyio

LIMIT = 1_000
ROWS = [{"id": n, "text": f"Message {n} says something"} for n in range(1_000)]
VALUE = {"messages": ROWS, "total": 1_000}
Connect = Callable[..., AbstractAsyncContextManager[Client]]


def texts(result: types.CallToolResult) -> list[str]:
    return [each.text for each in result.content if isinstance(each, types.TextContent)]


def text_of(result: types.ReadResourceResult) -> str:
    [content] = result.contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


def serving(value: Any, *, error: Exception | None = None, **bounds: Any) -> Served:
    served = Served(FakeBridge(value=value, error=error))
    served.serve("send", output_schema=None)
    long_results = LongResults(LIMIT, **bounds)
    served.server, served.gateway = (
        create_mcp_server(served.tool_calls, as_gateway=as_gateway, long_results=long_results)
        for as_gateway in (False, True)
    )
    return served


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["http", "streams"])
def connect(request: pytest.FixtureRequest, mode: str) -> Connect:
    @asynccontextmanager
    async def over(served: Served) -> AsyncGenerator[Client]:
        if request.param == "streams":
            async with Client(served.server, mode=mode) as client:
                yield client
        else:
            async with served.over_http() as url, Client(url, mode=mode) as client:
                yield client

    return over


async def test_a_long_result_is_cut_and_the_whole_can_be_read(connect: Connect) -> None:
    async with connect(serving(VALUE)) as client:
        await client.list_tools()
        result = await client.call_tool("chat_send", {})
        shown, notice = texts(result)
        cut = json.loads(shown)
        uri = (result.meta or {})[WHOLE_META_KEY]
        whole = await client.read_resource(uri)

    assert cut["total"] == 1_000
    assert cut["messages"] == ROWS[: len(cut["messages"])]
    assert 700 < estimate_tokens(shown + notice) <= LIMIT
    missing = 1_000 - len(cut["messages"])
    assert f"{missing} of 1,000 items of messages left out; read the resource {uri} for" in notice
    assert json.loads(text_of(whole)) == VALUE
    assert whole.contents[0].mime_type == "application/json"


async def test_no_client_misses_the_structure_that_a_schema_would_promise(connect: Connect) -> None:
    served = serving(VALUE)
    served.serve("send", output_schema={"type": "object", "required": ["total"]})
    async with connect(served) as client:
        [tool] = (await client.list_tools()).tools
        result = await client.call_tool("chat_send", {})
    assert tool.output_schema is None
    assert result.structured_content is None
    assert not result.is_error


async def test_a_short_result_passes_as_it_is(connect: Connect) -> None:
    async with connect(serving({"id": 7})) as client:
        result = await client.call_tool("chat_send", {})
    assert texts(result) == ['{"id":7}']
    assert result.structured_content == {"id": 7}
    assert WHOLE_META_KEY not in (result.meta or {})


async def test_a_long_text_is_cut_and_text_that_is_json_between_its_members(mode: str) -> None:
    async with Client(serving("word " * 9_000).server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
        whole = await client.read_resource((result.meta or {})[WHOLE_META_KEY])
    assert texts(result)[0].startswith("word word")
    assert whole.contents[0].mime_type == "text/plain"
    assert text_of(whole) == "word " * 9_000

    async with Client(serving(json.dumps(ROWS)).server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
    assert json.loads(texts(result)[0])[0] == ROWS[0]

    async with Client(serving("[" + "word " * 9_000).server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
    assert texts(result)[0].startswith("[word word")


async def test_a_result_through_the_gateway_is_cut_too(mode: str) -> None:
    async with Client(serving(VALUE).gateway, mode=mode) as client:
        result = await client.call_tool("opentabs_call", {"name": "chat_send"})
        whole = await client.read_resource((result.meta or {})[WHOLE_META_KEY])
    assert "items of messages left out" in texts(result)[1]
    assert json.loads(text_of(whole)) == VALUE


async def test_what_a_tool_returned_despite_an_error_is_cut_and_the_error_is_not(mode: str) -> None:
    error = ToolFailedError(ErrorDetail("SLOW_DOWN", "Too fast."))
    error.partial = ROWS
    async with Client(serving(None, error=error).server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
    said, partial, notice = texts(result)
    assert result.is_error
    assert said.startswith("[ERROR code=SLOW_DOWN")
    assert (result.meta or {})["opentabs/error"]["code"] == "SLOW_DOWN"
    assert json.loads(partial)[0] == ROWS[0]
    assert "items left out" in notice
    assert sum(map(estimate_tokens, texts(result))) <= LIMIT


async def test_of_content_the_texts_are_cut_and_the_rest_stays(mode: str) -> None:
    image = types.ImageContent(data="aGk=", mime_type="image/png")
    blocks = (types.TextContent(text="short"), image, types.TextContent(text="word " * 9_000))
    value = Output(blocks, {"count": 9_000}, {"own": 1})
    async with Client(serving(value).server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
        whole = await client.read_resource((result.meta or {})[WHOLE_META_KEY])
    short, cut, notice = texts(result)
    assert [block.type for block in result.content] == ["text", "image", "text", "text"]
    assert short == "short"
    assert cut.startswith("word word")
    assert "of 45,000 characters left out" in notice
    assert result.structured_content is None
    assert (result.meta or {})["own"] == 1
    assert text_of(whole) == "short\n\n" + "word " * 9_000


async def test_structure_that_is_long_is_left_out_and_kept(mode: str) -> None:
    value = Output((types.TextContent(text="A thousand messages."),), VALUE)
    async with Client(serving(value).server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
        whole = await client.read_resource((result.meta or {})[WHOLE_META_KEY])
    said, notice = texts(result)
    assert said == "A thousand messages."
    assert "the structured content left out" in notice
    assert result.structured_content is None
    assert json.loads(text_of(whole)) == VALUE


async def test_content_that_is_short_passes_as_it_is(mode: str) -> None:
    value = Output((types.TextContent(text="Done."),), {"count": 1})
    async with Client(serving(value).server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
    assert texts(result) == ["Done."]
    assert result.structured_content == {"count": 1}


async def test_a_session_lists_its_own_results_and_no_other_reads_them() -> None:
    served = serving(VALUE)
    async with (
        served.over_http() as url,
        Client(url, mode="legacy") as mine,
        Client(url, mode="legacy") as other,
    ):
        result = await mine.call_tool("chat_send", {})
        uri = (result.meta or {})[WHOLE_META_KEY]
        [listed] = (await mine.list_resources()).resources
        assert listed == types.Resource(
            uri=uri,
            name="chat_send",
            description="The whole result of a call of chat_send.",
            mime_type="application/json",
            size=len(json.dumps(VALUE, separators=(",", ":"))),
        )
        assert (await other.list_resources()).resources == []
        with pytest.raises(MCPError, match="There is no result at"):
            await other.read_resource(uri)


async def test_over_http_without_sessions_who_knows_an_address_may_read_it() -> None:
    async with serving(VALUE).over_http() as url, Client(url) as mine, Client(url) as other:
        result = await mine.call_tool("chat_send", {})
        uri = (result.meta or {})[WHOLE_META_KEY]
        assert (await other.list_resources()).resources == []
        assert json.loads(text_of(await other.read_resource(uri))) == VALUE


@pytest.mark.parametrize("bounds", [{"kept": 2}, {"kept_bytes": 2 * len(json.dumps(VALUE))}])
async def test_the_oldest_result_makes_room_for_a_new_one(
    mode: str, bounds: dict[str, Any]
) -> None:
    async with Client(serving(VALUE, **bounds).server, mode=mode) as client:
        uris: list[str] = []
        for _ in range(3):
            result = await client.call_tool("chat_send", {})
            uris.append((result.meta or {})[WHOLE_META_KEY])
        with pytest.raises(MCPError, match="call the tool again"):
            await client.read_resource(uris[0])
        for uri in uris[1:]:
            assert json.loads(text_of(await client.read_resource(uri))) == VALUE


async def test_a_result_too_long_to_keep_says_so_by_naming_no_resource(mode: str) -> None:
    async with Client(serving(VALUE, kept_bytes=1_000).server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
    assert texts(result)[1].endswith("of messages left out; call again for less.]")
    assert WHOLE_META_KEY not in (result.meta or {})


async def test_the_address_template_is_listed_and_another_address_refused(mode: str) -> None:
    async with Client(serving(VALUE).server, mode=mode) as client:
        assert client.server_capabilities.resources is not None
        assert not client.server_capabilities.resources.subscribe  # a result does not change
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "opentabs://result/{id}"
        with pytest.raises(MCPError, match="is not a result URI"):
            await client.read_resource("stream://abc")
        with pytest.raises(MCPError) as caught:
            await client.read_resource(f"{RESULT_ADDRESS}{'x' * 1000}")
    assert "x…" in caught.value.error.message
    assert len(str(caught.value.error.data)) < 400


async def test_a_server_that_cuts_nothing_has_no_resources(mode: str) -> None:
    async with Client(Served().server, mode=mode) as client:
        assert client.server_capabilities.resources is None
