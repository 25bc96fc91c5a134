"""Pages are read by their repeated and labelled parts, and forms are sent completely."""

from collections.abc import Sequence
from urllib.parse import parse_qs

import pytest

from opentabs_py.core.recording.exchange import Exchange
from opentabs_py.generate import listings
from opentabs_py.generate.calls import calls_of
from opentabs_py.generate.html_source import html_tool_source
from opentabs_py.generate.html_tools import HtmlTool
from opentabs_py.generate.listings import details
from opentabs_py.generate.markup import Element, parse
from opentabs_py.generate.plugin import write_plugin
from opentabs_py.generate.zod import argument
from tests.generate.recorded import ask, site_of, tools_of

CARDS = """
<nav><ul><li class="entry"><b class="a">1</b><i class="b">2</i><li class="entry"></ul></nav>
<ul id="books">
  <li class="book css-1x2y3z" data-id="b1">
    <a href="/books/1"><b class="title">Tea &amp; toast</b></a>
    <time class="when" datetime="2026-01-02">yesterday</time><span itemprop="price"> 3  € </span>
  <li class="book" data-id="b2"><a href="/books/2"><b class="title">Coffee</b></a>
    <time class="when" datetime="2026-01-03">today</time><span itemprop="price">4 €</span>
</ul>
"""
ITEM = """
<h1>Tea</h1><p class="flash">Saved</p>
<dl><dt>Number:<dd>7<dt>Tags</dt><dd>hot <b>drink</b></dd></dl>
<table><tr><th>Price<td>3 €<tr><td>no<td>heading</table>
"""
FORM = """
<form action="/books" method="POST"><input type=hidden name=csrf_token value=t1>
<label for=t>Title:</label><input id=t name=title required>
<label>Copies <input type=number name=copies value=1></label>
<label><input type=radio name=kind value=new checked> New</label>
<input type=radio name=kind value=old>
<select name=lang><option value=en>English<option>de</select>
<input type=checkbox name=lent><textarea name=note placeholder="A note"></textarea>
<button name=save value=yes>Save</button></form>
"""
SENT = {"csrf_token": "t1", "title": "Tea", "copies": "2", "kind": "old", "lang": "de", "note": "",
        "save": "yes"}  # fmt: skip


def the_tool(*exchanges: Exchange) -> HtmlTool:
    [tool] = tools_of(*exchanges).values()
    assert isinstance(tool, HtmlTool)
    return tool


def test_a_malformed_declaration_does_not_end_a_page() -> None:
    assert [each.tag for each in parse("<p><![foo[x]]><b>").walk()] == ["p", "b"]


def test_the_entries_of_a_list_are_read_by_their_classes() -> None:
    [call] = calls_of(the_tool(ask("GET /books", CARDS)))
    assert call.value == {
        "title": "",
        "books": [
            {"id": "b1", "title": "Tea & toast", "when": "2026-01-02", "price": "3 €",
             "url": "/books/1"},
            {"id": "b2", "title": "Coffee", "when": "2026-01-03", "price": "4 €",
             "url": "/books/2"},
        ],
    }  # fmt: skip


def test_the_list_of_a_page_with_many_short_ones_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = 0

    def count(page: Element, selector: str) -> Sequence[Element]:
        nonlocal searches
        searches += 1
        return select(page, selector)

    select = listings.select
    monkeypatch.setattr(listings, "select", count)
    cards = "".join(
        f'<li class=book id=b{number}><a class=title href="/books/{number}">Book {number}</a>'
        f"<p><a class=tag>hot</a><a class=tag>new</a></p></li>"
        for number in range(300)
    )
    tool = the_tool(ask("GET /books", f"<ul>{cards}</ul>"))
    assert tool.listing is not None
    assert tool.listing.selector == "li.book"
    assert searches < 100


@pytest.mark.parametrize("name", ["hover:bg-gray", "w-1/2", "-", "-1", "2col"])
def test_a_selector_has_only_names_that_css_allows(name: str) -> None:
    cell = f'<b class="{name} who" id="{name}">Ann</b><o:p class=when>now</o:p><i class=day>1</i>'
    tool = the_tool(ask("GET /list", "<ul>" + f'<li class="{name} entry">{cell}' * 2 + "</ul>"))
    assert tool.listing is not None
    assert tool.listing.selector == "li.entry"
    assert [each.selector for each in tool.listing.fields] == ["b.who", "i.day"]


def test_the_fields_of_a_list_whose_elements_have_names_of_their_own_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = 0

    def count(entry: Element, given: listings.Field) -> str | None:
        nonlocal reads
        reads += 1
        return read(entry, given)

    read = listings._read
    monkeypatch.setattr(listings, "_read", count)
    rows = "".join(
        f'<li class=row><b class=who data-testid="who-{n}">Ann</b><i class=day>1</i>'
        f"<u class=at>2</u>"
        for n in range(100)
    )
    tool = the_tool(ask("GET /list", f"<ul>{rows}</ul>"))
    assert tool.listing is not None
    assert [each.selector for each in tool.listing.fields] == ["i.day", "u.at"]
    assert reads < 1000


