"""Scrubbing of recordings: what counts as a secret, and its placeholder."""

import base64
import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from opentabs_py.core.recording.exchange import (
    Event,
    Exchange,
    Frame,
    Headers,
    RecordedCall,
    RecordedSocket,
    Recording,
    Request,
    Response,
    Scrubbed,
)
from opentabs_py.core.recording.rules import Rules
from opentabs_py.core.recording.scrub import scrub

URL = "https://site.test/"


def answer(
    body: Any = b"",
    *,
    url: str = URL,
    mime: str = "application/json",
    headers: Headers = (),
    kind: str = "fetch",
    sent: bytes = b"",
    sent_headers: Headers = (),
) -> Exchange:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(
        Request("POST" if sent else "GET", url, sent_headers, sent, kind),
        Response(200, "OK", [("Content-Type", mime), *headers], raw),
    )


def scrubbed(*exchanges: Exchange, rules: Rules | None = None, **more: Any) -> list[Exchange]:
    return list(scrub(Recording(URL, exchanges, **more), rules).exchanges)


def body(exchange: Exchange) -> Any:
    assert exchange.response is not None
    assert exchange.response.body is not None
    return json.loads(exchange.response.body)


def text(exchange: Exchange) -> str:
    assert exchange.response is not None
    assert exchange.response.body is not None
    return exchange.response.body.decode()


def page(source: str) -> str:
    [after] = scrubbed(answer(source.encode(), mime="text/html; charset=utf-8"))
    return text(after)


# --- where secrets are ---


def test_cookies_are_replaced_in_both_directions_and_wherever_else_they_are() -> None:
    first = answer(headers=[("Set-Cookie", "sid=Ab12Cd34Ef; Path=/; HttpOnly\nlang=en")])
    second = answer({"debug": "Ab12Cd34Ef"}, sent_headers=[("cookie", 'sid="Ab12Cd34Ef"; lang=en')])

    one, two = scrubbed(first, second)

    assert one.response is not None
    assert one.response.headers[1][1] == "sid=cookie-1; Path=/; HttpOnly\nlang=en"
    assert two.request.headers == [("cookie", 'sid="cookie-1"; lang=en')]
    assert body(two) == {"debug": "cookie-1"}


def test_a_short_cookie_is_replaced_only_where_it_is_a_cookie() -> None:
    first = answer({"mode": "dark"}, headers=[("set-cookie", "theme=dark")])
    [one] = scrubbed(first)

    assert one.response is not None
    assert one.response.headers[1][1] == "theme=cookie-1"
    assert body(one) == {"mode": "dark"}


def test_a_short_cookie_is_replaced_in_quotation_marks_and_on_further_lines() -> None:
    sent = [("Cookie", 'a=1; Theme="dark"; b=2')]
    [one] = scrubbed(answer(headers=[("Set-Cookie", "a=1\ntheme=dark;Path=/")], sent_headers=sent))
    assert one.response is not None
    assert one.response.headers[1][1] == "a=1\ntheme=cookie-1;Path=/"
    assert one.request.headers == [("Cookie", 'a=1; Theme="cookie-1"; b=2')]


def test_a_cookie_that_contains_json_is_searched() -> None:
    value = "%7B%22email%22%3A%22ada%40lovelace.org%22%7D"
    [one] = scrubbed(answer({"by": "ada@lovelace.org"}, headers=[("set-cookie", f"who={value}")]))
    assert body(one) == {"by": "person1@example.com"}


@pytest.mark.parametrize("scheme", ["Bearer", "Token", ""])
def test_authorization_is_replaced_after_its_scheme(scheme: str) -> None:
    given = f"{scheme} s3cr3tToken".strip()
    [one] = scrubbed(answer(sent_headers=[("Authorization", given)]))
    assert one.request.headers == [("Authorization", f"{scheme} authorization-1".strip())]


def test_every_token_of_an_authorization_is_replaced() -> None:
    google = "SAPISIDHASH 17_aaaaaaaaaaaa SAPISID1PHASH 17_bbbbbbbbbbbb SAPISID3PHASH 17_cccccccc"
    digest = 'Digest username="somebody", realm="a", nonce="n0n0n0n0", uri="/path/of", qop="auth"'
    oauth = 'OAuth oauth_consumer_key="ck_9988", oauth_token="tok_5544", oauth_version="1.0"'
    given = [answer(sent_headers=[("authorization", each)]) for each in (google, digest, oauth)]
    after = [each.request.headers[0][1] for each in scrubbed(*given)]
    for secret in ("aaaaaaaa", "bbbbbbbb", "cccccc", "somebody", "n0n0", "9988", "5544"):
        assert not any(secret in each for each in after), secret
    assert after[1].startswith("Digest username=")
    assert 'realm="a"' in after[1]
    assert 'uri="/path/of", qop="auth"' in after[1]
    assert after[2].endswith('oauth_version="1.0"')


