"""Search finds the tool that does what an agent needs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from opentabs_py.calling.listing import Listing
from opentabs_py.server.tools.search import LONGEST_QUERY, MOST_WORDS, ToolSearch

SET = Path(__file__).with_name("search_set.txt").read_text(encoding="utf-8")
TOOLS, TASKS = SET.split("[tasks]\n")
FIRST = 5


def public_tools() -> Iterator[Listing]:
    owner = ""
    for line in TOOLS.splitlines():
        if heading := re.match(r"\[(\w+)\]", line):
            owner = heading[1]
        elif line and not line.startswith("#"):
            name, description, arguments = (part.strip() for part in line.split("|"))
            yield a_listing(f"{owner}_{name}", description, *arguments.split(), owner=owner)


def a_listing(name: str, description: str = "", *arguments: str, owner: str = "chat") -> Listing:
    properties = {argument: {"type": "string"} for argument in arguments}
    schema = {"type": "object", "properties": properties}
    return Listing(name, owner, name.replace("_", " ").title(), description, schema)


def names(search: ToolSearch, query: str) -> list[str]:
    return [listing.name for listing in search.find(query)]


@pytest.fixture(scope="module")
def public() -> ToolSearch:
    return ToolSearch(public_tools())


def test_the_right_tool_is_among_the_first_five_for_nine_tasks_of_ten(public: ToolSearch) -> None:
    tasks = [line.split(" => ") for line in TASKS.splitlines()]
    missed = [(task, tool) for task, tool in tasks if tool not in names(public, task)[:FIRST]]
    assert len(tasks) >= 100
    assert len(missed) <= len(tasks) / 10, missed


def test_a_tool_is_found_by_its_name_in_any_spelling(public: ToolSearch) -> None:
    for query in ("gmail_send_email", "gmail send email", "gmailSendEmail", "GMAIL SEND EMAIL"):
        assert names(public, query)[0] == "gmail_send_email", query


def test_words_match_by_their_stem_and_their_beginning() -> None:
    search = ToolSearch([a_listing("chat_list_channels")])
    assert names(search, "channel") == names(search, "chan") == ["chat_list_channels"]


def test_a_tool_is_found_by_its_arguments_after_those_named_so() -> None:
    search = ToolSearch([a_listing("chat_send", "", "emoji"), a_listing("chat_emoji")])
    assert names(search, "emoji") == ["chat_emoji", "chat_send"]


@pytest.mark.parametrize("query", ["", "  ", '"', "AND", "NOT OR NEAR(", "name:*", "!!!"])
def test_no_query_is_a_syntax_error(query: str, public: ToolSearch) -> None:
    assert isinstance(public.find(query), list)


def test_of_a_long_query_only_the_beginning_counts() -> None:
    search = ToolSearch([a_listing("chat_send"), a_listing("chat_read")])
    assert names(search, "send " * MOST_WORDS + "read") == ["chat_send"]
    assert names(search, f"send{' ' * LONGEST_QUERY}read") == ["chat_send"]


def test_a_query_of_filler_words_alone_still_searches_for_them() -> None:
    assert names(ToolSearch([a_listing("chat_who")]), "who") == ["chat_who"]
