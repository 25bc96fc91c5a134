"""The arguments that page tools accept in addition to their own."""

import pytest
from pydantic import JsonValue

from opentabs_py.core.page_arguments import listed_schema, split_instance, split_tab_id
from opentabs_py.errors import CallRefusedError
from tests.fakes import Json


def test_a_tool_gets_an_optional_tab_id() -> None:
    schema: Json = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
    with_tab = listed_schema(schema)
    assert with_tab["required"] == ["text"]
    assert with_tab["additionalProperties"] is False
    properties = with_tab["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["text", "tabId"]
    assert properties["tabId"] == {
        "type": "integer",
        "description": "The browser tab to use, from tabs_list. Default: the active tab.",
    }


def test_giving_a_tab_id_leaves_the_tool_s_own_schema_as_it_was() -> None:
    schema: Json = {"type": "object"}
    assert "properties" in listed_schema(schema)
    assert schema == {"type": "object"}


@pytest.mark.parametrize(("given_tab", "tab"), [(7, 7), (7.0, 7), (0, 0), (-1, -1)])
def test_a_tab_id_is_removed_from_the_arguments(given_tab: float, tab: int) -> None:
    arguments: Json = {"text": "hi", "tabId": given_tab}
    found, rest = split_tab_id("chat_send", arguments)
    assert (found, type(found), rest) == (tab, int, {"text": "hi"})
    assert "tabId" in arguments


@pytest.mark.parametrize("tab", [{}, {"tabId": None}])
def test_arguments_without_a_tab_id_or_with_null_name_no_tab(tab: Json) -> None:
    assert split_tab_id("chat_send", {"text": "hi", **tab}) == (None, {"text": "hi"})


def test_the_listed_schema_says_that_a_tool_takes_no_other_arguments() -> None:
    closed: Json = {"type": "object", "properties": {"text": {"type": "string"}}}
    opened: Json = {**closed, "additionalProperties": True}
    listed = [listed_schema(schema)["additionalProperties"] for schema in (closed, opened)]
    assert listed == [False, True]


@pytest.mark.parametrize("tab", [True, "7", 7.5, float("inf"), [7], {}])
def test_a_tab_id_that_is_not_an_integer_is_refused(tab: JsonValue) -> None:
    with pytest.raises(CallRefusedError, match=r"tabId is .* not an integer; pass a tab's number"):
        split_tab_id("chat_send", {"tabId": tab})


def test_a_tool_with_several_instances_gets_a_required_choice() -> None:
    schema: Json = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    listed = listed_schema(schema, ["work", "home"])
    assert listed["required"] == ["text", "instance"]
    properties = listed["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["text", "tabId", "instance"]
    assert properties["instance"] == {
        "type": "string",
        "enum": ["work", "home"],
        "description": "Which of the user's instances of the site to use.",
    }
    assert listed_schema({"type": "object"}, ["a", "b"])["required"] == ["instance"]


def test_an_instance_is_removed_from_the_arguments() -> None:
    arguments: Json = {"text": "hi", "instance": "home"}
    assert split_instance("chat_send", arguments, ["work", "home"]) == ("home", {"text": "hi"})
    assert "instance" in arguments


def test_where_there_is_no_choice_an_instance_is_an_argument_like_any_other() -> None:
    assert split_instance("chat_send", {"instance": "home"}, []) == (None, {"instance": "home"})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "instance is missing; pass one of 'work', 'home'"),
        ({"instance": None}, "instance is missing; pass one of 'work', 'home'"),
        (
            {"instance": "wrok"},
            "instance is \"wrok\", which is not an instance (did you mean 'work'?); pass one of",
        ),
        ({"instance": 7}, "instance is 7, which is not an instance; pass one of"),
    ],
)
def test_an_unknown_instance_is_refused_with_the_known_ones(given: Json, told: str) -> None:
    with pytest.raises(CallRefusedError, match="at instance: instance is ") as caught:
        split_instance("chat_send", given, ["work", "home"])
    assert told in str(caught.value)