def test_basic_authorization_hides_user_and_password_elsewhere_too() -> None:
    token = base64.b64encode(b"lovelace:eng1ne!").decode()
    [one] = scrubbed(
        answer(
            {"user": "lovelace", "p": "eng1ne!"}, sent_headers=[("authorization", f"Basic {token}")]
        )
    )
    assert body(one) == {"user": "robin", "p": "authorization-1"}
    assert token not in str(one.request.headers)


@pytest.mark.parametrize("token", ["%%%%", "abcde", "/w=="])
def test_basic_authorization_that_cannot_be_decoded_is_replaced_too(token: str) -> None:
    [one] = scrubbed(answer(sent_headers=[("authorization", f"Basic {token}")]))
    assert one.request.headers == [("authorization", "Basic authorization-1")]


def test_a_word_in_an_authorization_is_replaced_where_its_parameter_is() -> None:
    digest = 'Digest username="grace", realm="a", cnonce="word"'
    [one] = scrubbed(answer({"say": "grace", "word": 1}, sent_headers=[("Authorization", digest)]))
    [(_, value)] = one.request.headers
    assert "grace" not in value
    assert "word" not in value
    assert body(one) == {"say": "grace", "word": 1}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("X-CSRF-Token", "csrf-token"),
        ("X-Api-Key", "token"),
        ("x-auth", "authorization"),
        ("X-Author", None),
    ],
)
def test_headers_are_secret_by_their_names(name: str, kind: str | None) -> None:
    [one] = scrubbed(answer(sent_headers=[(name, "a1b2c3d4")]))
    [(_, value)] = one.request.headers
    assert value == ("a1b2c3d4" if kind is None else f"{kind}-1")


def test_a_word_in_a_secret_header_is_replaced_there_and_kept_elsewhere() -> None:
    [one] = scrubbed(answer({"topic": "general"}, sent_headers=[("X-Token", "general")]))
    assert body(one) == {"topic": "general"}
    assert one.request.headers == [("X-Token", "token-1")]


def test_addresses_are_searched() -> None:
    url = "https://me:pa55word@site.test/a?access_token=t0k3n_t0k3n&page=2#id_token=h4sh_h4sh"
    referer = [("referer", "https://site.test/?session_id=s3ss10n_id")]
    [one] = scrubbed(answer(url=url, sent_headers=referer))
    assert "pa55word" not in one.request.url
    assert "t0k3n_t0k3n" not in one.request.url
    assert "page=2" in one.request.url
    assert "s3ss10n_id" not in str(one.request.headers)


def test_an_address_that_cannot_be_parsed_is_kept() -> None:
    [one] = scrubbed(answer(sent_headers=[("referer", "https://[x/?a=b")]))
    assert one.request.headers == [("referer", "https://[x/?a=b")]


def test_json_members_are_secret_by_their_names() -> None:
    value = {
        "password": "correct!horse9",
        "api_keys": ["k1k1k1k1k1", 7],
        "tokenCount": 12345,
        "csrf": "aa11bb22",
        "nextPageToken": "p4g3t0k3n",
        "pin": 12345,
        "secret": None,
        "auth": True,
        "token": 1.5,
        "headers": [{"name": "x-api-key", "value": "h34d3r_k3y"}],
        "cookie": "ab",
    }
    [one] = scrubbed(answer(value))
    after = body(one)
    assert after["password"].startswith("token-")
    assert after["api_keys"][0].startswith("token-")
    assert after["csrf"] == "csrf-token-1"
    assert after["nextPageToken"] == "p4g3t0k3n"
    assert after["pin"] != 12345
    assert after["headers"][0]["value"].startswith("token-")
    assert [after[name] for name in ("secret", "auth", "token", "cookie")] == [
        None,
        True,
        1.5,
        "ab",
    ]


def test_form_fields_are_secret_by_their_names() -> None:
    form = [("content-type", "application/x-www-form-urlencoded")]
    [one] = scrubbed(answer(sent=b"user=x&password=hunter%212&n=1", sent_headers=form))
    assert one.request.body == b"user=x&password=token-1&n=1"


def test_multipart_fields_are_secret_by_their_names() -> None:
    parts = (
        b'--x\r\nContent-Disposition: form-data; name="password"\r\n'
        b"Content-Type: text/plain\r\n\r\n"
        b'hunter!2\r\n--x\r\nContent-Disposition: form-data; name="q"\r\n\r\ntea\r\n--x--\r\n'
    )
    headers = [("content-type", "multipart/form-data; boundary=x")]
    [one] = scrubbed(answer(sent=parts, sent_headers=headers))
    assert one.request.body == parts.replace(b"hunter!2", b"token-1")


