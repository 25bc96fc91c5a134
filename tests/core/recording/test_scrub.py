"""Scrubbing of recordings: what counts as a secret, and its placeholder."""

import base64
import gzip
import json
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
)
from opentabs_py.core.recording.scrub import scrub
from opentabs_py.core.recording.scrub_rules import ScrubRules
from tests.core.recording.scrubbing import URL, answer, body, page, scrubbed, text

# --- where secrets are ---


def test_cookies_are_replaced_in_both_directions_and_wherever_else_they_are() -> None:
    first = answer(headers=[("Set-Cookie", "sid=Ab12Cd34Ef; Path=/; HttpOnly\nlang=en")])
    second = answer({"debug": "Ab12Cd34Ef"}, sent_headers=[("cookie", 'sid="Ab12Cd34Ef"; lang=en')])

    one, two = scrubbed(first, second)

    assert one.response is not None
    assert one.response.headers[1][1] == "sid=cookie-1; Path=/; HttpOnly\nlang=en"
    assert two.request.headers == [("cookie", 'sid="cookie-1"; lang=en')]
    assert body(two) == {"debug": "cookie-1"}


def test_a_long_token_is_replaced_in_whatever_encoding_it_appears() -> None:
    token = '"\\/@' * 300
    [one] = scrubbed(answer({"token": token, "debug": f"the {token}, {quote(token)}, {token[1:]}"}))
    assert body(one) == {"token": "token-1", "debug": f"the token-1, token-1, {token[1:]}"}


def test_tokens_that_begin_with_each_other_are_told_apart() -> None:
    tokens = ["Ab12Cd34" + "x" * n for n in range(600)]  # more than Python's stack can hold
    [one] = scrubbed(answer({"token": tokens, "again": tokens[::-1]}))
    found = body(one)
    assert found["token"] == found["again"][::-1]
    assert len({*found["token"]}) == 600
    assert "Cd34" not in text(one)


def test_a_token_is_found_where_a_longer_one_only_seems_to_begin() -> None:
    short = "Ab12Cd34"
    longer = [f"{before}{short}{'x' * 40}" for before in ("", "q")]
    cut = " ".join(each[:36] for each in longer)
    [one] = scrubbed(answer({"token": [short, *longer], "debug": cut}))
    assert short not in text(one)


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


@pytest.mark.parametrize("value", ["eyJpdiI6IkFCQ0RFRkd+/abc==", "two words", "k3yOf-Someone9"])
def test_a_cookie_is_the_same_where_a_page_sends_it_decoded(value: str) -> None:
    cookie = [("cookie", f"XSRF-TOKEN={quote(value, safe='')}")]
    headers = [*cookie, ("x-xsrf-token", value)]
    [one] = scrubbed(answer(sent=f"_token={value}".encode(), sent_headers=headers))
    assert one.request.headers == [("cookie", "XSRF-TOKEN=cookie-1"), ("x-xsrf-token", "cookie-1")]
    assert one.request.body == b"_token=cookie-1"


def test_a_cookie_that_is_percent_encoded_in_part_is_replaced() -> None:
    [one] = scrubbed(answer(sent_headers=[("cookie", "sid=a%7Eb~c%20k3y/%2F")]))
    assert one.request.headers == [("cookie", "sid=cookie-1")]


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


@pytest.mark.parametrize(
    "headers",
    [[], [("content-type", "text/plain")], [("Content-Type", "text/plain;charset=UTF-8")]],
)
@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        ("user=x&password=", "hunter%212", "&n=1"),
        ("password=", "hunter!2", ""),
        ("user[name]=&user[password]=", "hunter!2=", "&n="),
        ("имя=ж&password=", "my+correct+horse", ""),
        ("password=", "my correct horse", "&n=ж"),
        ("password=", "mint", "&n=1"),
        ("password=", "hunter!2", "&n&"),
    ],
)
def test_a_form_that_is_sent_as_plain_text_is_scrubbed(
    headers: Headers, before: str, typed: str, after: str
) -> None:
    sent = f"{before}{typed}{after}".encode()
    [one] = scrubbed(answer(sent=sent, sent_headers=headers))
    assert one.request.body == f"{before}token-1{after}".encode()


