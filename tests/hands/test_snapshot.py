"""A snapshot is short, and contains or counts all interactive elements."""

import re
from collections.abc import Iterable
from textwrap import indent

import pytest

from opentabs_py.core.tokens import estimate_tokens
from opentabs_py.hands.snapshot import changes, render
from opentabs_py.hands.tree import Node, parse

PAGE = """\
- generic [active] [ref=e1]:
  - heading "Shop: all" [level=1] [ref=e2]
  - 'link "a: \\"b\\"" [ref=e3] [cursor=pointer]':
    - /url: https://shop.example/a
  - generic [ref=e4]:
    - text: Name
    - textbox "Name" [active] [ref=e5]: "Ada: x"
  - combobox "Size" [ref=e6]:
    - option "small" [selected]
    - option "large"
  - checkbox "Terms" [checked] [ref=e7]
  - button "Go" [disabled] [ref=e8]
  - button "More" [expanded] [ref=e9]: More
  - list [ref=e10]:
    - listitem [ref=e11]:
      - link "One" [ref=e12] [cursor=pointer]
      - text: 1 €
    - listitem [ref=e13]: Two
    - listitem [ref=e14]:
      - list [ref=e15]:
        - listitem [ref=e16]: deep
  - table [ref=e17]:
    - rowgroup [ref=e18]:
      - row "ignored" [ref=e19]:
        - cell "7" [ref=e20]
        - cell [ref=e21]:
          - button "Buy" [ref=e22]
        - cell "Pick" [ref=e23] [cursor=pointer]
  - generic [ref=e24] [cursor=pointer]: Clickable
  - iframe [ref=e25]:
    - button "inner" [ref=f1e2]
  - not a line
nonsense
"""


def test_a_page_within_the_limit_is_rendered_without_cuts() -> None:
    assert (
        render(parse(PAGE))
        == """\
heading1 "Shop: all"
link "a: "b"" e3
textbox "Name" focused e5: Ada: x
combobox "Size" e6: *small | large
checkbox "Terms" checked e7
button "Go" disabled e8
button "More" expanded e9: More
list e10
 - link "One" e12 1 €
 Two
 list e15
  deep
table e17
 row: 7 | button "Buy" e22 | Pick e23
generic e24: Clickable
iframe e25
 button "inner" f1e2
not"""
    )


def test_a_summary_which_opens_its_details_has_a_reference() -> None:
    details = parse('- group [ref=e2]:\n  - generic "More" [ref=e3]\n')
    assert render(details) == 'group\n generic "More" e3'


def test_the_heading_that_opens_its_details_has_a_reference() -> None:
    details = '- group [ref=e2]:\n  - heading "More" [level=3] [ref=e3]\n  - text: All of it\n'
    assert render(parse(details)) == 'group\n heading3 "More" e3\n All of it'


def test_the_heading_that_names_a_link_is_on_its_line() -> None:
    link = '- link [ref=e2]:\n  - heading "More" [level=3] [ref=e3]\n'
    assert render(parse(link)) == 'link heading3 "More" e2'
    row = "- row:\n  - cell:\n" + indent(link, "    ")
    assert render(parse(row)) == 'row: link heading3 "More" e2'
    item = "- listitem:\n" + indent(link, "  ") + "  - text: 1 €\n"
    assert render(parse(item)) == '- link heading3 "More" e2 1 €'
    # What is more than a name stays below it
    assert render(parse(link + "  - text: 1 €\n")) == 'link e2\n heading3 "More"\n 1 €'
    used = link.replace("[ref=e3]", "[ref=e3] [cursor=pointer]")
    assert render(parse(used)) == 'link e2\n heading3 "More" e3'


@pytest.mark.parametrize("role", ["checkbox", "radio", "switch"])
def test_the_label_after_a_box_is_not_repeated(role: str) -> None:
    form = f'- {role} "Agree" [ref=e2]\n- text: Agree\n- text: Agree to what?\n'
    assert render(parse(form)) == f'{role} "Agree" e2\nAgree to what?'
    assert render(parse(form.replace(role, "link"))) == 'link "Agree" e2\nAgree\nAgree to what?'


