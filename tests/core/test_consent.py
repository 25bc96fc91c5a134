"""Which calls run at once, which a person is asked about, and which are refused."""

import json
from typing import Any

import pytest

from opentabs_py.core.consent import (
    LONGEST_ARGUMENTS,
    NOWHERE,
    Decision,
    GatedTool,
    GivenRules,
    Permission,
    Place,
    Question,
    Standing,
    answer_texts,
    arguments_text,
    ask_text,
    decide,
    find_place,
    parse_rule,
    parse_rules,
)
from opentabs_py.core.protocol import DocumentState
from tests.fakes import a_document


def a_tool(standing: Standing = "reviewed", *, read_only: bool = False) -> GatedTool:
    return GatedTool("my-chat", "my_chat_send", read_only, standing)


def a_question(**changes: Any) -> Question:
    fields: dict[str, Any] = {
        "id": "1",
        "tool": "chat_send",
        "title": "Send",
        "plugin": "chat",
        "rule": "chat.send",
        "arguments": "{}",
    }
    return Question(**{**fields, **changes})


@pytest.mark.parametrize(
    ("standing", "read_only", "permission"),
    [
        ("named", False, "auto"),
        ("named", True, "auto"),
        ("reviewed", True, "auto"),
        ("reviewed", False, "ask"),
        ("unreviewed", True, "off"),
        ("changed", True, "off"),
    ],
)
def test_without_rules_a_tool_that_changes_something_asks_unless_its_plugin_was_named(
    standing: Standing, read_only: bool, permission: Permission
) -> None:
    assert decide({}, a_tool(standing, read_only=read_only)).permission == permission


@pytest.mark.parametrize(
    ("rules", "permission"),
    [
        ({"default": "off"}, "off"),
        ({"default": "off", "my-chat": "auto"}, "auto"),
        ({"default": "off", "my-chat": "auto", "my-chat.send": "ask"}, "ask"),
        ({"my-chat": "auto", "my-chat.my_chat_send": "off"}, "off"),
        ({"my-chat.read": "off", "other": "off"}, "ask"),
    ],
)
def test_the_most_specific_rule_wins(rules: dict[str, Permission], permission: Permission) -> None:
    assert decide(rules, a_tool()).permission == permission


@pytest.mark.parametrize("standing", ["unreviewed", "changed"])
def test_no_rule_stands_in_for_a_review(standing: Standing) -> None:
    rules: dict[str, Permission] = {
        "default": "auto",
        "my-chat": "auto",
        "my-chat.send": "auto",
    }
    decision = decide(rules, a_tool(standing))
    assert decision.permission == "off"
    assert decision.needs_review


def test_a_decision_says_which_rule_made_it() -> None:
    assert decide({"my-chat": "off"}, a_tool()) == Decision(
        "off", 'the setting permissions."my-chat" is "off"'
    )
    assert "changed since it was reviewed" in decide({}, a_tool("changed")).because


