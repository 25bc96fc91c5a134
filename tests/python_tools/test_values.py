"""What becomes of a tool's return value."""

from dataclasses import dataclass
from typing import Any, cast

import pytest
from mcp import types

from opentabs_py.calling.client import CallClient
from opentabs_py.calling.streams import Followed
from opentabs_py.calling.tool import Output
from opentabs_py.errors import ToolFailedError
from opentabs_py.python_tools.values import Serializer, name_streams, to_output

TEXT = types.TextContent(text="one")


@dataclass
class Open:
    """An open stream."""

    id: str = "s1"
    uri: str = "stream://s1"
    name: str = "build"


@dataclass
class Reader:
    """A client that reads links."""

    takes_links: bool = True
    reads_streams: bool = True
    uses_gateway: bool = False


BUILD = cast("Followed", Open())


@pytest.mark.parametrize("value", [[], [1, "two"], ({"n": 1},)])
def test_a_list_of_plain_values_remains_json(value: Any) -> None:
    assert to_output(value, Serializer("t", 100)) == list(value)


def test_plain_values_beside_content_become_text() -> None:
    output = to_output([TEXT, "two", {"n": 3}], Serializer("t", 100))
    assert output == Output((TEXT, *(types.TextContent(text=each) for each in ("two", '{"n":3}'))))


def test_a_result_of_mcp_keeps_all_its_parts() -> None:
    result = types.CallToolResult(
        content=[TEXT], structured_content={"n": 1}, _meta={"a.example/b": 2}
    )
    output = Output((TEXT,), {"n": 1}, {"a.example/b": 2})
    assert to_output(result, Serializer("t", 1000)) == output


def test_content_that_another_tool_returned_can_be_returned_again() -> None:
    output = Output((TEXT,), {"n": 1})
    assert to_output(output, Serializer("t", 1000)) is output


@pytest.mark.parametrize("value", ["x" * 8, "ü" * 8, [1, 2, 3456]])
def test_the_limit_counts_characters_of_json_and_is_itself_allowed(value: Any) -> None:
    size = 10
    assert to_output(value, Serializer("t", size)) == value
    with pytest.raises(ToolFailedError, match=f"is {size} characters of JSON; the limit is 9"):
        to_output(value, Serializer("t", size - 1))


IMAGE = types.ImageContent(data="A" * 900, mime_type="image/png")
RESOURCE = types.EmbeddedResource(resource=types.TextResourceContents(uri="a://b", text="x" * 900))


@pytest.mark.parametrize(
    "value",
    [
        IMAGE,
        RESOURCE,
        [TEXT, IMAGE],
        [TEXT, "x" * 450, "y" * 450],
        types.CallToolResult(content=[IMAGE]),
        types.CallToolResult(content=[], structured_content={"text": "x" * 900}),
        Output((IMAGE,)),
        Output((), {"text": "x" * 900}),
    ],
)
def test_content_of_mcp_counts_too(value: Any) -> None:
    assert isinstance(to_output(value, Serializer("t", 1500)), Output)
    with pytest.raises(ToolFailedError, match="characters of JSON; the limit is 800") as caught:
        to_output(value, Serializer("t", 800))
    assert caught.value.detail.code == "RESULT_TOO_LARGE"


def test_a_named_stream_leaves_everything_else_in_a_result() -> None:
    output = Output((TEXT,), {"n": 1}, {"a.example/b": 2})
    client = cast("CallClient", Reader())
    named = name_streams(output, [BUILD], client)
    assert (named.content[0], named.structured) == (TEXT, {"n": 1})
    assert named.meta is not None
    assert named.meta["a.example/b"] == 2
    assert named.content[2] == types.ResourceLink(
        name="build",
        uri="stream://s1",
        description="Updates of build.",
        mime_type="application/json",
    )


@pytest.mark.parametrize("reads", [True, False])
def test_a_stream_is_named_as_a_resource_only_to_a_client_that_can_read_it(reads: bool) -> None:
    client = cast("CallClient", Reader(takes_links=False, reads_streams=reads))
    [named] = name_streams([], [BUILD], client).content[1:]
    assert ("or read stream://s1" in named.text) == reads


@pytest.mark.parametrize(("value", "structured"), [({"n": 1}, {"n": 1}), ([1], None)])
def test_beside_a_named_stream_only_an_object_is_structured(value: Any, structured: Any) -> None:
    assert name_streams(value, [BUILD], None).structured == structured


def test_what_is_not_serializable_says_what_it_is() -> None:
    with pytest.raises(ToolFailedError, match="Unable to serialize unknown type: <class 'object'>"):
        to_output({"a": object()}, Serializer("t", 100))


@pytest.mark.parametrize("depth", [210, 251, 300])
@pytest.mark.parametrize("beside", [[], [TEXT]], ids=["alone", "beside content"])
def test_what_is_nested_too_deep_is_not_serializable(depth: int, beside: list[Any]) -> None:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    with pytest.raises(ToolFailedError) as caught:
        to_output([*beside, value], Serializer("t", 10_000))
    assert caught.value.detail.code == "RESULT_NOT_SERIALIZABLE"