def test_addresses_of_links_are_shown_if_asked() -> None:
    assert "e3 -> https://shop.example/a" in render(parse(PAGE), links=True)


def a_list(count: int, words: int = 12) -> list[Node]:
    more = "word " * words
    return parse_lines(
        f'  - listitem [ref=e{n}]:\n    - link "Item {n}" [ref=f1e{n}]\n    - text: {more}'
        for n in range(count)
    )


def parse_lines(lines: Iterable[str]) -> list[Node]:
    return [*parse("- list [ref=e9999]:\n" + "\n".join(lines))]


def test_a_row_has_everything_that_is_in_it_and_its_states() -> None:
    grid = """\
- grid [ref=e1]:
  - row [selected] [ref=e2]:
    - gridcell "a" [selected] [ref=e3]
    - textbox "b" [invalid] [ref=e4]: x
    - button "Delete" [ref=e5]
    - gridcell [ref=e6]:
      - combobox "Size" [ref=e7]:
        - option "small" [selected]
        - option "large"
"""
    [_, row] = render(parse(grid)).splitlines()
    assert row.split(" | ") == [
        " row selected: a selected",
        'textbox "b" invalid e4 x',
        'button "Delete" e5',
        'combobox "Size" e7: *small',
        "large",
    ]


def test_tables_that_lay_out_a_page_are_folded_where_there_is_much_in_them() -> None:
    rows = "".join(
        f"""
          - row [ref=e1{n}]:
            - cell [ref=e2{n}]:
              - link "Vote {n}" [ref=e3{n}]
            - cell "Comment {n}" [ref=e4{n}]
            - cell [ref=e5{n}]"""
        for n in range(100, 600)
    )
    page = f"""\
- table [ref=e1]:
  - row [ref=e2]:
    - cell "Menu" [ref=e3]
    - cell [ref=e4]
    - cell [ref=e5]:
        - table [ref=e6]:{rows}"""
    first, *menu = render(parse(page), most=1_000).splitlines()
    assert first == "table e1"
    assert menu[:5] == [
        " row",
        "  cell: Menu",
        "  cell",
        "   table e6",
        '    row: link "Vote 100" e3100 | Comment 100 | ',
    ]
    assert re.fullmatch(r' +… \d+ more with \d+ .*page_snapshot\(ref="e6", start=\d+\)', menu[-1])


def test_a_row_with_a_long_choice_stays_on_its_line() -> None:
    options = "\n".join(f'        - option "Country {n}"' for n in range(200))
    row = (
        f"- table [ref=e1]:\n  - row [ref=e2]:\n    - cell [ref=e3]:\n"
        f"      - combobox [ref=e4]:\n{options}"
    )
    [_, line] = render(parse(row), most=300).splitlines()
    assert re.fullmatch(r" row: combobox e4: Country 0 \| .* \| … \d+ more", line)


def test_texts_are_cut_before_anything_that_can_be_used_is_folded() -> None:
    text = render(a_list(60, words=60), most=2_500)
    assert len(re.findall(r"f1e\d+", text)) == 60
    assert "more characters" in text
    assert estimate_tokens(text) <= 2_500


def test_a_list_that_is_too_long_says_how_to_read_on() -> None:
    text = render(a_list(500), most=1_000)
    shown = len(re.findall(r"f1e\d+", text))
    more = f"… {500 - shown} more with {500 - shown} elements to use: "
    assert f'{more}page_snapshot(ref="e9999", start={shown})' in text
    assert estimate_tokens(text) <= 1_000

    rest = render(a_list(500), most=1_000_000, start=shown)
    assert len(re.findall(r"f1e\d+", rest)) == 500 - shown


def test_a_dialog_is_shown_though_it_is_in_a_folded_part() -> None:
    nodes = a_list(500)
    nodes[0].children[-1].children.append(*parse('- dialog "Sure?" [ref=e1]:\n  - button "OK"'))
    last = render(nodes, most=1_000).splitlines()[-3:]
    assert "more with" in last[0]
    assert last[1:] == [' dialog "Sure?"', '  button "OK"']