@pytest.mark.parametrize(
    ("mime", "before", "after"),
    [
        ("multipart/form-data; boundary=x", 'name="password"\r\n\r\n', "\r\n--x--"),
        ("application/json", '{"name": "password", "value": "', '"}'),
        ("application/json", '[{"key":"token","value":"', '"}]'),
        ("application/json", '{"key": "token", "domain": "a.test", "value": "', '"}'),
        ("application/json", '[{"value":"', '","key":"token"}]'),
        ("application/json", '[{"value": "', '", "at": 1, "name": "token"}, {"name": "a"}]'),
        ("application/json", '[{"token":"', '"},{"token":"abc","value":"x"}]'),
        ("application/json", '{"passwords": ["', '", "abc"], "b": 1}'),
        ("application/json", '{"passwords": [null, 1.5, ["\\"a\\""], ["', '"]]}'),
        ("application/json", r'{"a": "{\"passwords\": [\"abc\", \"', r'\"]}"}'),
        ("multipart/form-data; boundary=x", "name=password; a=b\r\n\r\n", "\r\n--x--"),
        ("application/x-www-form-urlencoded", "passwords[]=abc&passwords[]=", "&a=1"),
        ("application/x-www-form-urlencoded", "one=%7B%22password%22%3A%22", "%22%7D"),
        ("application/x-www-form-urlencoded", "one=%7B%22password%22%3A+%22", "%22%7D&b=c"),
        ("application/x-www-form-urlencoded", "one=%7b%22passwords%22%3a%5b%5b%22", "%22%5d%5d%7d"),
        (
            "application/x-www-form-urlencoded",
            "one=%7B%22passwords%22%3A%5B%22abc%22%2C%22%5C%22a%22%2C%22",
            "%22%5D%2C%22a%22%3A1%7D",
        ),
        (
            "application/x-www-form-urlencoded",
            "one=%7B%22name%22%3A%22password%22%2C%22value%22%3A%22",
            "%22%7D",
        ),
        (
            "application/x-www-form-urlencoded",
            "one=%7B%22value%22%3A%22",
            "%22%2C%22name%22%3A%22password%22%7D",
        ),
        ("application/x-www-form-urlencoded", "user%5Bpassword%5D=", "&a=1"),
        ("application/x-www-form-urlencoded", "one+time+password=", ""),
        ("text/html", '<input name="user[password]" type="text" value="', '">'),
        ("text/html", "<input name=password value=", ">"),
        ("text/html", '<input value="', '" type=text name="password">'),
        ("text/html", "<input value=", " id=password>"),
        ("text/html", '<textarea name="password" rows="2">\n', "</textarea>"),
        ("text/html", '<p data-api-key="', '">'),
    ],
)
def test_a_word_is_replaced_wherever_a_secret_name_holds_it(
    mime: str, before: str, after: str
) -> None:
    sent = f"{before}correcthorse{after}"
    [exchange] = scrubbed(answer(sent=sent.encode(), sent_headers=[("content-type", mime)]))
    assert exchange.request.body.decode() == f"{before}token-1{after}"


@pytest.mark.parametrize("secret", ["correcthorse", "pässwörter", 'k3y/é"\\<@Ω'])
@pytest.mark.parametrize("value", [{"password": "{}"}, {"passwords": ["abc", "{}", "abc"]}])
@pytest.mark.parametrize("encode", [quote, quote_plus])
def test_json_in_a_query_is_replaced_as_it_is_encoded(
    secret: str, value: dict[str, Any], encode: Callable[[str], str]
) -> None:
    def url(text: str) -> str:
        written = json.dumps(value, ensure_ascii=False)
        return (
            f"{URL}?v={encode(written.replace('{}', json.dumps(text, ensure_ascii=False)[1:-1]))}&a"
        )

    [one] = scrubbed(answer(url=url(secret), sent_headers=[("Referer", url(secret))]))
    assert one.request.url == url("token-1")
    assert one.request.headers == [("Referer", url("token-1"))]


def test_a_word_is_kept_beside_the_list_that_holds_it() -> None:
    value = {"say": "mint", "mint": ["mint"], "teas": [["mint"], "mint"]}
    [one] = scrubbed(answer({**value, "tokens": ["sage", "mint"], "mint ": "mint", "sage": 1}))
    assert body(one) == {**value, "tokens": ["token-1", "token-2"], "mint ": "mint", "sage": 1}


def test_a_word_in_other_letters_is_replaced_where_it_is_held() -> None:
    [one] = scrubbed(answer({"password": "pässwörter"}))
    assert body(one) == {"password": "token-1"}


@pytest.mark.parametrize(
    "mime",
    [
        *("application/x-amz-json-1.1", "application/x-ndjson", "application/json-seq"),
        *("application/vnd.api+json", "application/octet-stream", "application/made-up"),
    ],
)
def test_text_is_searched_whatever_its_media_type(mime: str) -> None:
    [after] = scrubbed(answer(b'{"password":"Tr0ub4dor&3","to":"me@corp.test"}\n', mime=mime))
    assert "Tr0ub4dor" not in text(after)
    assert "me@corp" not in text(after)


