"""What belongs to a client's connection, and which requests share one."""

from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from opentabs_py.server.mcp.answers import Prepared
from opentabs_py.server.mcp.connections import ClientConnection, ClientConnections

Context = ServerRequestContext[Any]


def over_http(session: str | None, version: str = "2025-11-25") -> Context:
    headers = [(b"mcp-protocol-version", version.encode())]
    headers += [] if session is None else [(b"mcp-session-id", session.encode())]
    request = Request({"type": "http", "headers": headers})
    theirs = SimpleNamespace(_connection=SimpleNamespace(exit_stack=AsyncExitStack()))
    return cast("Context", SimpleNamespace(request=request, session=theirs))


OVER_STDIO = cast("Context", SimpleNamespace(request=Prepared()))


def test_requests_of_a_session_share_a_connection_and_others_do_not() -> None:
    known = ClientConnections()
    one, again = known.of(over_http("one")), known.of(over_http("one"))
    assert one is again
    assert known.of(over_http("two")) is not one


def test_requests_over_stdio_share_a_connection() -> None:
    known = ClientConnections()
    assert known.of(OVER_STDIO) is known.of(OVER_STDIO)


def test_requests_without_a_session_share_nothing_and_own_nothing() -> None:
    known = ClientConnections()
    assert known.of(over_http(None)) is not known.of(over_http(None))
    assert known.session_key(over_http(None)) is None


def test_a_request_of_an_era_without_sessions_cannot_claim_one() -> None:
    known = ClientConnections()
    theirs, claimed = over_http("one"), over_http("one", "2026-07-28")
    assert known.of(claimed) is not known.of(theirs)
    assert known.session_key(claimed) is None


def test_an_owner_is_the_same_for_a_session_and_another_for_each_transport() -> None:
    known = ClientConnections()
    assert known.session_key(over_http("one")) == known.session_key(over_http("one"))
    assert known.session_key(over_http("one")) != known.session_key(over_http("two"))
    assert known.session_key(OVER_STDIO) != ClientConnections().session_key(OVER_STDIO)


@pytest.mark.anyio
async def test_a_session_is_known_until_it_ends_and_reported_then() -> None:
    gone: list[str] = []
    known = ClientConnections(gone.append)
    first = over_http("one")
    known.of(first).log_level = "error"
    assert known.of(over_http("one")).log_level == "error"
    await first.session._connection.exit_stack.aclose()
    assert gone == [known.session_key(first)]
    assert known.of(over_http("one")).log_level == "info"


def test_a_token_is_used_by_one_call_at_a_time() -> None:
    connection = ClientConnection()
    with connection.hold_token("t"):
        with pytest.raises(MCPError, match="belongs to a call that is still running"):
            connection.hold_token("t").__enter__()
        with connection.hold_token("other"):
            pass
    with connection.hold_token("t"):
        pass


def test_a_long_token_that_is_used_is_named_shortened() -> None:
    connection = ClientConnection()
    with (
        connection.hold_token("t" * 1000),
        pytest.raises(MCPError, match=f"progressToken '{'t' * 119}…' belongs"),
    ):
        connection.hold_token("t" * 1000).__enter__()


def test_a_token_that_is_a_number_is_not_the_same_as_its_text() -> None:
    connection = ClientConnection()
    with connection.hold_token(1), connection.hold_token("1"):
        pass


def test_calls_without_a_token_do_not_exclude_each_other() -> None:
    connection = ClientConnection()
    with connection.hold_token(None), connection.hold_token(None):
        pass


def test_a_token_is_free_again_after_a_call_that_failed() -> None:
    connection = ClientConnection()
    with pytest.raises(RuntimeError), connection.hold_token("t"):
        raise RuntimeError
    with connection.hold_token("t"):
        pass