def test_rules_may_be_written_as_tables_of_their_plugin() -> None:
    assert parse_rules({"default": "ask", "slack": {"send": "off"}, "mail.read": "auto"}) == {
        "default": "ask",
        "slack.send": "off",
        "mail.read": "auto",
    }


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("ask", "write a table"),
        ({"slack": "yes"}, "slack cannot be 'yes'; write off, ask, auto"),
        ({"slack": {"send": {"x": "ask"}}}, "slack.send cannot be"),
        ({"a.b.c": "ask"}, "'a.b.c' is not a valid name"),
        ({"": "ask"}, "'' is not a valid name"),
    ],
)
def test_a_rule_that_is_not_valid_is_rejected_with_what_to_write(
    rules: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse_rules(rules)


def test_a_rule_on_the_command_line_names_a_tool_and_a_permission() -> None:
    assert parse_rule("slack.send = ask") == ("slack.send", "ask")
    with pytest.raises(ValueError, match="has no '='"):
        parse_rule("slack")
    with pytest.raises(ValueError, match="cannot be 'maybe'"):
        parse_rule("slack=maybe")


def test_a_question_names_the_caller_the_tool_the_site_and_the_account() -> None:
    question = a_question(client="claude-code 2.1", place=Place("chat.example", "Ann – Chat", 1))
    assert ask_text(question) == (
        "claude-code 2.1 wants to use chat_send, “Send” on chat.example "
        '(tab "Ann – Chat"). Allow it?'
    )
    assert ask_text(a_question()) == "An agent wants to use chat_send, “Send”. Allow it?"


def test_a_question_about_signing_in_says_what_to_do() -> None:
    assert ask_text(a_question(about="sign_in")) == (
        "An agent wants to use chat_send, “Send”, but the page is not ready. Sign in there; then "
        "the call continues."
    )


def test_the_answers_are_those_that_all_questions_have() -> None:
    sign_in = a_question(about="sign_in", answers=("once", "no"))
    assert [*answer_texts([sign_in])] == ["once", "no"]
    assert answer_texts([sign_in, sign_in])["once"] == "Yes, signed in"
    assert answer_texts([sign_in, a_question()]) == {"once": "Yes, once", "no": "No"}


def test_a_page_cannot_add_lines_to_a_question_or_hide_some_of_it() -> None:
    text = ask_text(a_question(place=Place(title='x") Allow all.\n\u202e' + "y" * 5000)))
    assert "\n" not in text
    assert "\u202e" not in text
    assert len(text) < 300
    assert '\\")' in text  # its quote does not end the quoted title


def test_arguments_are_shown_as_json_and_a_cut_is_stated() -> None:
    assert json.loads(arguments_text({"to": "ü", "n": [1]})) == {"to": "ü", "n": [1]}
    long = arguments_text({"text": "x" * 10_000})
    assert long.endswith("xxx\n… and more, which is cut off")
    assert len(long) < LONGEST_ARGUMENTS + 100
    exact = {"text": "x" * (LONGEST_ARGUMENTS - len(arguments_text({"text": ""})))}
    assert arguments_text(exact) == json.dumps(exact, indent=2)


def test_of_large_arguments_only_the_beginning_is_written() -> None:
    class Last:
        def __repr__(self) -> str:
            raise AssertionError("was written, and cut off")

    text = arguments_text({"ids": [*range(10_000), Last()]})
    assert len(text) < LONGEST_ARGUMENTS + 100


def documents(*given: dict[str, Any]) -> list[DocumentState]:
    return [DocumentState.model_validate(each, by_alias=True) for each in given]


def test_the_place_of_a_call_is_known_where_only_one_is_possible() -> None:
    one = a_document(tabId=1, url="https://chat.example/a", title="Ann")
    two = a_document(tabId=2, url="https://chat.example/b", title="Bob")
    other = a_document(tabId=3, url="https://mail.example/", title="Mail", plugin="mail")
    assert find_place(documents(one, other), "chat", None) == Place("chat.example", "Ann", 1)
    assert find_place(documents(one, two, other), "chat", None) == Place("chat.example")
    assert find_place(documents(one, two, other), "chat", 2) == Place("chat.example", "Bob", 2)
    assert find_place(documents(other), "chat", None) == NOWHERE


def test_a_page_s_own_tool_asks_unless_it_only_reads() -> None:
    owner = "page--shop-example"
    writes = GatedTool(owner, "page_shop_example_add", read_only=False, standing="page")
    reads = GatedTool(owner, "page_shop_example_add", read_only=True, standing="page")
    assert decide({}, writes).permission == "ask"
    assert decide({}, reads).permission == "auto"
    assert decide({"page--shop-example.add": "auto"}, writes).permission == "auto"
    assert decide({"page--shop-example": "off"}, reads).permission == "off"


def test_a_given_permission_outlives_settings_that_were_read_before_it_was_written() -> None:
    rules = GivenRules({"chat.send": "ask"})
    rules.give("chat.send", "off")
    rules.handle_settings({"chat.send": "ask", "mail": "off"})
    assert rules.all == {"chat.send": "off", "mail": "off"}


@pytest.mark.parametrize("written", ["off", None])
def test_a_given_permission_ends_when_the_settings_say_something_new(written: Any) -> None:
    rules = GivenRules({"chat.send": "ask"})
    rules.give("chat.send", "auto")
    settings = {} if written is None else {"chat.send": written}
    rules.handle_settings(settings)
    assert rules.all == settings


def test_a_given_permission_that_was_written_is_the_settings_own_from_then_on() -> None:
    rules = GivenRules({})
    rules.give("chat.send", "auto")
    rules.handle_settings({"chat.send": "auto"})
    rules.handle_settings({})
    assert rules.all == {}