def test_bytes_that_are_not_text_come_through() -> None:
    for raw in (b"\x00password=Tr0ub4dor&3", b"\xff\xfe{}"):
        [after] = scrubbed(answer(raw, mime="application/octet-stream"))
        assert after.response is not None
        assert after.response.body == raw


def test_a_name_that_was_cut_within_a_character_loses_no_recording() -> None:
    me = answer({"user": {"display_name": "Bob Stone \ud83d"}}, url=f"{URL}api/me")
    other = answer(b"\x00\xff Bob", mime="image/png")
    [after, _] = scrubbed(me, other)
    assert "Stone" not in text(after)


def test_a_page_is_searched_for_fields_meta_elements_and_scripts() -> None:
    after = page(
        '<meta name="csrf-token" content="m3t4m3t4"><meta property="x">'
        '<input name="authenticity_token" value="f13ldf13ld">'
        '<input type="password" value="typed"><input>'
        '<div data-api-key="d4t4d4t4"></div><a href="tel:+31201234567">call</a>'
        '<script>var a = {"sessionId": "scr1pt_s3ss10n", n: 1}; f([{"viewer": {"name": "Ada"}}]);'
        "window.x = {broken; y = ({});</script>Hello Ada"
    )
    for secret in ("m3t4m3t4", "f13ldf13ld", "typed", "d4t4d4t4", "31201234567", "scr1pt", "Ada"):
        assert secret not in after
    assert after.endswith("Hello Robin")


def test_a_word_that_a_field_holds_is_replaced_only_there() -> None:
    after = page('<input name=token value="general"><p>In general, yes.')
    assert after == '<input name=token value="token-1"><p>In general, yes.'


def test_a_word_is_held_by_the_whole_name_of_a_field() -> None:
    field = '<input name="pin[]" value="mint">'
    one, _ = scrubbed(answer(field.encode(), mime="text/html"), answer({"pin": "sage"}))
    assert text(one) == field.replace("mint", "token-1")


def test_a_page_that_is_not_html_is_kept() -> None:
    assert page("<![x[<!DOCTYPE <p") == "<![x[<!DOCTYPE <p"


def test_event_streams_are_searched() -> None:
    stream = b'data: {"token": "str34m_t0k"}\n\ndata: no json\n\n'
    [one] = scrubbed(answer(stream, mime="text/event-stream"))
    assert text(one) == 'data: {"token": "token-1"}\n\ndata: no json\n\n'


def test_messages_of_an_event_stream_are_scrubbed_as_its_body() -> None:
    response = Response(
        200,
        "",
        [("content-type", "text/event-stream")],
        b"data: ada@lovelace.org\n\n",
        [Event(1.0, "ada@lovelace.org", "message", "ada@lovelace.org")],
    )
    [one] = scrubbed(Exchange(Request("GET", URL), response))
    assert one.response is not None
    assert one.response.events == [
        Event(1.0, "person1@example.com", "message", "person1@example.com")
    ]


def test_websockets_are_searched_and_scrubbed() -> None:
    frames = [
        Frame(1.0, True, '{"password": "w3bs0ck3t"}'),
        Frame(2.0, False, b"\x00w3bs0ck3t\xff"),
    ]
    recording = Recording(
        URL, sockets=[RecordedSocket("wss://site.test/?token=w3bs0ck3t", 0.5, frames)]
    )
    [socket] = scrub(recording).sockets
    assert (socket.url, socket.started) == ("wss://site.test/?token=token-1", 0.5)
    assert socket.frames == [
        Frame(1.0, True, '{"password": "token-1"}'),
        Frame(2.0, False, b"\x00token-1to\xff"),  # as long as before
    ]


def test_calls_are_searched_and_scrubbed() -> None:
    call = RecordedCall(
        "mail_send", {"to": "ada@lovelace.org"}, {"token": "c4llc4ll"}, {"message": "c4llc4ll"}
    )
    [after] = scrub(Recording(URL, calls=[call])).calls
    assert after.arguments == {"to": "person1@example.com"}
    assert after.value == {"token": "token-1"}
    assert after.error == {"message": "token-1"}


@pytest.mark.parametrize("member", ["storage_state", "storage_at_end"])
def test_a_word_in_the_local_storage_is_replaced_by_its_name(member: str) -> None:
    storage = [{"name": "password", "value": "correcthorse"}, {"name": "pin", "value": "1234"}]
    state = {"cookies": [], "origins": [{"origin": URL, "localStorage": storage}]}
    recording: Any = {member: state}
    after = getattr(scrub(Recording(URL, [], **recording)), member)
    assert [each["value"] for each in after["origins"][0]["localStorage"]] == ["token-1", "5001"]


