"""A recording during which its user signed in is read as if they had been signed in all along."""

from typing import Any

from opentabs_py.core.recording.exchange import Exchange, Recording
from opentabs_py.generate.signing_in import as_signed_in
from tests.generate.recorded import HOME, ask, site_of

NOBODY: dict[str, Any] = {"cookies": [], "origins": []}
ADA: dict[str, Any] = {"cookies": [{"name": "sid", "value": "cookie-1"}], "origins": []}
SIGN_IN = ask("POST /login", status=303, form={"user": "ada", "password": "x"})


def recorded(*exchanges: Exchange, start: Any = NOBODY, end: Any = ADA) -> Recording:
    return Recording(HOME, exchanges, storage_state=start, storage_at_end=end)


def test_what_the_site_answered_before_the_sign_in_is_left_out_if_it_was_asked_again() -> None:
    away, form = ask("GET /", status=303), ask("GET /login", "<form method=post>")
    nobody, home = ask("GET /api/me", status=401), ask("GET /", "<h1>Orders")
    ada = ask("GET /api/me", {"name": "Ada"})

    read = as_signed_in(recorded(away, form, nobody, SIGN_IN, home, ada))

    assert read.exchanges == [form, SIGN_IN, home, ada]
    assert read.storage_state == ADA


def test_a_page_that_stays_open_during_the_sign_in_is_kept() -> None:
    home, wrong = ask("GET /", "<div id=app>"), ask("POST /api/session", status=401)
    session = ask("POST /api/session", {"ok": True}, body={"password": "x"})
    items = ask("GET /api/items", [{"n": 1}])

    read = as_signed_in(recorded(home, wrong, session, items))

    assert read.exchanges == [home, wrong, session, items]
    assert read.storage_state == ADA


def test_requests_with_another_body_are_others() -> None:
    before, after = (ask("POST /graphql", {"n": n}, body={"query": n}) for n in (1, 2))

    assert as_signed_in(recorded(before, SIGN_IN, after)).exchanges == [before, SIGN_IN, after]


def test_a_recording_without_a_sign_in_is_read_as_it_is() -> None:
    home, again = ask("GET /", "<h1>1"), ask("GET /", "<h1>2")
    refused = ask("POST /login", status=401, form={"password": "x"})

    for each in [
        recorded(home, again),
        recorded(home, refused, again),
        recorded(home, SIGN_IN, again, end=NOBODY),
        recorded(home, SIGN_IN, ask("GET /api/me"), start=None, end=None),
    ]:
        assert as_signed_in(each) is each


def test_of_another_program_s_recording_what_follows_the_sign_in_is_left() -> None:
    form, away = ask("GET /login", "<form method=post>"), ask("GET /", status=303)
    orders, listed = ask("GET /orders", "<h1>Orders"), ask("GET /api/orders", [{"n": 1}])

    read = as_signed_in(recorded(form, SIGN_IN, away, orders, listed, start=None, end=None))

    assert read.url == "https://shop.example/orders"
    assert [*read.exchanges] == [away, orders, listed]


def test_a_plugin_is_generated_from_the_recording_as_it_is_read() -> None:
    away, orders = ask("GET /", status=303), ask("GET /api/orders", [{"n": 1}])

    site = site_of(
        away, SIGN_IN, ask("GET /", "<h1>Orders"), orders, storage_state=NOBODY, storage_at_end=ADA
    )

    assert site.recording.exchanges[0].request == SIGN_IN.request
    assert site.recording.storage_state == ADA
