"""Which requests belong to the same route."""

import json

import pytest

from opentabs_py.core.recording.exchange import Request
from opentabs_py.core.shapes.routes import is_same_site, route_of

HOME = "https://example.com/app"
JSON = [("content-type", "application/json")]


def named(method: str, url: str, body: object = None) -> str:
    sent = b"" if body is None else json.dumps(body).encode()
    return str(route_of(Request(method, url, JSON, sent), HOME))


def test_ids_of_a_path_do_not_count() -> None:
    assert (
        named("GET", "https://example.com/api/items/4711/notes?a=1") == "GET /api/items/{id}/notes"
    )


def test_another_origin_is_named() -> None:
    assert named("GET", "https://api.example.com/") == "GET https://api.example.com/"


def test_a_graphql_operation_is_a_route_of_its_own() -> None:
    body = {"operationName": "Item", "query": "query Item { item { id } }"}

    assert named("POST", "https://example.com/graphql", body) == "POST /graphql Item"


@pytest.mark.parametrize(
    ("body", "operation"),
    [
        ({"jsonrpc": "2.0", "method": "items.list"}, " items.list"),
        ({"method": "items.list"}, ""),
        ({"jsonrpc": "2.0", "method": 5}, ""),
        ([1], ""),
    ],
)
def test_a_method_of_json_rpc_is_a_route_of_its_own(body: object, operation: str) -> None:
    assert named("POST", "https://example.com/rpc", body) == f"POST /rpc{operation}"


def test_a_body_that_is_not_json_has_no_operation() -> None:
    request = Request("POST", "https://example.com/rpc", JSON, b"{")

    assert route_of(request, HOME).operation == ""
    request = Request("POST", "https://example.com/rpc", [("content-type", "text/plain")], b"{}")
    assert route_of(request, HOME).operation == ""


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.example.com/x", True),
        ("https://example.com./x", True),
        ("https://example.org/x", False),
        ("https://127.0.0.1/", False),
    ],
)
def test_a_site_is_more_than_one_host(url: str, expected: bool) -> None:
    assert is_same_site(url, HOME) is expected


def test_addresses_without_a_name_are_sites_of_their_own() -> None:
    assert not is_same_site("http://127.0.0.1/", "http://10.0.0.1/")
    assert is_same_site("http://[::1]/a", "http://[::1]/b")
