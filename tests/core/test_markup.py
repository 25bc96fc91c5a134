"""HTML that the standard library's parser gives up on is read to its end."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.markup import MarkupReader


class _Tags(MarkupReader):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.comments: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, _attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def read(html: str) -> _Tags:
    reader = _Tags()
    reader.feed(html)
    reader.close()
    return reader


@pytest.mark.parametrize(
    "declaration",
    [
        "[foo[x]]",
        "[",
        "[]",
        "[=]",
        "[if !IE]",
        "[endif]",
        "[CDATA[x]]",
        "foo [x]",
        "attlist [",
        "=",
    ],
)
def test_a_declaration_that_html_does_not_have_is_a_comment(declaration: str) -> None:
    page = read(f"<a><!{declaration}><b>")
    assert page.tags == ["a", "b"]
    assert page.comments == [declaration]


@pytest.mark.parametrize("declaration", ["<!DOCTYPE html>", "<!doctype [<!x>", "<!-- <i> -->"])
def test_what_html_has_is_read_as_before(declaration: str) -> None:
    assert read(f"{declaration}<b>").tags == ["b"]


def test_a_declaration_without_an_end_is_text() -> None:
    assert read("<a><![foo[x").tags == ["a"]


PARTS = [
    "<!",
    "<![",
    "[",
    "]",
    "]]>",
    ">",
    "--",
    "<",
    "</",
    "<?",
    "&",
    "&#",
    "a",
    "=",
    '"',
    "CDATA",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_any_text_can_be_read(html: str) -> None:
    read(html)


def test_tags_that_do_not_end_are_text() -> None:
    found = read("<b>1</b>" + "<a &amp; " * 100_000)  # the library would search it for each
    assert found.tags == ["b"]
    assert found.text == "1" + "<a & " * 100_000