@pytest.mark.parametrize("member", ["storage_state", "storage_at_end"])
def test_the_state_of_the_browser_is_scrubbed(member: str) -> None:
    state: Any = {
        "cookies": [{"name": "sid", "value": "st4t3c00k13"}, {"name": "theme", "value": "dark"}],
        "origins": [
            {
                "origin": "https://site.test",
                "localStorage": [
                    {"name": "authToken", "value": "l0c4lst0r"},
                    {"name": "me", "value": '{"email": "ada@lovelace.org"}'},
                ],
            }
        ],
    }
    after = getattr(scrub(replace(Recording(URL), **{member: state})), member)
    assert after is not None
    assert {each["value"] for each in after["cookies"]} == {"cookie-1", "cookie-2"}
    stored = [each["value"] for each in after["origins"][0]["localStorage"]]
    assert "l0c4lst0r" not in stored[0]
    assert json.loads(stored[1]) == {"email": "person1@example.com"}


# --- what is secret by its form ---


def test_the_same_address_is_the_same_person_in_every_encoding() -> None:
    [one] = scrubbed(
        answer(
            b"ada@lovelace.org ada%40lovelace.org ada&#64;lovelace.org ada\\u0040lovelace.org",
            mime="text/plain",
        )
    )
    assert text(one) == (
        "person1@example.com person1%40example.com person1&#64;example.com "
        "person1\\u0040example.com"
    )


@pytest.mark.parametrize("kept", ["icon@2x.png", "a@b", "lodash@4.17.21", "x@example.com"])
def test_what_only_looks_like_an_address_is_kept(kept: str) -> None:
    assert page(f"<p>{kept}") == f"<p>{kept}"


@pytest.mark.parametrize(
    "number", ["+44 20 7946 0958", "(415) 555-2671", "415-555-2671", "+14155552671", "415.555.2671"]
)
def test_phone_numbers_keep_their_form(number: str) -> None:
    after = page(f"<p>{number}</p>")
    assert number not in after
    assert re.sub(r"\d", "0", after) == re.sub(r"\d", "0", f"<p>{number}</p>")


@pytest.mark.parametrize(
    "kept", ["2026-11-23 10:00:00", "1795474025183", "12-345-6789", "+1 2", "+1 2 3"]
)
def test_what_only_looks_like_a_phone_number_is_kept(kept: str) -> None:
    assert page(f"<p>{kept}</p>") == f"<p>{kept}</p>"


def test_no_two_numbers_become_the_same() -> None:
    numbers = {"phone": "+14155552671", "mobile": "+14155552672", "pin": "1234", "passcode": "5678"}
    [one] = scrubbed(answer(numbers))
    assert set(body(one).values()).isdisjoint(numbers.values())
    assert len(set(body(one).values())) == len(numbers)


def test_hundreds_of_numbers_stay_different_numbers_of_as_many_digits() -> None:
    pins = [{"pin": 1000 + i, "otp": 1_234_000 + i} for i in range(300)]
    [one] = scrubbed(answer(pins))
    after = body(one)
    assert len({each["pin"] for each in after}) == len({each["otp"] for each in after}) == 300
    assert {(len(str(each["pin"])), len(str(each["otp"]))) for each in after} == {(4, 7)}


def test_a_number_that_is_called_a_phone_is_replaced_by_a_number() -> None:
    [one] = scrubbed(answer({"mobile": 4479460958, "phone": "12", "other": 4479460958}))
    after = body(one)
    assert isinstance(after["mobile"], int)
    assert after["mobile"] != 4479460958
    assert after["other"] == after["mobile"]
    assert after["phone"] == "12"


def test_a_short_number_that_is_secret_is_replaced_where_it_is_held() -> None:
    [one] = scrubbed(answer({"pin": 1234, "year": 1234, "otp": -123456}))
    after = body(one)
    assert after["year"] == 1234
    assert after["pin"] != 1234
    assert len(str(after["pin"])) == 4
    assert after["otp"] != -123456
    assert isinstance(after["otp"], int)


def test_a_token_is_replaced_by_one_that_does_not_expire() -> None:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    token = f"{part({'alg': 'HS256'})}.{part({'name': 'Ada Lovelace', 'exp': 1})}.c2lnbmF0dXJl"
    [one] = scrubbed(answer({"t": token, "say": "Hello Ada"}))

    after = body(one)
    header, claims, signature = after["t"].split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none", "typ": "JWT"}
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["exp"] > 4_000_000_000
    assert signature == ""
    assert after["say"] == "Hello Robin"  # the claims name the user


def test_a_token_whose_claims_cannot_be_read_is_replaced() -> None:
    [one] = scrubbed(answer({"t": "eyJhbGciOi.!!!!.x", "u": "eyJhbGciOiJ.aaaaa.x"}))
    assert "aaaaa" not in text(one)


