"""How a list continues is derived from one or two of its pages."""

from typing import Any

import pytest

from opentabs_py.core.recording.exchange import Exchange
from opentabs_py.generate.calls import calls_of
from opentabs_py.generate.plan import PlannedTool
from tests.generate.recorded import ask, tools_of


def rows(*numbers: int) -> list[dict[str, int]]:
    return [{"n": number} for number in numbers]


def the_tool(*exchanges: Exchange) -> PlannedTool:
    [tool] = tools_of(*exchanges).values()
    return tool


@pytest.mark.parametrize(
    ("exchanges", "kind", "arguments", "read"),
    [
        pytest.param(
            [
                ask("GET /api/items?page=1", {"items": rows(1), "totalPages": 2}),
                ask("GET /api/items?page=2", {"items": rows(2), "totalPages": 2}),
            ],
            *("page", {}, [1, 2]),
            id="pages with their number",
        ),
        pytest.param(
            [
                ask("GET /api/items?page=1", {"page": 1, "items": rows(1), "pages": 2}),
                ask("GET /api/items?page=2", {"page": 2, "items": rows(2), "pages": 2}),
            ],
            *("page", {}, [1, 2]),
            id="pages whose own number is in the response, too",
        ),
        pytest.param(
            [
                ask("GET /api/items?page=1", {"page": 1, "items": rows(1)}),
                ask("GET /api/items?page=2", {"page": 2, "items": rows(2)}),
            ],
            *("page", {"maxPages": 2}, [1, 2]),
            id="pages with nothing but their own number in the response",
        ),
        pytest.param(
            [
                ask("GET /api/items?page=1", {"items": rows(1, 2), "count": 2}),
                ask("GET /api/items?page=2", {"items": rows(3), "count": 1}),
            ],
            *("page", {"maxPages": 2}, [1, 2, 3]),
            id="pages that count their own items",
        ),
        pytest.param(
            [
                ask("GET /api/items", {"items": rows(1), "hasMore": True}),
                ask("GET /api/items?page=2", {"items": rows(2), "hasMore": True}),
            ],
            *("page", {"maxPages": 2}, [1, 2]),
            id="pages without an end, the first without a number",
        ),
        pytest.param(
            [
                ask("GET /api/items?page=0", rows(1)),
                ask("GET /api/items?page=1", []),
            ],
            *("page", {}, [1]),
            id="pages from 0 until one is empty",
        ),
        pytest.param(
            [
                ask("GET /api/items?offset=0", {"items": rows(1, 2), "total": 3}),
                ask("GET /api/items?offset=2", {"items": rows(3), "total": 3}),
            ],
            *("offset", {}, [1, 2, 3]),
            id="offsets with a total",
        ),
        pytest.param(
            [
                ask("GET /api/items", {"items": rows(1), "meta": {"next_cursor": "abc"}}),
                ask("GET /api/items?cursor=abc", {"items": rows(2), "meta": {}}),
            ],
            *("cursor", {}, [1, 2]),
            id="cursors",
        ),
        pytest.param(
            [
                ask("GET /api/items", {"items": rows(1), "hasMore": True, "cursor": "a1b2c3d4"}),
                ask(
                    "GET /api/items?cursor=a1b2c3d4",
                    {"items": rows(2), "hasMore": False, "cursor": "e5f6a7b8"},
                ),
            ],
            *("cursor", {}, [1, 2]),
            id="cursors, also of the last page",
        ),
        pytest.param(
            [
                ask("GET /api/items", {"items": rows(1), "next": "/api/items?from=2"}),
                ask("GET /api/items?from=2", {"items": rows(2), "next": None}),
            ],
            *("link", {}, [1, 2]),
            id="links",
        ),
        pytest.param(
            [
                ask(
                    "GET /api/items?size=1",
                    rows(1),
                    headers={"link": '</x>; rel="prev", </api/items?after=1>; rel="next"'},
                ),
                ask("GET /api/items?after=1", rows(2)),
            ],
            *("link", {}, [1, 2]),
            id="links in a header",
        ),
        pytest.param(
            [
                ask("GET /api/items", {"items": rows(1), "next": "/api/items?from=2"}),
                ask("GET /api/items?from=2", {"items": rows(2), "next": "/api/items?from=2"}),
            ],
            *("link", {"maxPages": 2}, [1, 2]),
            id="links of which the last leads to its own page",
        ),
        pytest.param(
            [
                ask("GET /api/items", {"items": rows(1), "next": "a"}),
                ask("GET /api/items?cursor=a", {"items": rows(2), "next": "b"}),
                ask("GET /api/items?cursor=b", {"items": rows(3), "next": "a"}),
            ],
            *("cursor", {"maxPages": 3}, [1, 2, 3]),
            id="cursors that lead in a circle",
        ),
    ],
)
def test_a_list_is_read_on_as_the_site_divides_it(
    exchanges: list[Exchange], kind: str, arguments: dict[str, Any], read: list[int]
) -> None:
    tool = the_tool(*exchanges)

    assert tool.pagination is not None
    assert tool.pagination.kind == kind
    [call] = calls_of(tool)
    assert call.arguments == arguments
    assert [each["n"] for each in call.value["items"]] == read
    assert call.value["hasMore"] is ("maxPages" in arguments)


