"""What a tool costs in the list, and the advice on it."""

from typing import Any

import pytest

from opentabs_py.core.tool_tokens import advise_on_list, count_tool

WORDS = "Some words. "  # three tokens


def tool(**more: Any) -> dict[str, Any]:
    described = {"name": "chat_send", "title": "Send", "description": "Sends it."}
    return {**described, "inputSchema": {"type": "object"}, **more}


def with_argument(**schema: Any) -> dict[str, Any]:
    return tool(inputSchema={"type": "object", "properties": {"to": schema}})


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_each_part_of_a_tool_is_counted_once() -> None:
    plain = count_tool(tool())
    assert plain.output == 0
    assert plain.total == plain.description + plain.input

    longer = count_tool(tool(description=WORDS * 100))
    assert longer.description - plain.description == pytest.approx(300, abs=10)
    assert longer.input == plain.input

    promising = count_tool(tool(outputSchema={"type": "object", "description": WORDS * 100}))
    assert promising.output == pytest.approx(310, abs=10)
    assert promising.total == plain.total + promising.output
    assert promising.to_json() == {
        "description": plain.description,
        "input": plain.input,
        "output": promising.output,
        "total": promising.total,
    }


@pytest.mark.parametrize(
    ("described", "advice"),
    [
        (tool(description=WORDS * 200), ["its description costs 6"]),
        (with_argument(enum=[f"v{n}" for n in range(61)]), ["argument to has 61 choices"]),
        (
            with_argument(type="array", items={"enum": [*range(61)]}),
            ["argument to[] has 61 choices"],
        ),
        (
            with_argument(anyOf=[{"enum": [*range(61)]}, {"type": "null"}]),
            ["argument to has 61 choices"],
        ),
        (with_argument(description=WORDS * 60), ["argument to has a description of 18"]),
        (with_argument(**nested(5)), ["argument to.a.a.a.a.a is more than 5 objects deep"]),
        (tool(outputSchema=nested(8)), ["result a.a.a.a.a.a is more than 5 objects deep"]),
        (
            tool(outputSchema={"type": "object", "description": WORDS * 400}),
            ["its output schema costs 1,2"],
        ),
    ],
)
def test_what_is_expensive_gets_advice(described: dict[str, Any], advice: list[str]) -> None:
    found = count_tool(described).advice
    assert len(found) == len(advice)
    for said, begin in zip(found, advice, strict=True):
        assert said.startswith(begin)


@pytest.mark.parametrize(
    "described",
    [
        tool(),
        tool(description=WORDS * 120),
        with_argument(enum=[*range(60)]),
        with_argument(description=WORDS * 40),
        tool(inputSchema=nested(5)),
        with_argument(properties=[], anyOf={}, items=True),
    ],
)
def test_a_tool_at_a_threshold_gets_no_advice(described: dict[str, Any]) -> None:
    assert count_tool(described).advice == ()


def test_a_long_list_gets_advice() -> None:
    one = count_tool(tool(description=WORDS * 100))
    assert advise_on_list([one] * 10) is None
    assert str(advise_on_list([one] * 100)).startswith("the list costs 3")
