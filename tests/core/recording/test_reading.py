"""A read-only request may be answered more than once, and its tool is marked read-only."""

import json
from typing import Any

import pytest

from opentabs_py.core.recording.exchange import Exchange, Recording, Request, Response
from opentabs_py.core.recording.reading import is_read
from opentabs_py.core.recording.replay import Index, Replay

JSON = (("content-type", "application/json"),)


def post(value: Any) -> Request:
    return Request("POST", "https://chat.example/api", JSON, json.dumps(value).encode())


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", "https://chat.example/"),
        post({"query": "query Books { books { id } }"}),
        post({"query": "# all of them\n{ books { id } }"}),
        post({"operationName": "BooksQuery", "extensions": {}}),
        post({"operationName": "getBook", "extensions": {}}),
        post({"operationName": "Books", "extensions": {}}),
        post({"operationName": "UserByScreenName", "extensions": {}}),
        post({"jsonrpc": "2.0", "method": "books.list"}),
        post({"jsonrpc": "2.0", "method": "eth_getBalance"}),
    ],
)
def test_what_only_reads_is_recognized(request_: Request) -> None:
    assert is_read(request_)


@pytest.mark.parametrize(
    "request_",
    [
        Request("DELETE", "https://chat.example/api/1"),
        Request("POST", "https://chat.example/api"),
        Request("POST", "https://chat.example/api", body=b"{"),
        post(["query"]),
        post({"text": "Hello"}),
        post({"query": "mutation AddBook { add { id } }"}),
        post({"operationName": "AddBook", "extensions": {}}),
        post({"operationName": "Books"}),
        post({"operationName": 7, "extensions": {}}),
        post({"jsonrpc": "2.0", "method": "books.remove"}),
        post({"jsonrpc": "2.0", "method": 7}),
    ],
)
def test_what_may_write_is_recognized(request_: Request) -> None:
    assert not is_read(request_)


def replay_of(*exchanges: Exchange) -> Replay:
    return Replay(Index(Recording("https://chat.example/", exchanges)))


def rpc(number: int, method: str, **answer: Any) -> Exchange:
    body = json.dumps({"jsonrpc": "2.0", "id": number, **answer}).encode()
    request = post({"jsonrpc": "2.0", "id": number, "method": method})
    return Exchange(request, Response(200, headers=JSON, body=body))


def test_a_query_of_graphql_gets_its_last_answer_again_and_a_mutation_does_not() -> None:
    answer = Response(200, headers=JSON, body=b"{}")
    query, mutation = post({"query": "{ books }"}), post({"query": "mutation { add }"})
    replay = replay_of(Exchange(query, answer), Exchange(mutation, answer))

    assert [replay.answer(query) is not None for _ in range(3)] == [True, True, True]
    assert [replay.answer(mutation) is not None for _ in range(2)] == [True, False]


def test_a_call_by_json_rpc_is_answered_whatever_its_number() -> None:
    replay = replay_of(rpc(4, "books.list", result=[1]), rpc(5, "books.count", result=2))
    sent = post({"jsonrpc": "2.0", "id": 77, "method": "books.count"})

    for _ in range(2):
        answered = replay.answer(sent)
        assert answered is not None
        assert answered.response is not None
        assert json.loads(answered.response.body or b"") == {
            "jsonrpc": "2.0",
            "id": 77,
            "result": 2,
        }


@pytest.mark.parametrize(
    "response",
    [
        None,
        Response(200, headers=JSON, body=None),
        Response(200, headers=JSON, body=b'{"jsonrpc": "2.0"'),
        Response(200, headers=JSON, body=b'["jsonrpc"]'),
        Response(200, headers=JSON, body=b'{"other": "jsonrpc"}'),
        Response(200, headers=(("content-type", "text/plain"),), body=b'{"jsonrpc": "2.0"}'),
    ],
)
def test_an_answer_that_is_not_of_json_rpc_stays_as_it_is(response: Response | None) -> None:
    sent = post({"jsonrpc": "2.0", "id": 1, "method": "books.list"})
    exchange = Exchange(sent, response)
    assert replay_of(exchange).answer(sent) is exchange


def test_the_number_of_an_answer_stays_if_it_is_the_right_one() -> None:
    exchange = rpc(4, "books.list", result=[1])
    assert replay_of(exchange).answer(exchange.request) is exchange