def test_a_long_header_of_links_is_searched_once() -> None:
    links = "<a>;" * 100_000
    tool = the_tool(ask("GET /api/items", rows(1, 2), headers={"link": links}))
    assert tool.pagination is None


def test_a_list_that_comes_whole_is_not_read_on() -> None:
    assert the_tool(ask("GET /api/items", {"items": rows(1), "size": 1})).pagination is None


@pytest.mark.parametrize("tokens", [("t1", "t1"), (None, "t1"), ("t1", "t2")])
def test_a_token_that_each_request_sends_is_not_a_cursor(tokens: tuple[str | None, ...]) -> None:
    tool = the_tool(
        ask("GET /api/items?color=red&token=t1", {"items": rows(1), "token": tokens[0]}),
        ask("GET /api/items?color=blue&token=t1", {"items": rows(2), "token": tokens[1]}),
    )
    assert tool.pagination is None


def test_a_token_that_changes_and_is_echoed_is_not_a_cursor() -> None:
    tool = the_tool(
        ask("GET /api/items?token=t1", {"items": rows(1), "token": "t1"}),
        ask("GET /api/items?token=t2", {"items": rows(2), "token": "t2"}),
    )
    assert tool.pagination is None


def test_a_request_that_writes_is_not_repeated_for_more() -> None:
    tool = the_tool(ask("POST /api/items?page=1", {"items": rows(1)}, body={"n": 1}))
    assert tool.pagination is None


@pytest.mark.parametrize("edges", [[None], [1.5], ["node"]])
def test_edges_without_a_node_are_the_items_themselves(edges: list[Any]) -> None:
    tool = the_tool(
        ask("GET /api/items?page=1", {"edges": [{"node": {"n": 1}}, {"node": {"n": 2}}]}),
        ask("GET /api/items?page=2", {"edges": edges}),
    )
    assert tool.pagination is not None
    assert tool.pagination.node == ""


def test_the_nodes_of_edges_are_the_items() -> None:
    def books(after: str | None, number: int, end: str | None) -> Exchange:
        body = {
            "operationName": "Books",
            "query": "query Books { … }",
            "variables": {"after": after},
        }
        found = {"edges": [{"node": {"n": number}}], "pageInfo": {"endCursor": end}}
        return ask("POST /graphql", {"data": {"books": found}}, body=body)

    tool = the_tool(books(None, 1, "c1"), books("c1", 2, None))

    assert tool.name == "list_books"
    [call] = calls_of(tool)
    assert call.value == {"books": rows(1, 2), "hasMore": False}
    assert call.pages == 2