@pytest.mark.parametrize("mark", ["div", "b"])
def test_a_page_may_be_nested_to_any_depth(mark: str) -> None:
    page = parse(f"<{mark}>" * 5000 + "<dl><dt>Depth<dd>too deep</dl>" + f"</{mark}>" * 5000)
    assert details(page) == {"Depth": "too deep"}
    assert max(len([*each.ancestors]) for each in page.walk()) < 515


def test_an_end_tag_ends_nothing_that_is_far_above_it() -> None:
    page = parse("<i>" + "<b>" * 5000 + "</i><u>")  # each such tag would cost a search of all
    [last] = [each for each in page.walk() if each.tag == "u"]
    assert last.parent is not None
    assert last.parent.tag == "b"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            "<div class=row><b class=a>1</b><i class=b>2</i></div><div class=row>" * 400,
            id="nested",
        ),
        pytest.param("<form method=post action=/x><input name=a></form>" * 500, id="forms"),
        pytest.param("<form method=post action=/x><input name=a>" * 500, id="nested forms"),
        pytest.param(
            "<form method=post action=/x>"
            + "".join(f"<input type=radio name=kind{n}>" for n in range(500)),
            id="fields",
        ),
        pytest.param(
            f"<table><tr>{'<td class=a><a>' * 500}<tr>{'<td>' * 500}</table>", id="columns"
        ),
    ],
)
def test_a_page_is_not_read_again_for_each_of_its_elements(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = 0

    def count(element: Element) -> list[Element]:
        nonlocal visits
        visits += 1
        return [each for each in element.children if isinstance(each, Element)]

    monkeypatch.setattr(Element, "elements", property(count))
    site_of(ask("GET /list", page), ask("POST /x", "<h1>Done", form={"a": "1"}))
    assert visits < 250_000


def test_what_has_a_label_is_read_by_it() -> None:
    [call] = calls_of(the_tool(ask("GET /books/7", ITEM)))
    assert call.arguments == {"bookId": 7}
    details = {"Number": "7", "Tags": "hot drink", "Price": "3 €"}
    assert call.value == {"title": "Tea", "details": details}


def test_a_form_is_a_tool_with_its_fields() -> None:
    tools = tools_of(
        ask("GET /books/new", FORM),
        ask("POST /books", status=303, headers={"location": "/books/8"}, form=SENT),
        ask("GET /books/8", ITEM),
    )

    tool = tools["create_book"]
    assert [
        (each.name, each.label, each.is_required, [*each.choices]) for each in tool.inputs.arguments
    ] == [
        ("title", "Title", True, []),
        ("copies", "Copies", False, []),
        ("kind", "New", False, ["new", "old"]),
        ("lang", "", False, ["en", "de"]),
        ("lent", "", False, ["on"]),
        ("note", "A note", False, []),
    ]
    assert [call.arguments for call in calls_of(tool)] == [
        {"title": "Tea", "copies": 2, "kind": "old", "lang": "de", "note": ""}
    ]
    assert [call.value for call in calls_of(tool)] == [{"title": "Tea", "notice": "Saved"}]


MULTIPLE = """
<form action="/books" method="{}"><select name=tags multiple><option>hot<option>new</select>
<input type=checkbox name=shelf value=1 checked><input type=checkbox name=shelf value=2>
<select name=per><option>10<option>20</select></form>
"""


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_field_with_several_choices_takes_an_array_of_them(method: str) -> None:
    form = ask("GET /form", MULTIPLE.format(method))
    tags, shelf = "tags=hot&tags=new&shelf=2&per=10", "tags=hot&shelf=1&shelf=2&per=20"
    if method == "get":
        sent = [ask(f"GET /books?{each}", CARDS) for each in (tags, shelf)]
    else:
        sent = [ask("POST /books", ITEM, form=parse_qs(each)) for each in (tags, shelf)]
    tool = next(each for each in tools_of(form, *sent).values() if each.operation.path == ["books"])

    written = {each.name: argument(each, 0).partition(".describe")[0] for each in
               tool.inputs.arguments}  # fmt: skip
    optional = ".optional()" if method == "post" else ""
    assert written == {
        "tags": f'z.array(z.enum(["hot", "new"])){optional}',
        "shelf": f'z.array(z.enum(["1", "2"])){optional}',
        "per": f'z.enum(["10", "20"]){optional}',
    }
    assert [call.arguments for call in calls_of(tool)] == [
        {"tags": ["hot", "new"], "shelf": ["2"], "per": "10"},
        {"tags": ["hot"], "shelf": ["1", "2"], "per": "20"},
    ]


def test_which_entry_is_meant_is_an_argument_where_each_has_the_same_form() -> None:
    form = (
        "<form action=/books/lend method=POST><input type=hidden name=csrf_token value=t{0}>"
        "<input type=hidden name=from value=list><input type=hidden name=book value={0}></form>"
    )
    sent = {"csrf_token": "t8", "from": "list", "book": "8"}
    tools = tools_of(
        ask("GET /books", CARDS + form.format(7) + form.format(8)),
        ask("POST /books/lend", ITEM, form=sent),
    )
    tool = tools["lend_book"]
    assert [(each.name, each.is_required) for each in tool.inputs.arguments] == [("book", True)]
    assert [call.arguments for call in calls_of(tool)] == [{"book": 8}]


def test_an_entry_that_is_named_by_digits_with_a_zero_before_is_not_a_number() -> None:
    form = "<form action=/lend method=POST><input type=hidden name=book value={0}></form>"
    tools = tools_of(
        ask("GET /books", CARDS + form.format("007") + form.format("008")),
        ask("POST /lend", ITEM, form={"book": "008"}),
    )
    [book] = next(tool for tool in tools.values() if not tool.is_read).inputs.arguments
    assert book.shape.kinds == {"string": 1}


def test_the_token_of_a_form_is_not_compared_in_replays() -> None:
    site = site_of(ask("GET /books/new", FORM), ask("POST /books", ITEM, form=SENT))
    files = write_plugin(site, "books", "ts").files
    assert 'volatile = ["csrf_token"]' in files["pyproject.toml"]
    assert 'save: "yes", title: title_, copies' in files["src/tools/create_book.ts"]
    assert "csrf_token" not in files["src/tools/create_book.ts"]


def test_a_form_is_looked_for_on_the_page_of_the_entry_that_it_changes() -> None:
    form = '<form action="/books/7" method=POST><input name=title><button>Save</button></form>'
    site = site_of(
        ask("GET /a%60/7?back=`${1}\\u&to=a%20b", form),
        ask("POST /books/7", ITEM, form={"title": "Tea"}),
    )
    source = write_plugin(site, "books", "ts").files["src/tools/create_book.ts"]
    page = "`/a%60/${encodeURIComponent(bookId)}?back=%60%24{1}%5Cu&to=a%20b`"
    assert f"const form = {page};" in source


@pytest.mark.parametrize(
    "form",
    [
        FORM.replace("type=hidden", "type=password"),
        FORM.replace("type=number", "type=file"),
        FORM.replace("<form ", "<form enctype=multipart/form-data "),
        FORM.replace("/books", "/others"),
    ],
)
def test_a_form_that_a_tool_should_not_send_is_left_out(form: str) -> None:
    assert tools_of(ask("GET /books/new", form), ask("POST /books", ITEM, form=SENT)) == {}


def test_a_page_without_lists_and_labels_is_not_a_tool() -> None:
    assert tools_of(ask("GET /about", "<h1>About</h1><p>us</p>")) == {}


def test_a_page_that_asks_for_a_password_is_not_a_tool() -> None:
    assert tools_of(ask("GET /books", f"{CARDS}<input type=password>")) == {}


def test_pages_are_tools_only_where_there_is_no_api() -> None:
    pages = ask("GET /books", CARDS)
    assert [*tools_of(pages, ask("GET /api/items", [{"n": 1}]))] == ["list_items"]
    assert [*tools_of(pages, ask("GET /api/items", []), chosen=("GET /books",))] == ["list_books"]


def test_a_list_is_read_on_by_the_link_to_its_next_page() -> None:
    tool = the_tool(
        ask("GET /books", f'{CARDS}<p class="next"><a href="?page=2">More</a>'),
        ask("GET /books?page=2", f'{CARDS}<a rel="nofollow next" href="?page=3">More</a>'),
    )

    [call] = calls_of(tool)
    assert (call.arguments, call.pages) == ({"maxPages": 2}, 2)
    assert [each["id"] for each in call.value["books"]] == ["b1", "b2", "b1", "b2"]
    assert call.value["hasMore"] is True


def test_each_page_of_a_list_whose_links_lead_in_a_circle_is_read_once() -> None:
    tool = the_tool(
        ask("GET /books", f'{CARDS}<a rel="next" href="?page=2">More</a>'),
        ask("GET /books?page=2", f'{CARDS}<a rel="next" href="?page=3">More</a>'),
        ask("GET /books?page=3", f'{CARDS}<a rel="next" href="?page=2">More</a>'),
    )

    [call] = calls_of(tool)
    assert (call.arguments, call.pages) == ({"maxPages": 3}, 3)


def test_a_link_that_is_not_valid_leads_nowhere() -> None:
    rows = "".join(f"<tr><td>a{each}<td>b" for each in range(3))
    page = (
        f'<table>{rows}</table><a rel=next href="http://[">more</a>'
        '<form method=post action="http://["><input name=text></form>'
    )
    [tool] = tools_of(
        ask("GET /list", page),
        ask("POST /send", form={"text": "x"}, status=302, headers={"location": "http://["}),
    ).values()
    assert tool.name == "get_list"
    [call] = calls_of(tool)
    assert call.arguments == {"maxPages": 1}  # there is more, which was not recorded


def test_a_list_is_not_named_like_an_id() -> None:
    rows = "".join(f"<tr><td>a{each}<td>b" for each in range(3))
    [tool] = tools_of(ask("GET /A00%3A", f"<table>{rows}</table>")).values()
    assert isinstance(tool, HtmlTool)
    assert tool.wrap == "items"
    assert "items: z.array(" in html_tool_source(tool, "ts")
