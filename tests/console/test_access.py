"""Who may use the console."""

import pytest
from starlette.datastructures import Headers

from opentabs_py.console.access import (
    EXPIRES_AFTER,
    HEADER,
    MOST_SESSIONS,
    MOST_TOKENS,
    Access,
)
from tests.console.served import OURS, PORT, Clock


def headers_of(access: Access, entered: tuple[str, str] | None) -> Headers:
    session, key = entered or ("", "")
    cookie = f"other=1; {access.cookie}={session}; {access.cookie}x=2"
    return Headers({"cookie": cookie, HEADER: key})


def test_a_token_lets_one_browser_in_once() -> None:
    access = Access(PORT, Clock())
    token = access.invite()
    entered = access.enter(token, {})
    assert access.admits(headers_of(access, entered))
    assert access.enter(token, {}) is None
    assert not access.admits(headers_of(access, (token, token)))


def test_the_cookie_alone_which_other_ports_see_shows_the_page_and_admits_nothing() -> None:
    access = Access(PORT, Clock())
    first, second = access.enter(access.invite(), {}), access.enter(access.invite(), {})
    assert first is not None
    assert second is not None
    for key in ("", first[0], second[1], "ü"):
        headers = headers_of(access, (first[0], key))
        assert access.shows(headers)
        assert not access.admits(headers)
    assert not access.shows(headers_of(access, ("", first[1])))
    assert access.admits(headers_of(access, (first[0], f"{second[1]} {first[1]}")))


@pytest.mark.parametrize(
    "other", ['prefs={"theme":"dark"}', "a=b c", "name=é", "flag", "x[y]=1", "path=/x", "="]
)
def test_an_odd_cookie_of_another_port_does_not_prevent_signing_in(other: str) -> None:
    access = Access(PORT, Clock())
    entered = access.enter(access.invite(), {})
    assert entered is not None
    session, key = entered
    headers = Headers({"cookie": f"{other}; {access.cookie}={session}", HEADER: key})
    assert access.admits(headers)


def test_a_token_that_was_not_used_in_time_lets_nobody_in() -> None:
    clock = Clock()
    access = Access(PORT, clock)
    late, lasting, soon = access.invite(), access.invite(expires=False), access.invite()
    clock.now += EXPIRES_AFTER - 0.01
    assert access.enter(soon, {})
    clock.now += 0.01
    assert access.enter(late, {}) is None
    clock.now += 1_000_000
    assert access.enter(lasting, {})


def test_nothing_but_a_session_of_this_server_is_let_in() -> None:
    access, other = Access(PORT, Clock()), Access(PORT + 1, Clock())
    entered = access.enter(access.invite(), {})
    theirs = other.enter(other.invite(), {})
    assert entered is not None
    session, key = entered
    assert not access.admits(Headers({}))
    assert not access.admits(headers_of(access, theirs))
    for cookie in (f"{other.cookie}={session}", f"{access.cookie}=", "\x00;;=;==; a b"):
        assert not access.admits(Headers({"cookie": cookie, HEADER: key}))
    assert access.enter("", {}) is None
    assert access.enter("ü", {}) is None


def test_unused_tokens_and_sessions_are_bounded() -> None:
    access = Access(PORT, Clock())
    first = access.invite()
    for _ in range(MOST_TOKENS):
        access.invite()
    assert access.enter(first, {}) is None
    entered = access.enter(access.invite(), {})
    assert access.admits(headers_of(access, entered))
    for _ in range(MOST_SESSIONS):
        access.enter(access.invite(), {})
    assert not access.admits(headers_of(access, entered))


def refusal(**changes: str | None) -> str | None:
    given = {"content-type": "application/json", "host": f"127.0.0.1:{PORT}", **OURS}
    given |= {name.replace("_", "-"): value for name, value in changes.items() if value is not None}
    left_out = {name.replace("_", "-") for name, value in changes.items() if value is None}
    headers = {name: value for name, value in given.items() if name not in left_out}
    return Access(PORT, Clock()).refusal(Headers(headers))


def test_only_the_consoles_own_page_may_change_something() -> None:
    assert refusal() is None
    assert refusal(content_type="application/json; charset=utf-8") is None
    assert "JSON" in (refusal(content_type="text/plain") or "")
    assert "JSON" in (refusal(content_type=None) or "")
    for origin in (None, "null", f"http://127.0.0.1:{PORT + 1}", f"http://localhost:{PORT}"):
        assert "own page" in (refusal(origin=origin) or "")