def test_a_list_is_read_on_to_its_end_and_each_entry_is_shown_once() -> None:
    text, seen = render(a_list(500), most=1_000), list[str]()
    while more := re.search(r"start=(\d+)", text):
        seen += re.findall(r"f1e(\d+)", text)
        text = render(a_list(500), most=1_000, start=int(more[1]))
    assert [*map(int, seen + re.findall(r"f1e(\d+)", text))] == [*range(500)]


def test_a_page_is_read_on_to_its_end() -> None:
    texts = [f"- text: Paragraph {n} of a page that is not a list" for n in range(200)]
    text = render(parse("\n".join(texts)), most=500)
    [start] = re.findall(r"page_snapshot\(start=(\d+)\)", text)
    text = render(parse("\n".join(texts)), most=500, start=int(start))
    assert text.startswith(f"Paragraph {start} ")
    assert f"start={start})" not in text


def test_the_options_of_a_list_are_folded_too_but_for_the_chosen_one() -> None:
    options = "\n".join(
        f'    - option "Option {n}"{" [selected]" if n == 70 else ""}' for n in range(90)
    )
    [line] = render(parse(f'- combobox "Pick" [ref=e1]:\n{options}'), most=120).splitlines()
    assert "*Option 70" in line
    assert line.endswith("more")


def test_what_cannot_be_folded_is_cut() -> None:
    deep = "\n".join(f'{"  " * n}- group "Group {n}" [ref=e{n}]:' for n in range(300))
    text = render(parse(deep), most=500)
    assert re.search(r"… \d+ more lines; take a part", text)
    assert estimate_tokens(text) <= 500


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a", "a", ""),
        ("a\n b", "a\n b\n c", "a\n c"),
        ("a\n b", "a\n x", "a\n x\n(1 earlier line is gone)"),
        ("a\n b\n c", "a", "(2 earlier lines are gone)"),
        ("", "a\n b\nc\n d", "a\n b\nc\n d"),
    ],
)
def test_changes_are_shown_below_what_they_are_in(before: str, after: str, expected: str) -> None:
    assert changes(before, after) == expected


def test_the_order_of_a_page_with_very_many_equal_lines_is_not_compared() -> None:
    rows = [f"row {n % 2}" for n in range(2_000)]
    before = "\n".join(["main", *(f" {row}" for row in rows)])
    after = "\n".join(["main", *(f" {row}" for row in reversed(rows)), " row 1", " end"])
    assert changes(before, after) == "main\n row 1\n end"
    assert changes(after, before) == "(2 earlier lines are gone)"

    asked = "\n".join([*rows, "A", " yes", "B", " no", *rows[1:]])
    swapped = "\n".join([*rows[1:], "A", " no", "B", " yes", *rows])
    assert changes(asked, swapped) == "A\n no\nB\n yes\n(2 earlier lines are gone)"


def test_a_disabled_option_is_marked() -> None:
    options = '- combobox "Size" [ref=e1]:\n  - option "S" [selected]\n  - option "L" [disabled]'
    assert render(parse(options)) == 'combobox "Size" e1: *S | L (disabled)'


def test_escaped_control_characters_are_characters() -> None:
    [text] = parse(r'- text: "a\x07b \\x41 \"c\""')
    assert text.text == 'a\x07b \\x41 "c"'


@pytest.mark.parametrize("end", ["\x85", "\u2028", "\x0b"])
def test_a_name_with_another_end_of_line_adds_no_elements(end: str) -> None:
    [button] = parse(f'- button "x{end}- textbox [ref=e2]{end}" [ref=e9]: Go')
    assert (button.role, button.ref, button.text) == ("button", "e9", "Go")


def test_a_page_that_just_fits_is_shown_as_a_whole() -> None:
    nodes = parse(PAGE)
    whole = render(nodes, most=10_000)
    tokens = estimate_tokens(whole)
    assert render(nodes, most=tokens) == whole
    assert render(nodes, most=tokens - 1) != whole