@pytest.mark.parametrize(
    "kept", ["n=1\npassword=hunter!2", "my password=hunter!2", "=hunter!2&a=b"]
)
def test_plain_text_that_is_not_a_form_is_kept(kept: str) -> None:
    [one] = scrubbed(answer(sent=kept.encode(), sent_headers=[("content-type", "text/plain")]))
    assert one.request.body == kept.encode()


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
        ("application/xml", "<x:Password type='a'>\n", "</x:Password>"),
        ("application/json", '{"query": "{login(password: \\"', '\\")}"}'),
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


@pytest.mark.parametrize("mime", ["application/octet-stream", "application/json", ""])
def test_what_a_page_compresses_is_scrubbed_and_compressed_again(mime: str) -> None:
    said = {"token": "z1pp3dInside", "n": "z1pp3dInside"}
    zipped = gzip.compress(json.dumps(said).encode())
    after = scrub(Recording(URL, [answer(zipped, mime=mime, sent=zipped)]))
    [one] = after.exchanges
    assert one.response is not None
    assert one.response.body is not None
    for each in (one.response.body, one.request.body):
        assert json.loads(gzip.decompress(each)) == {"token": "token-1", "n": "token-1"}
    assert [each.count for each in after.scrubbed] == [4]


def test_bytes_that_a_page_compresses_keep_their_number() -> None:
    zipped = answer(gzip.compress(b"\x00z1pp3dInside\xff"), mime="application/octet-stream")
    [one, _] = scrubbed(zipped, answer({"token": "z1pp3dInside"}))
    assert one.response is not None
    assert gzip.decompress(one.response.body or b"") == b"\x00token-1token\xff"


@pytest.mark.parametrize(
    "raw",
    [
        gzip.compress(b"nothing of note", compresslevel=1),
        gzip.compress(b""),
        gzip.compress(b"password=Tr0ub4dor&3" * 9)[:-9],
        gzip.compress(b"password=Tr0ub4dor&3") + b"\xffmore",
        b"\x1f\x8b\x08\x00password=Tr0ub4dor&3",
    ],
    ids=["no secret", "empty", "cut", "with more after it", "only the beginning is gzip"],
)
def test_what_has_no_secret_or_is_not_whole_stays_as_it_is(raw: bytes) -> None:
    [after] = scrubbed(answer(raw, mime="application/octet-stream"))
    assert after.response is not None
    assert after.response.body == raw


def test_what_is_larger_than_a_recorded_body_may_be_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = gzip.compress(b'{"token": "z1pp3dInside"}')
    monkeypatch.setattr("opentabs_py.core.recording.gzipped.LARGEST_BODY", 24)
    [after] = scrubbed(answer(raw, mime="application/octet-stream"))
    assert after.response is not None
    assert after.response.body == raw


def test_a_name_that_was_cut_within_a_character_loses_no_recording() -> None:
    me = answer({"user": {"display_name": "Bob Stone \ud83d"}}, url=f"{URL}api/me")
    other = answer(b"\x00\xff Bob", mime="image/png")
    [after, _] = scrubbed(me, other)
    assert "Stone" not in text(after)


@pytest.mark.parametrize(
    "value", ["abcdef1234567890", ["abcdef1234567890"], {"access": "abcdef1234567890", "n": 5}]
)
def test_json_stays_json_where_it_equals_what_the_browser_keeps_as_a_secret(value: Any) -> None:
    storage = [{"name": "token", "value": json.dumps(value)}]
    state = {"cookies": [], "origins": [{"origin": "https://site.test", "localStorage": storage}]}
    call = RecordedCall("chat_session", {}, {"session": value})
    exchange = answer({"session": value})
    after = scrub(Recording(URL, [exchange], calls=[call], storage_state=state))
    hidden = json.loads(json.dumps(value).replace("abcdef1234567890", "token-1"))
    assert after.calls[0].value == {"session": hidden}
    assert body(after.exchanges[0]) == {"session": hidden}
    assert after.storage_state is not None
    assert json.loads(after.storage_state["origins"][0]["localStorage"][0]["value"]) == hidden


