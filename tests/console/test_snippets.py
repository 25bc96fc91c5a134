"""Calls as code: all formats make exactly the same call. e2e/console/test_copies.py runs them."""

import ast
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.config.fleet import FleetOptions
from opentabs_py.console.snippets import snippets

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=4).filter(
    lambda value: "inf" not in repr(value)
)
EVIL: dict[str, Any] = {
    "a": 'it\'s "quoted" $HOME `id` \\ \n\t end',
    "--plugin": ["x", None, True, 1.5, {"é": "\u202e"}],
    "class": {"'": '"""'},
}


def literals(code: str, function: str) -> list[Any]:
    """Return the arguments of the only call of a method."""
    [call] = [
        each
        for each in ast.walk(ast.parse(code))
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == function
    ]
    return [ast.literal_eval(each) for each in call.args]


def check(arguments: dict[str, Any]) -> None:
    code = snippets("chat_send", arguments, plugin=Path("/a b/'c'"), name="default")
    wanted = ["chat_send", arguments] if arguments else ["chat_send"]
    assert literals(code["pytest"], "start") == wanted
    assert literals(code["python"], "call") == wanted
    command, subcommand, tool, given = shlex.split(code["cli"])
    assert (command, subcommand, tool) == ("opentabs", "call", "chat_send")
    assert json.loads(given) == arguments
    request = json.loads(code["mcp"])
    assert request["method"] == "tools/call"
    assert request["params"] == {"name": "chat_send", "arguments": arguments}


def test_quotes_and_everything_else_that_a_shell_or_python_reads_are_kept() -> None:
    check(EVIL)
    check({})


@given(arguments=ARGUMENTS)
def test_any_arguments_come_back_from_each_kind_of_code(arguments: dict[str, Any]) -> None:
    check(arguments)


def test_the_program_names_the_plugin_and_the_command_another_server() -> None:
    code = snippets("chat_send", {}, plugin=Path("/a b/'c'"), name="work")
    assert repr("/a b/'c'") in code["python"]
    assert code["cli"] == "opentabs call chat_send '{}' --server work\n"


@pytest.mark.parametrize(
    ("fleet", "joins"),
    [
        (FleetOptions("nats://me:secret@host"), "OpenTabs(nats='nats://host')"),
        (
            FleetOptions("nats://host", "ci", labels={"site": "eu"}),
            "OpenTabs(nats=FleetOptions('nats://host', fleet='ci', labels={'site': 'eu'}))",
        ),
    ],
)
def test_the_program_joins_the_fleet_without_its_password(fleet: FleetOptions, joins: str) -> None:
    code = snippets("chat_send", {}, plugin=None, fleet=fleet, name="default")["python"]
    assert joins in code
    ast.parse(code)


@pytest.mark.parametrize(("tool", "name"), [("a-b.c", "a_b_c"), ("-", "tool"), ("x", "x")])
def test_the_test_has_a_name_that_python_allows(tool: str, name: str) -> None:
    code = snippets(tool, {}, plugin=None, name="default")["pytest"]
    assert f"def test_{name}(opentabs):" in code
    assert "open_start_page" not in code
    ast.parse(code)
