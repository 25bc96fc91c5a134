"""How users are asked about a call."""

import json
from typing import Any

from opentabs_py.core.protocol import DocumentState
from opentabs_py.core.questions import (
    LONGEST_ARGUMENTS,
    NOWHERE,
    Place,
    Question,
    answer_texts,
    arguments_text,
    ask_text,
    find_place,
)
from tests.fakes import a_document


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


def test_a_question_names_the_caller_the_tool_the_site_and_the_account() -> None:
    question = a_question(client="claude-code 2.1", place=Place("chat.example", "Ann – Chat", 1))
    assert ask_text(question) == (
        "claude-code 2.1 wants to use chat_send, “Send” on chat.example "
        '(tab "Ann – Chat"). Allow it?'
    )
    assert ask_text(a_question()) == "An agent wants to use chat_send, “Send”. Allow it?"


def test_a_question_about_a_hand_names_the_element() -> None:
    place = Place("chat.example", "Ann", 1, element='button "Buy"')
    assert ask_text(a_question(tool="page_click", title="Click", place=place)) == (
        'An agent wants to use page_click, “Click” on the button "Buy" on chat.example '
        '(tab "Ann"). Allow it?'
    )


def test_a_title_that_repeats_the_name_is_left_out() -> None:
    question = a_question(tool="export", title="export")
    assert ask_text(question) == "An agent wants to use export. Allow it?"


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


def test_the_end_of_a_long_host_is_shown_because_it_says_whose_it_is() -> None:
    host = f"accounts.bank.example.{'x' * 60}.{'y' * 60}.evil.example:8080"
    text = ask_text(a_question(place=Place(host)))
    assert "yyy.evil.example:8080. Allow it?" in text
    assert "bank" not in text
    assert len(text) < 200


def test_a_tool_of_a_page_cannot_end_its_quoted_title() -> None:
    place = Place("evil.example")
    text = ask_text(a_question(title="Read” on bank.example. Allow it?", place=place))
    assert text.count("”") == 1
    assert text.endswith("” on evil.example. Allow it?")


def test_arguments_are_shown_as_json_and_a_cut_is_stated() -> None:
    assert json.loads(arguments_text({"to": "ü", "n": [1]})) == {"to": "ü", "n": [1]}
    long = arguments_text({"text": "x" * 10_000})
    assert long.endswith("xxx\n… (cut off)")
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


def test_arguments_are_shown_as_the_tool_gets_them() -> None:
    text = arguments_text({"to": "a\u202egro.live@b", "note": "a\u200bb\u00a0c\U000e0041 日本é"})
    assert json.loads(text) == {"to": "a\u202egro.live@b", "note": "a\u200bb c\U000e0041 日本é"}
    assert "a\\u202egro" in text
    assert "a\\u200bb c\\udb40\\udc41 日本é" in text
