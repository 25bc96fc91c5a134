"""How arguments reach a function, whatever the kinds of its parameters."""

from functools import partial
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from opentabs_py import Progress
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


def test_a_progress_that_cannot_be_passed_by_name_is_refused() -> None:
    def works(progress: Progress, /) -> None: ...

    with pytest.raises(ConfigError, match="positional-only parameter 'progress'"):
        Server(tools=[works])


def test_annotations_that_name_nothing_are_refused() -> None:
    def works(a: Any) -> None: ...

    works.__annotations__["a"] = "Missing"
    with pytest.raises(ConfigError, match="annotations of the tool works: name 'Missing' is not"):
        Server(tools=[works])
