"""Which calls run at once, which a person is asked about, and which are refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.consent import (
    PERMISSIONS,
    Decision,
    GatedTool,
    GivenRules,
    Permission,
    Standing,
    decide,
    parse_rule,
    parse_rules,
    report_unknown,
    rule_name,
)


def a_tool(standing: Standing = "reviewed", *, read_only: bool = False) -> GatedTool:
    return GatedTool("my-chat", "my_chat_send", read_only, standing)


@pytest.mark.parametrize(
    ("standing", "read_only", "permission", "because"),
    [
        ("named", False, "auto", "my-chat was named when the server was started"),
        ("named", True, "auto", "my-chat was named when the server was started"),
        ("reviewed", True, "auto", "the tool only reads"),
        ("reviewed", False, "ask", "the tool may change something"),
        ("page", True, "auto", "the tool only reads"),
        ("page", False, "ask", "the page does not say that the tool only reads"),
    ],
)
def test_without_rules_a_tool_that_changes_something_asks_unless_its_plugin_was_named(
    standing: Standing, read_only: bool, permission: Permission, because: str
) -> None:
    decision = decide({}, a_tool(standing, read_only=read_only))
    assert decision == Decision(permission, because)


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


def test_rules_that_name_neither_a_tool_nor_its_plugin_are_reported() -> None:
    known = ["default", "my-chat", "my-chat.send", "my-chat.my_chat_send"]
    of_a_page = "page--shop-example"
    rules = [*known, "my-chat.sned", of_a_page, "zebra", "my_chat_send"]

    of_none = "has no effect: no plugin or tool of that name is served"
    read = GatedTool("my-chat", "my_chat_read", read_only=True, standing="named")
    assert report_unknown(rules, [a_tool(), read]) == [
        f"permissions.\"my-chat.sned\" {of_none}; did you mean 'my-chat.send' or 'my-chat.read'?",
        f"permissions.\"my_chat_send\" {of_none}; did you mean 'my-chat.send'?",
        f'permissions."zebra" {of_none}',
    ]


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
    assert parse_rules({"my_pkg": {"tools": {"search": "off"}}}) == {"my_pkg.tools.search": "off"}


@given(
    owner=st.text(min_size=1) | st.sampled_from(["page--shop-example", "mine", "my-chat"]),
    name=st.from_regex(r"[A-Za-z0-9_.-]{1,128}", fullmatch=True) | st.just("mine_"),
    permission=st.sampled_from(PERMISSIONS),
)
def test_the_rule_of_every_tool_is_valid_and_decides_about_it(
    owner: str, name: str, permission: Permission
) -> None:
    tool = GatedTool(rule_name(owner), name, read_only=False, standing="named")

    assert parse_rule(f"{tool.rule}={permission}") == (tool.rule, permission)
    assert decide(parse_rules({tool.rule: permission}), tool).permission == permission


def test_rules_name_an_owner_of_any_name_with_the_characters_that_rules_may_have() -> None:
    assert rule_name("my_pkg.tools") == "my_pkg.tools"
    assert rule_name('my tools="old"') == "my_tools__old_"


def test_a_tool_named_like_the_prefix_of_its_plugin_keeps_its_name_in_its_rule() -> None:
    tool = GatedTool("mine", "mine_", read_only=False, standing="named")
    assert tool.rule == "mine.mine_"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("ask", "write a table"),
        ({"slack": "yes"}, "slack cannot be 'yes'; write off, ask, auto"),
        ({"slack": {"send": 1}}, "slack.send cannot be"),
        ({"a b": "ask"}, "'a b' is not a valid name"),
        ({"": "ask"}, "'' is not a valid name"),
        (
            {"slack.send": "off", "slack": {"send": "auto"}},
            "slack.send is there twice, as 'off' and as 'auto'",
        ),
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