def test_a_secret_that_looks_like_the_syntax_of_json_loses_no_call_and_hides_no_other() -> None:
    odd = answer(sent_headers=[("x-api-key", '": ["a')])
    value = {
        "list": ["a", "b", None, True, 1.5],
        "pin": 4711,  # like the password, it is secret only where it is held
        "phone": 5551234567,
        "password": "correcthorse",
        "passwords": ["correcthorse"],
        "topic": "correcthorse",
    }
    [call] = scrub(Recording(URL, [odd], calls=[RecordedCall("chat_list", {}, value)])).calls
    assert call.value["list"] == value["list"]
    assert call.value["pin"] not in (4711, "4711")
    assert call.value["phone"] != 5551234567
    assert call.value["password"] == call.value["passwords"][0] == "token-2"
    assert call.value["topic"] == "correcthorse"


def test_a_text_of_the_rules_is_secret_as_a_whole_even_if_it_is_json() -> None:
    exchange = answer(b'See ["Acme"], not Acme.', mime="text/plain")
    [after] = scrub(Recording(URL, [exchange]), ScrubRules(texts=('["Acme"]',))).exchanges
    assert text(after) == "See text-1, not Acme."


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


@pytest.mark.parametrize("declaration", ["<![foo[x]]>", "<![CDATA["])
def test_what_follows_a_malformed_declaration_is_scrubbed(declaration: str) -> None:
    after = page(f'{declaration}<p><input name="authenticity_token" value="f13ldf13ld">')
    assert after == f'{declaration}<p><input name="authenticity_token" value="csrf-token-1">'


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


def test_a_word_in_a_header_of_stomp_is_replaced_there() -> None:
    message = "CONNECT\npasscode:mint\nlogin:sage\n\nmint\0"
    socket = RecordedSocket("wss://site.test/", frames=[Frame(0.0, True, message)])
    after = scrub(Recording(URL, sockets=[socket]))
    [frame] = after.sockets[0].frames
    assert frame.data == "CONNECT\npasscode:token-1\nlogin:sage\n\nmint\0"


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
    state = {"cookies": [], "origins": [{"origin": "https://site.test", "localStorage": storage}]}
    recording: Any = {member: state}
    after = getattr(scrub(Recording(URL, [], **recording)), member)
    assert [each["value"] for each in after["origins"][0]["localStorage"]] == ["token-1", "5001"]


@pytest.mark.parametrize("member", ["storage_state", "storage_at_end"])
def test_the_state_of_the_browser_is_scrubbed(member: str) -> None:
    state: Any = {
        "cookies": [
            {"name": "sid", "value": "st4t3c00k13", "domain": "site.test"},
            {"name": "theme", "value": "dark", "domain": "site.test"},
        ],
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


@pytest.mark.parametrize("member", ["storage_state", "storage_at_end"])
def test_the_state_of_sites_that_do_not_occur_is_left_out(member: str) -> None:
    own = ["site.test", ".site.test", "api.cdn.test", ".cdn.test", "[::1]"]
    other = ["bank.test", ".bank.test", "cdn.test", "www.site.test", ".www.site.test"]
    stored = [{"name": "draft", "value": "7"}]
    origins = ["https://site.test", "http://[::1]:8000"]
    state: Any = {
        "cookies": [{"name": "acct", "value": "77", "domain": each} for each in [*own, *other]],
        "origins": [
            {"origin": each, "localStorage": stored}
            for each in [*origins, "https://bank.test", "http://site.test"]
        ],
    }
    exchanges = [answer(url="http://[::1]:8000/a")]
    recording = Recording(URL, exchanges, [RecordedSocket("wss://api.cdn.test/")])
    after = getattr(scrub(replace(recording, **{member: state})), member)
    assert [each["domain"] for each in after["cookies"]] == own
    assert [each["origin"] for each in after["origins"]] == origins