@pytest.mark.parametrize(
    "token",
    [
        "ghp_" + "a1" * 18,
        "xoxb-1234567890-abc",
        "sk-" + "Ab1" * 8,
        "AKIA" + "A1" * 8,
        "AIza" + "x" * 35,
    ],
)
def test_tokens_that_say_what_they_are_are_replaced_even_in_scripts(token: str) -> None:
    script = f'const key = "{token}"; // by ada@lovelace.org'.encode()
    [one] = scrubbed(answer(script, mime="text/javascript", kind="script"))
    assert text(one) == 'const key = "token-1"; // by ada@lovelace.org'


def test_a_script_loses_what_is_secret_elsewhere() -> None:
    one, _ = scrubbed(
        answer(b'f("s3cr3t_v4lue")', mime="text/javascript", kind="script"),
        answer({"secret": "s3cr3t_v4lue"}),
    )
    assert text(one) == 'f("token-1")'


# --- names ---


@pytest.mark.parametrize(
    ("url", "value"),
    [
        (f"{URL}api/me", {"name": "Ada Lovelace"}),
        (f"{URL}users/self/settings", {"fullName": "Ada Lovelace"}),
        (f"{URL}user", {"display_name": "Ada Lovelace"}),
        (f"{URL}page", {"viewer": {"name": "Ada Lovelace"}}),
        (f"{URL}api/me", {"data": {"user": {"name": "Ada Lovelace"}}}),
    ],
)
def test_the_names_of_the_user_who_is_signed_in_are_replaced(url: str, value: object) -> None:
    one, two = scrubbed(answer(value, url=url), answer({"say": "Dear Ada, or Ms. Lovelace: Adair"}))
    assert "Ada Lovelace" not in text(one)
    assert re.fullmatch(r"Dear (\w+), or Ms\. (\w+): Adair", body(two)["say"])
    assert "Ada," not in text(two)
    assert "Lovelace" not in text(two)


def test_names_of_others_and_of_things_are_kept() -> None:
    value = {"items": [{"name": "Grace Hopper"}], "name": "admin", "handle": "x", "age": 36}
    [one] = scrubbed(answer(value, url=f"{URL}api/me"))
    assert body(one) == value


def test_names_after_an_escape_are_found() -> None:
    one, two = scrubbed(
        answer({"firstName": "Ada"}, url=f"{URL}me"),
        answer(b"\\nAda a\\tAda %20Ada %2fAda %2FAda", mime="text/plain"),
    )
    assert "Ada" not in text(one)
    assert text(two) == "\\nRobin a\\tRobin %20Robin %2fRobin %2FRobin"


def test_a_name_within_a_word_or_number_is_kept() -> None:
    kept = "runAda xAda Adax 1Ada Ada1 20Ada"
    _, other = scrubbed(answer({"firstName": "Ada"}, url=f"{URL}me"), answer({"say": kept}))
    assert body(other) == {"say": kept}


def test_a_name_between_signs_is_found_within_a_word() -> None:
    _, other = scrubbed(answer({"login": "@Al."}, url=f"{URL}me"), answer({"say": "x@Al.y"}))
    assert body(other) == {"say": "xRobiny"}


def test_a_letter_before_a_name_is_part_of_its_word_also_at_the_beginning() -> None:
    _, other = scrubbed(
        answer({"firstName": "Ada"}, url=f"{URL}me"), answer(b"xAda", mime="text/plain")
    )
    assert text(other) == "xAda"


def test_a_text_may_begin_with_an_encoded_character_and_a_name() -> None:
    _, other = scrubbed(
        answer({"firstName": "Ada"}, url=f"{URL}me"), answer(b"%20Ada", mime="text/plain")
    )
    assert text(other) == "%20Robin"


def test_a_name_in_small_letters_stays_in_small_letters() -> None:
    [one] = scrubbed(answer({"login": "lovelace"}, url=f"{URL}me"))
    assert body(one) == {"login": "robin"}


def test_more_names_than_there_are_replacements_get_numbers() -> None:
    names = ["Abe", "Bea", "Cal", "Dee", "Eve", "Fay", "Gus", "Hal", "Ida", "Jan"]
    value = {"viewer": [], **{f"v{i}": {"viewer": {"name": name}} for i, name in enumerate(names)}}
    [one] = scrubbed(answer(value))
    after = [each["viewer"]["name"] for name, each in body(one).items() if name != "viewer"]
    first = ["Robin", "Sasha", "Noor", "Kim", "Alex", "Jamie", "Charlie", "Morgan"]
    assert after == [*first, "Robin2", "Sasha2"]


def test_a_name_of_two_words_that_are_not_names_is_kept() -> None:
    [one] = scrubbed(answer({"name": "Test User"}, url=f"{URL}me"))
    assert body(one) == {"name": "Test User"}


# --- rules, and messages ---


