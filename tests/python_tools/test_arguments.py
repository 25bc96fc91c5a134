"""How arguments reach a function, whatever the kinds of its parameters."""

from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field

from opentabs_py import Progress, ToolError, tool
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.errors import ConfigError
from opentabs_py.python_tools.python_tool import PythonTool
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.session.session import Server

pytestmark = pytest.mark.anyio


def everything(first: int, second: int = 2, /, *rest: int, named: int = 3, **more: int) -> Any:
    """Return the arguments by kind."""
    return {"places": [first, second], "rest": [*rest], "named": named, "more": more}


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ({"first": 7}, {"places": [7, 2], "rest": [], "named": 3, "more": {}}),
        ({"second": 8, "first": 7}, {"places": [7, 8], "rest": [], "named": 3, "more": {}}),
        (
            {"first": 7, "second": 8, "named": 9},
            {"places": [7, 8], "rest": [], "named": 9, "more": {}},
        ),
        (
            {"first": 7, "named": 9, "other": 10},
            {"places": [7, 2], "rest": [], "named": 9, "more": {"other": 10}},
        ),
    ],
)
async def test_each_argument_is_passed_as_its_parameter_requires(
    arguments: dict[str, int], received: Any
) -> None:
    result = await Server(tools=[everything]).call_tool("everything", arguments)
    assert result.structured_content == received


async def test_a_default_after_another_left_out_is_used_too() -> None:
    def three(a: int = 1, b: int = 2, c: int = 3, /) -> Any:
        return [a, b, c]

    result = await Server(tools=[three]).call_tool("three", {"a": 9})
    assert result.content[0].model_dump()["text"] == "[9,2,3]"


async def test_a_default_before_one_that_is_given_is_used_too() -> None:
    def three(a: int = 1, b: int = 2, c: int = 3, /) -> Any:
        return [a, b, c]

    result = await Server(tools=[three]).call_tool("three", {"b": 9})
    assert result.content[0].model_dump()["text"] == "[1,9,3]"


def fields(
    needed: str = Field(description="Described."),
    least: int = Field(3, ge=1),
    many: list[int] = Field(default_factory=list),  # noqa: B008
) -> Any:
    """Return the arguments.

    Args:
        needed: From the docstring.
        least: From the docstring.
    """
    return [needed, least, many]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"needed": "a"}, '["a",3,[]]'),
        ({"needed": "a", "least": 1, "many": [2]}, '["a",1,[2]]'),
        ({}, '"needed" is a required property'),
        ({"needed": "a", "least": 0}, "0 is less than the minimum of 1"),
    ],
)
async def test_a_field_as_a_default_means_the_same_as_in_an_annotation(
    arguments: dict[str, Any], text: str
) -> None:
    result = await Server(tools=[fields]).call_tool("fields", arguments)
    assert text in result.content[0].model_dump()["text"]


def test_a_field_as_a_default_describes_its_argument() -> None:
    schema = PythonTool(fields, ToolHost(AlarmClock())).listing.input_schema
    assert schema["required"] == ["needed"]
    assert schema["properties"] == {
        "needed": {"type": "string", "description": "Described."},
        "least": {
            "type": "integer", "minimum": 1, "default": 3, "description": "From the docstring.",
        },
        "many": {"type": "array", "items": {"type": "integer"}},
    }  # fmt: skip


class Desk:
    def look(self, *, drawer: int = 1, **more: Any) -> Any:
        return [drawer, more]


def search(sql: str, tenant: str = "nobody", **options: Any) -> Any:
    return [sql, tenant, options]


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (partial(search, tenant="alice"), {"sql": "x"}, "tenant"),
        (partial(search, limit=1), {"sql": "x"}, "limit"),
        (partial(tool(partial(search, limit=1)), tenant="alice"), {"sql": "x"}, "limit"),
        (partial(tool(partial(search, limit=1)), tenant="alice"), {"sql": "x"}, "tenant"),
        (partial(search, "x"), {}, "sql"),
        (Desk().look, {}, "self"),
    ],
)
async def test_a_client_cannot_set_what_is_bound_even_if_it_can_add_arguments(
    function: Any, arguments: dict[str, Any], name: str
) -> None:
    served = PythonTool(function, ToolHost(AlarmClock()))
    assert name not in served.listing.input_schema["properties"]
    call = Server(tools=[function]).call_tool
    assert not (await call(served.listing.name, {**arguments, "other": 2})).is_error
    result = await call(served.listing.name, {**arguments, name: "mallory"})
    text = result.content[0].model_dump()["text"]
    assert "code=INVALID_ARGUMENTS" in text
    assert f"at {name}: there is no such argument" in text


async def test_an_added_argument_may_have_the_name_of_a_positional_only_parameter() -> None:
    def ask(question: str, /, **more: Any) -> Any:
        return [question, more]

    bound = partial(ask, "why")
    result = await Server(tools=[bound]).call_tool("ask", {"question": 1})
    assert result.content[0].model_dump()["text"] == '["why",{"question":1}]'


async def test_a_callable_object_is_described_by_its_call_method() -> None:
    class Greeter:
        def __call__(self, name: str) -> str:
            """Greet somebody."""
            return f"Hello, {name}!"

    for given in (Greeter(), partial(Greeter(), name="Ada")):
        listing = PythonTool(given, ToolHost(AlarmClock())).listing
        assert (listing.name, listing.description) == ("Greeter", "Greet somebody.")
        arguments = {} if isinstance(given, partial) else {"name": "Ada"}
        result = await Server(tools=[given]).call_tool("Greeter", arguments)
        assert result.content[0].model_dump()["text"] == "Hello, Ada!"


async def test_what_only_the_annotations_refuse_says_where_and_why() -> None:
    def even(number: int) -> int:
        if number % 2:
            raise ValueError("it must be even")
        return number

    def halve(numbers: list[Annotated[int, AfterValidator(even)]]) -> list[int]:
        return [each // 2 for each in numbers]

    result = await Server(tools=[halve]).call_tool("halve", {"numbers": [2, 3]})
    assert result.is_error
    text = result.content[0].model_dump()["text"]
    assert "code=INVALID_ARGUMENTS" in text
    assert "numbers[1]: it must be even" in text


async def test_an_exception_of_a_validator_is_the_tools_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(value: str) -> str:
        if value == "error":
            raise ToolError("Try another.", code="TAKEN")
        if value == "exit":
            raise SystemExit
        raise LookupError("a secret")

    def book(name: Annotated[str, AfterValidator(fail)]) -> None: ...

    for name, said in (
        ("error", "[ERROR code=TAKEN retryable=false] Try another."),
        ("exit", "book failed: SystemExit. See the server's log"),
        ("other", "book failed: LookupError. See the server's log"),
    ):
        result = await Server(tools=[book]).call_tool("book", {"name": name})
        text = result.content[0].model_dump()["text"]
        assert said in text
        assert "secret" not in text
        assert (result.meta or {})["opentabs/failed"] == "tool"
    assert [record.message for record in caplog.records] == ["The tool book failed"] * 2
    assert "LookupError: a secret" in caplog.text


def test_a_progress_that_cannot_be_passed_by_name_is_refused() -> None:
    def works(progress: Progress, /) -> None: ...

    with pytest.raises(ConfigError, match="positional-only parameter 'progress'"):
        Server(tools=[works])


def test_annotations_that_name_nothing_are_refused() -> None:
    def works(a: Any) -> None: ...

    works.__annotations__["a"] = "Missing"
    with pytest.raises(ConfigError, match="annotations of the tool works: name 'Missing' is not"):
        Server(tools=[works])
