"""The parts of HTML that plugins rely on."""

import pytest

from opentabs_py.core.shapes.marks import PASSWORD, lost_marks, marks_of, tag_of


def test_a_malformed_declaration_does_not_end_a_page() -> None:
    assert marks_of("<p><![foo[x]]><b>") == {"p": 1, "b": 1}


def test_marks_are_selectors_with_their_counts() -> None:
    html = (
        '<ul id="list" class="a b"><li class=row>1<li class=row>2</ul><br class>'
        '<form><input name="q" type="search"><input type="PASSWORD"></form><p data-testid="x">'
    )

    assert marks_of(html) == {
        "ul": 1,
        "li": 2,
        "br": 1,
        "form": 1,
        "input": 2,
        "p": 1,
        "ul#list": 1,
        "ul.a": 1,
        "ul.b": 1,
        "li.row": 2,
        'input[name="q"]': 1,
        PASSWORD: 1,
        'p[data-testid="x"]': 1,
    }


def test_names_that_a_build_has_made_are_left_out() -> None:
    html = '<p class="css-abc x1 sc-hKdj Row__bQzKd block__element" id="4711" name="4712">'

    assert marks_of(html) == {"p": 1, "p.block__element": 1}


def test_a_page_of_generated_names_is_cut() -> None:
    names = (f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(9000))

    assert len(marks_of("".join(f'<p class="{name}">' for name in names))) < 4_100


def test_a_mark_is_lost_if_it_was_on_each_page_and_is_on_none() -> None:
    was = [{"p": 2, "p.a": 1, "p.b": 2, "p.c": 1}, {"p": 2, "p.a": 2, "p.b": 2}]

    assert lost_marks(was, [{"p": 1, "p.a": 1}]) == ["p.b"]
    assert lost_marks(was, []) == []
    assert lost_marks([], [{"p.a": 1}]) == []


def test_a_mark_that_is_not_on_all_elements_is_lost_if_there_are_many() -> None:
    was = [{"li": 10, "li.new": 5}]

    assert lost_marks(was, [{"li": 12}]) == []  # six were expected
    assert lost_marks(was, [{"li": 13}]) == ["li.new"]
    assert lost_marks(was, [{"li": 1}], suspected=True) == ["li.new"]


def test_a_page_without_the_tag_says_nothing_of_its_classes() -> None:
    assert lost_marks([{"li": 1, "li.row": 1}], [{"p": 1}]) == []


@pytest.mark.parametrize("mark", ["p", "p.a", "p#a", 'p[name="a.b"]'])
def test_each_mark_has_a_tag(mark: str) -> None:
    assert tag_of(mark) == "p"