def test_users_add_members_texts_and_patterns() -> None:
    rules = Rules(
        members=("ssn", "x-acme-*"),
        texts=("Project Falcon",),
        patterns=(re.compile(r"ACME-\d{6}"),),
    )
    [one] = scrubbed(
        answer(
            {"ssn": "078-05-1120", "about": "Project Falcon, order ACME-123456"},
            sent_headers=[("X-Acme-Id", "1d1d1d1d")],
        ),
        rules=rules,
    )
    after = body(one)
    assert after["ssn"] != "078-05-1120"
    assert "Falcon" not in after["about"]
    assert "ACME" not in after["about"]
    assert "1d1d" not in str(one.request.headers)


def test_users_keep_names_and_texts() -> None:
    rules = Rules(keep=("token_type", "lang", "public-key-1", "x-key"))
    [one] = scrubbed(
        answer(
            {"token_type": "Ab12Cd34Ef", "token": "public-key-1"},
            headers=[("set-cookie", "lang=de_CH.utf8"), ("x-key", "Ab12Cd34Eg")],
        ),
        rules=rules,
    )
    assert body(one) == {"token_type": "Ab12Cd34Ef", "token": "public-key-1"}
    assert one.response is not None
    assert one.response.headers[1:] == [("set-cookie", "lang=de_CH.utf8"), ("x-key", "Ab12Cd34Eg")]


def test_what_was_taken_out_is_listed() -> None:
    exchange = answer({"token": "l1st3d_t0k", "again": "l1st3d_t0k"})
    after = scrub(Recording(URL, [exchange]))
    assert after.scrubbed == [Scrubbed("token", "token", "token-1", 2)]


def test_replacements_of_an_earlier_recording_are_not_used_again() -> None:
    earlier = [Scrubbed("token", "token", "token-1", 2)]
    after = scrub(Recording(URL, [answer({"token": "s3c0nd_t0k"})]), earlier=earlier)
    assert body(after.exchanges[0]) == {"token": "token-2"}


def test_replacements_of_an_earlier_recording_are_not_secret() -> None:
    me = answer({"name": "Ada", "token": "s3cr3t_t0k", "pin": 4711}, url=f"{URL}?token=s3cr3t_t0k")
    first = scrub(Recording(me.request.url, [replace(me, request=Request("GET", f"{URL}me"))]))
    again = scrub(first, earlier=first.scrubbed)
    assert (again.url, again.exchanges) == (first.url, first.exchanges)


def test_another_number_than_in_an_earlier_recording_becomes_another() -> None:
    first = scrub(Recording(URL, [answer({"phone": "5551234567"})]))
    other = scrub(Recording(URL, [answer({"phone": "5559876543"})]), earlier=first.scrubbed)
    assert body(first.exchanges[0]) != body(other.exchanges[0])


def test_each_step_is_reported() -> None:
    steps: list[int] = []
    recording = Recording(URL, [answer({}), answer({})], [RecordedSocket("wss://site.test/")])
    scrub(recording, step=lambda: steps.append(1))
    assert len(steps) == 6


def test_a_secret_that_becomes_distinct_is_replaced_everywhere() -> None:
    rules = Rules(texts=("lavender",))
    [one] = scrubbed(answer({"token": "lavender", "tea": "lavender"}), rules=rules)
    assert body(one) == {"token": "text-1", "tea": "text-1"}


def test_a_word_that_a_pattern_finds_after_its_holder_is_replaced_everywhere() -> None:
    rules = Rules(patterns=(re.compile("mistletoe"),))
    one, two = scrubbed(
        answer(headers=[("set-cookie", "a=mistletoe"), ("set-cookie", "b=mistletoe")]),
        answer({"tea": "mistletoe"}),
        rules=rules,
    )
    assert body(two)["tea"] != "mistletoe"
    assert one.response is not None
    assert "mistletoe" not in str(one.response.headers)


def test_what_is_not_secret_comes_through_unchanged() -> None:
    headers = [("Content-Type", "text/event-stream")]
    response = Response(203, "Fine", headers, b"data: x", [Event(1.0, "x", "message", "7")])
    recording = Recording(
        URL,
        [
            Exchange(Request("PUT", URL, [("A", "b")], b"c", "xhr"), response, None, 2.0, 3.0),
            Exchange(
                Request("GET", URL, [], b"", "image"), Response(200, "", [], None, []), "x", 4.0
            ),
        ],
        [RecordedSocket("wss://site.test/", 5.0, [Frame(6.0, True, "d"), Frame(7.0, False, b"e")])],
        [RecordedCall("mail_send", {"f": 1}, [2], None, 8.0, 9.0)],
        {"cookies": [], "origins": []},
        [],
    )
    assert scrub(recording) == recording


def test_what_is_not_text_or_deep_or_lost_comes_through() -> None:
    deep: Any = {"token": "d33p_t0k3n"}
    for _ in range(150):
        deep = {"a": deep}
    image = answer(b"\x89PNG s3cr3tInside", mime="image/png", kind="image")
    lost = Exchange(Request("GET", URL), Response(200, body=None))
    none = Exchange(Request("GET", URL), None, "net::ERR_FAILED")
    secret = answer({"secret": "s3cr3tInside", "x": [deep]})
    latin = answer(b'\xff{"n": 1}', mime="text/plain")

    one, two, three, four, five = scrubbed(image, lost, none, secret, latin)

    assert one.response is not None
    assert one.response.body == b"\x89PNG token-1token"
    assert two.response is not None
    assert two.response.body is None
    assert (three.response, three.error) == (None, "net::ERR_FAILED")
    assert body(four)["secret"] == "token-1"
    assert five.response is not None
    assert five.response.body == b'\xff{"n": 1}'


def test_a_secret_of_6_bytes_is_replaced_in_a_picture_and_counted() -> None:
    picture = answer(b"\x89 abc123 ab12! abc123", mime="image/png", kind="image")
    said = answer({"token": "abc123", "secret": "ab12!"})
    after = scrub(Recording(URL, [picture, said, picture]))
    assert after.exchanges[0].response is not None
    assert after.exchanges[0].response.body == b"\x89 token- ab12! token-"
    assert {each.where: each.count for each in after.scrubbed} == {"token": 5, "secret": 1}


def test_a_secret_that_contains_another_is_replaced_whole_in_a_picture() -> None:
    picture = answer(b"\x89 abc123def", mime="image/png", kind="image")
    one, _ = scrubbed(picture, answer({"pin": "abc123", "token": "abc123def"}))
    assert one.response is not None
    assert one.response.body == b"\x89 token-2to"


def test_the_first_url_is_scrubbed() -> None:
    url = f"{URL}?access_token=t0k3n_t0k3n"
    assert scrub(Recording(url, [answer(url=url)])).url == f"{URL}?access_token=token-1"


def test_a_word_in_two_cookies_is_replaced_in_both() -> None:
    [one] = scrubbed(
        answer({"tea": "mint"}, headers=[("set-cookie", "a=mint"), ("set-cookie", "b=mint")])
    )
    assert one.response is not None
    assert [value for _, value in one.response.headers[1:]] == ["a=cookie-1", "b=cookie-1"]
    assert body(one) == {"tea": "mint"}


def test_one_number_in_two_forms_stays_one_number() -> None:
    after = page("<p>+14155552671 +1 415 555 2671")
    first, second = re.fullmatch(r"<p>\+(\d+) \+([\d ]+)", after).groups()  # type: ignore[union-attr]
    assert first == second.replace(" ", "")
    assert first != "14155552671"


def test_a_picture_without_a_secret_and_a_call_without_a_value_come_through() -> None:
    picture = answer(b"\x89PNG", mime="image/png", kind="image")
    recording = Recording(
        URL, [picture, answer({"secret": "s3cr3tInside"})], calls=[RecordedCall("x")]
    )
    after = scrub(recording)
    [one, _] = after.exchanges
    assert one.response is not None
    assert one.response.body == b"\x89PNG"
    assert after.calls == [RecordedCall("x")]


def test_a_short_secret_that_is_not_a_word_is_replaced_everywhere() -> None:
    [one] = scrubbed(answer({"password": "a b!", "hint": "is a b! or so"}))
    assert body(one) == {"password": "token-1", "hint": "is token-1 or so"}


def test_a_text_that_users_name_is_replaced_within_words_too() -> None:
    [one] = scrubbed(answer({"at": "acmecorp.test"}), rules=Rules(texts=("acme",)))
    assert body(one) == {"at": "text-1corp.test"}


def test_a_name_of_two_letters_is_replaced_where_it_is_held() -> None:
    me, other = scrubbed(
        answer({"name": "Al", "city": "Al"}, url=f"{URL}me"), answer({"about": "Al is a name"})
    )
    assert body(me) == {"name": "Robin", "city": "Al"}
    assert body(other) == {"about": "Al is a name"}


SECRET = 'k3y/é"<@Ω'
JSON = json.dumps(SECRET)[1:-1]
READABLE = json.dumps(SECRET, ensure_ascii=False)[1:-1]


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        JSON,
        json.dumps(JSON)[1:-1],
        READABLE,
        READABLE.replace("/", "\\/"),
        html.escape(SECRET),
        html.escape(SECRET).replace("@", "&#64;"),
        html.escape(SECRET).replace("@", "&#x40;"),
        JSON.replace("@", "\\u0040"),
    ],
)
def test_a_secret_is_replaced_however_it_is_written(written: str) -> None:
    _, other = scrubbed(
        answer({"token": SECRET}), answer(f"is ({written})".encode(), mime="text/plain")
    )
    assert text(other) == "is (token-1)"


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def base64url_of(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("encode", [base64_of, base64url_of])
def test_a_secret_in_base64_is_replaced_in_base64(encode: Callable[[str], str]) -> None:
    _, other = scrubbed(
        answer({"token": SECRET}), answer(f"is ({encode(SECRET)})".encode(), mime="text/plain")
    )
    assert text(other) == f"is ({encode('token-1')})"
