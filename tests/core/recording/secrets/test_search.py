"""Which parts of a recording are secret, of which kind, and what contains them."""

import base64
import json
from typing import Any

import pytest

from opentabs_py.core.recording.exchange import (
    Exchange,
    Frame,
    Headers,
    RecordedCall,
    RecordedSocket,
    Recording,
    Request,
    Response,
)
from opentabs_py.core.recording.scrub_rules import ScrubRules
from opentabs_py.core.recording.secrets.forms import Kind
from opentabs_py.core.recording.secrets.search import find_secrets

URL = "https://site.test/"
ME = "https://site.test/api/me"
SECRET = "k3yOfSomeone9"  # recognized only by the name of what contains it
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=x"


def asked(
    url: str = URL, headers: Headers = (), body: bytes = b"", kind: str = "fetch", mime: str = JSON
) -> Recording:
    """A recording of one request."""
    request = Request("POST", url, [("Content-Type", mime), *headers], body, kind)
    return Recording(URL, [Exchange(request, None)])


def answered(
    body: Any, *, url: str = URL, mime: str = JSON, headers: Headers = (), kind: str = "fetch"
) -> Recording:
    """A recording of one response."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = Response(200, "OK", [("Content-Type", mime), *headers], raw)
    return Recording(URL, [Exchange(Request("GET", url, [], b"", kind), response)])


def stored(**state: Any) -> Recording:
    return Recording(URL, storage_state=state)


def found(
    recording: Recording, rules: ScrubRules | None = None
) -> dict[str, tuple[Kind, str, bool]]:
    """Return the secrets: their kind, what first contained them, and whether secret everywhere."""
    secrets = find_secrets(recording, rules or ScrubRules())
    return {each.text: (each.kind, each.where, each.is_distinct) for each in secrets}


def socket(data: str | bytes) -> Recording:
    """A recording of a WebSocket message."""
    return Recording(
        URL, sockets=[RecordedSocket("wss://site.test/", frames=[Frame(0.0, True, data)])]
    )


def multipart(name: str, value: str) -> bytes:
    head = f'--x\r\nContent-Disposition: form-data; name="{name}"\r\nContent-Type: text/plain'
    return f"{head}\r\n\r\n{value}\r\n--x--\r\n".encode()


def basic(credentials: str) -> Headers:
    return [("Authorization", f"Basic {base64.b64encode(credentials.encode()).decode()}")]


TOKEN: tuple[Kind, str, bool] = ("token", "token", True)


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(asked(f"{URL}?token={SECRET}"), id="a query"),
        pytest.param(asked(f"{URL}#token={SECRET}"), id="a fragment, as sign-in redirects have it"),
        pytest.param(Recording(f"{URL}#token={SECRET}"), id="the fragment of the first URL"),
        pytest.param(asked(headers=[("Location", f"/next?token={SECRET}")]), id="a header's URL"),
        pytest.param(asked(headers=[("token", SECRET)]), id="a header"),
        pytest.param(asked(body=f"token={SECRET}".encode(), mime=FORM), id="a form"),
        pytest.param(asked(body=multipart("token", SECRET), mime=PARTS), id="a form's part"),
        pytest.param(
            asked(body=multipart("a", f'{{"token": "{SECRET}"}}'), mime=PARTS), id="JSON in a part"
        ),
        pytest.param(
            asked(
                body=multipart("a", "").replace(b"\r\n\r\n", b"\r\n\r\n\xff")
                + multipart("token", SECRET),
                mime=PARTS,
            ),
            id="a part beside bytes that are not text",
        ),
        pytest.param(
            asked(body=multipart("token", SECRET).replace(b'"', b""), mime=PARTS),
            id="a part whose name has no quotation marks",
        ),
        pytest.param(answered({"token": SECRET}), id="a member"),
        pytest.param(answered({"a": [{"b": {"token": SECRET}}]}), id="a member within others"),
        pytest.param(answered({"token": [SECRET]}), id="a list that is named"),
        pytest.param(answered({"token": [1, [SECRET]]}), id="a list within a list"),
        pytest.param(
            answered(f'f({{a: 1, "token": ["{SECRET}"]}})'.encode(), mime="text/plain"),
            id="a program's list",
        ),
        pytest.param(answered({"a": f' {{"token": "{SECRET}"}}'}), id="JSON within JSON"),
        pytest.param(answered([f'[{{"token": "{SECRET}"}}]']), id="JSON within a list"),
        pytest.param(
            asked(f"{URL}?variables=%7B%22token%22%3A%22{SECRET}%22%7D"), id="JSON in a query"
        ),
        pytest.param(
            asked(body=f"variables=%7B%22token%22%3A%22{SECRET}%22%7D".encode(), mime=FORM),
            id="JSON in a form",
        ),
        pytest.param(asked(f"{URL}?%7B%22token%22%3A%22{SECRET}%22%7D"), id="a query that is JSON"),
        pytest.param(
            asked(headers=[("X-Props", f'{{"token": "{SECRET}"}}')]), id="JSON in a header"
        ),
        pytest.param(
            asked(headers=[("X-Props", f"%5b%7b%22token%22%3A%22{SECRET}%22%7d%5d")]),
            id="percent-encoded JSON in a header",
        ),
        pytest.param(answered({"name": "token", "value": SECRET}), id="a name beside its value"),
        pytest.param(answered({"key": "token", "value": SECRET}), id="a key beside its value"),
        pytest.param(
            answered({"name": "a", "value": f'{{"token": "{SECRET}"}}'}), id="JSON beside its name"
        ),
        pytest.param(
            answered(f'data: {{"token": "{SECRET}"}}\n\n'.encode(), mime="text/event-stream"),
            id="a stream's event",
        ),
        pytest.param(
            answered(f'<script>x = {{"token": "{SECRET}"}}</script>'.encode(), mime="text/html"),
            id="a page's script",
        ),
        pytest.param(
            answered(f'<input name="token" value="{SECRET}">'.encode(), mime="text/html"),
            id="a page's field",
        ),
        pytest.param(
            answered(f'<input name="token" value="{SECRET}"/>'.encode(), mime="application/xml"),
            id="a document's element",
        ),
        *(
            pytest.param(answered(html.encode(), mime="text/html"), id=html)
            for html in (
                f'<input id="token" value="{SECRET}">',
                f'<button name="token" value="{SECRET}">',
                f'<textarea name="token">{SECRET}</textarea>',
                f'<meta name="token" content="{SECRET}">',
                f'<meta property="token" content="{SECRET}">',
                f'<p data-token="{SECRET}">',
                f'<p data-props=\'{{"token": "{SECRET}"}}\'>',
            )
        ),
        pytest.param(
            answered(f'var a = 1, b = [{{"token": "{SECRET}"}}]'.encode(), mime="text/plain"),
            id="a program's value",
        ),
        pytest.param(
            answered(
                rf'f({{a: 1, "props": "{{\"token\":\"{SECRET}\"}}"}})'.encode(), mime="text/plain"
            ),
            id="JSON in a program's string",
        ),
        pytest.param(
            answered(rf'f({{"a": "\x41", "token": "{SECRET}"}})'.encode(), mime="text/plain"),
            id="a value after one that is not JSON",
        ),
        pytest.param(
            stored(origins=[{"localStorage": [{"name": "token", "value": SECRET}]}]),
            id="the storage",
        ),
        pytest.param(
            stored(
                origins=[{"localStorage": [{"name": "a", "value": f'{{"token": "{SECRET}"}}'}]}]
            ),
            id="a value of the storage",
        ),
        pytest.param(
            stored(
                origins=[
                    {"localStorage": [{"name": "a", "value": f'v1|{{"token": "{SECRET}"}}'}]},
                    {"origin": URL},
                ]
            ),
            id="a value of the storage that is not JSON",
        ),
        pytest.param(
            Recording(URL, sockets=[RecordedSocket(f"wss://site.test/?token={SECRET}")]),
            id="a WebSocket's address",
        ),
        pytest.param(socket(f'{{"token": "{SECRET}"}}'), id="a WebSocket's text"),
        pytest.param(
            socket(f'\xff{{"token": "{SECRET}"}}'.encode("latin-1")), id="a WebSocket's bytes"
        ),
        *(
            pytest.param(answered({"a": text}), id=f"in a string: {text}")
            for text in (
                f"https://other.test/next?a=1&token={SECRET}",
                f"https://other.test/next#token={SECRET}&a=1",
                f'mutation {{ login(user: "ada", token: "{SECRET}") {{ id }} }}',
                f"see {{token: '{SECRET}'}}",
            )
        ),
        pytest.param(
            asked(f"{URL}?to=https%3A%2F%2Fother.test%2F%3Ftoken%3D{SECRET}"), id="a URL in a query"
        ),
        pytest.param(
            answered(f'<a href="/out?a=1&amp;token={SECRET}">'.encode(), mime="text/html"),
            id="a link",
        ),
        pytest.param(
            answered(f"<a><x:token>{SECRET}</x:token></a>".encode(), mime="application/xml"),
            id="an element",
        ),
        pytest.param(
            answered(f'{{"a": 1}}\n{{"token": [1, ["{SECRET}"]]}}\n'.encode(), mime="text/plain"),
            id="a line",
        ),
        pytest.param(
            answered(
                f'f.push([1, "2:{{\\"token\\":\\"{SECRET}\\"}}"])'.encode(), mime="text/plain"
            ),
            id="a string in a program's JSON",
        ),
        *(
            pytest.param(socket(text), id=f"a message: {text!r}")
            for text in (
                f"a=1&token={SECRET}",
                f'a["{{\\"token\\":\\"{SECRET}\\"}}"]',
                f'42/chat,["login",{{"token":["{SECRET}"]}}]',
                f'for(;;);[1,"{{\\"token\\":\\"{SECRET}\\"}}"]',
                f"CONNECT\nlogin:1\ntoken:{SECRET}\n\n\0",
            )
        ),
        pytest.param(
            Recording(URL, calls=[RecordedCall("a_tool", {"url": f"{URL}?token={SECRET}"})]),
            id="an argument's URL",
        ),
        pytest.param(
            Recording(URL, calls=[RecordedCall("a_tool", {"token": SECRET})]), id="an argument"
        ),
        pytest.param(
            Recording(URL, calls=[RecordedCall("a_tool", value={"token": SECRET})]), id="a result"
        ),
        pytest.param(
            Recording(URL, calls=[RecordedCall("a_tool", error={"token": SECRET})]), id="an error"
        ),
    ],
)
def test_a_token_is_found_in_every_part_of_a_recording(recording: Recording) -> None:
    assert found(recording) == {SECRET: TOKEN}


@pytest.mark.parametrize("name", ["pin[]", "pin[0]", "user[pin]", "user[0][pin][]", "pins[token]"])
def test_a_field_of_a_form_is_secret_by_the_end_of_its_name(name: str) -> None:
    expected = {SECRET: ("token", name, True)}
    assert found(asked(body=f"{name}={SECRET}".encode(), mime=FORM)) == expected
    assert found(asked(body=multipart(name, SECRET), mime=PARTS)) == expected
    assert found(asked(body=multipart(name, SECRET), mime=PARTS), ScrubRules(keep=("*",))) == {}


def test_a_field_within_a_pin_is_not_a_pin() -> None:
    assert found(asked(body=f"pin[0][label]={SECRET}".encode(), mime=FORM)) == {}


def test_all_lines_of_a_form_s_part_are_secret() -> None:
    key = "-----BEGIN KEY-----\r\nMIIB\r\n\r\nAAA="
    expected = {key: ("token", "private_key", True)}
    assert found(asked(body=multipart("private_key", key), mime=PARTS)) == expected


def test_names_and_numbers_in_a_form_are_known_by_the_end_of_their_names() -> None:
    given = asked(ME, body=b"user[name]=Ada&user[tel]=5551234567", mime=FORM)
    assert found(given) == {
        "Ada": ("name", "user[name]", True),
        "5551234567": ("phone number", "user[tel]", True),
    }


def test_of_an_object_under_a_secrets_name_only_what_is_the_secret_is_one() -> None:
    token = {"value": SECRET, "kind": "Personal9Token", "uses": 123456, "current": True}
    assert found(answered({"token": token})) == {SECRET: ("token", "value", True)}
    assert found(answered({"token": [{"Plain_Text": SECRET}]})).keys() == {SECRET}
    assert found(answered({"pin": {"old": 4729}})) == {"4729": ("token", "old", False)}
    assert found(answered({"token": token}), ScrubRules(keep=("value",))) == {}
    assert found(answered({"title": {"value": SECRET}})) == {}


@pytest.mark.parametrize("value", [["+1 555 123 4567"], [5551234567]])
def test_a_number_in_a_list_of_phones_is_a_phone_number(value: Any) -> None:
    assert [kind for kind, _, _ in found(answered({"phones": value})).values()] == ["phone number"]


@pytest.mark.parametrize("name", ["Authorization", "Proxy-Authorization"])
def test_authorization_is_secret_everywhere_however_short(name: str) -> None:
    expected = ("authorization", "authorization", True)
    assert found(asked(headers=[(name, "Bearer ab1")])) == {"ab1": expected}


def test_of_basic_authorization_the_user_is_a_name_and_the_password_all_that_follows() -> None:
    headers = basic("lovelace:a:b")
    token = headers[0][1].removeprefix("Basic ")
    expected = ("authorization", "authorization", True)
    assert found(asked(headers=headers)) == {
        token: expected,
        "lovelace": ("name", "authorization", True),
        "a:b": expected,
    }


@pytest.mark.parametrize(("value", "is_distinct"), [("verbena", False), ("lavender", True)])
def test_a_word_of_8_letters_in_a_parameter_of_authorization_is_secret_everywhere(
    value: str, is_distinct: bool
) -> None:
    given = f'Digest realm="site", cnonce="{value}", nc="00000001"'
    secrets = found(asked(headers=[("Authorization", given)]))
    assert secrets[value] == ("authorization", "cnonce", is_distinct)
    assert "site" not in secrets


def test_user_and_password_in_an_address_are_authorization() -> None:
    expected = ("authorization", "address", True)
    given = asked("https://ada%4099:pa55%3Aword@site.test/")
    assert found(given) == {"ada@99": expected, "pa55:word": expected}


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(answered({"name": "Ada Lovelace"}, url=ME), id="an answer about oneself"),
        pytest.param(asked(ME, body=b'{"name": "Ada Lovelace"}'), id="a request about oneself"),
        pytest.param(asked(ME, body=b"name=Ada+Lovelace", mime=FORM), id="a form about oneself"),
        pytest.param(
            asked(ME, body=multipart("name", "Ada Lovelace"), mime=PARTS), id="a part about oneself"
        ),
        pytest.param(answered({"viewer": {"name": "Ada Lovelace"}}), id="a member about oneself"),
        pytest.param(
            Recording(URL, calls=[RecordedCall("chat_me", {"name": "Ada Lovelace"})]),
            id="an argument about oneself",
        ),
        pytest.param(
            answered({"data": '{"name": "Ada Lovelace"}'}, url=ME), id="JSON within such an answer"
        ),
        pytest.param(
            answered({"data": {"name": "Ada Lovelace"}}, url=ME), id="the data of such an answer"
        ),
        pytest.param(
            answered(b'data: {"name": "Ada Lovelace"}\n\n', url=ME, mime="text/event-stream"),
            id="an event about oneself",
        ),
        pytest.param(
            answered(b'data:{"name": "Ada Lovelace"}\n\n', url=ME, mime="text/event-stream"),
            id="an event without a space",
        ),
        pytest.param(
            Recording(URL, calls=[RecordedCall("chat_whoami", value={"name": "Ada Lovelace"})]),
            id="a tool about oneself",
        ),
    ],
)
def test_the_name_of_the_user_is_found_in(recording: Recording) -> None:
    everywhere = ("name", "name", True)
    assert found(recording) == {
        "Ada Lovelace": everywhere,
        "Ada": everywhere,
        "Lovelace": everywhere,
    }


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(answered({"name": "Ada Lovelace"}), id="an answer about others"),
        pytest.param(answered({"friends": [{"name": "Ada Lovelace"}]}, url=ME), id="a list"),
        pytest.param(answered({"friend": {"name": "Ada Lovelace"}}, url=ME), id="a friend"),
        pytest.param(
            answered({"name": "Ada Lovelace"}, url=f"{ME}/friends/7"), id="an answer about a friend"
        ),
        pytest.param(answered({"user": {"name": "Ada Lovelace"}}), id="some user"),
        pytest.param(
            answered(b'f({a: 1, "name": "Ada Lovelace"})', url=ME, mime="text/plain"),
            id="a member in a program",
        ),
        pytest.param(
            answered(b'x = {"name": "Ada Lovelace"};', url=ME, mime="text/plain"),
            id="a program's value",
        ),
        pytest.param(
            answered(b'<input name="name" value="Ada Lovelace">', url=ME, mime="text/html"),
            id="a page's field",
        ),
        pytest.param(socket('{"name": "Ada Lovelace"}'), id="a WebSocket's text"),
        pytest.param(asked(headers=[("X-A", '{"name": "Ada Lovelace"}')]), id="a header's JSON"),
        pytest.param(answered([{"name": "Ada Lovelace"}], url=ME), id="an answer that is a list"),
        pytest.param(answered({"session": [{"name": "Ada Lovelace"}]}), id="a list of sessions"),
        pytest.param(answered({"name": ["Ada Lovelace"]}, url=ME), id="a list of names"),
        pytest.param(asked(f"{ME}?name=Ada+Lovelace"), id="a query"),
        pytest.param(asked(body=b'{"name": "Ada Lovelace"}'), id="a request about others"),
        pytest.param(
            answered({"name": "name", "value": "Ada Lovelace"}, url=URL), id="a name and its value"
        ),
        pytest.param(
            Recording(URL, calls=[RecordedCall("chat_list", value={"name": "Ada Lovelace"})]),
            id="a tool about others",
        ),
        pytest.param(
            stored(origins=[{"localStorage": [{"name": "name", "value": "Ada Lovelace"}]}]),
            id="the storage",
        ),
    ],
)
def test_a_name_is_not_a_secret_in(recording: Recording) -> None:
    assert found(recording) == {}


def test_json_that_is_not_percent_encoded_may_have_percent_signs() -> None:
    assert [*found(answered({"a": '{"token": "k3y%41Of%22"}'}))] == ["k3y%41Of%22"]


def test_a_string_that_only_begins_like_json_is_searched_for_forms() -> None:
    expected = {"ada@lovelace.org": ("e-mail address", "text", True)}
    assert found(answered({"say": "[hello ada@lovelace.org"})) == expected
    assert found(answered(["[" * 100_000, "{ada@lovelace.org}"])) == expected


def test_json_that_is_too_deep_is_secret_too() -> None:
    deep = '{"a":' * 99_999
    token = f"eyJhbGciOiJub25lIn0.{base64.urlsafe_b64encode(deep.encode()).decode()}.x"
    given = asked(
        headers=[("Cookie", f"sid={deep}"), ("X-A", token), ("X-B", deep)],
        body=f"data: {deep}".encode(),
    )
    assert [kind for kind, _, _ in found(given).values()] == ["cookie", "JSON Web Token"]


def test_lists_within_each_other_are_searched_to_some_depth() -> None:
    deep = json.dumps({"token": SECRET})
    assert found(answered(f"{'[' * 50}{deep}{']' * 50}".encode())) == {SECRET: TOKEN}
    assert found(answered(f"{'[' * 450}{deep}{']' * 450}".encode())) == {}


@pytest.mark.parametrize(
    "page",
    [
        f'<textarea name="token"></textarea><p>{SECRET}',
        f'<button name="token">{SECRET}</button>',
        '<input name="token"><input type="password"><meta name="csrf-token">',
        "<input name=token value><input type=password value><meta name=csrf-token content>",
    ],
)
def test_a_field_without_a_value_has_no_secret(page: str) -> None:
    assert found(answered(page.encode(), mime="text/html")) == {}


def test_the_value_of_a_field_has_no_entities() -> None:
    page = '<textarea name="token">k3y&amp;9x</textarea><input name="pin" value="k3y&lt;9y">'
    assert [*found(answered(page.encode(), mime="text/html"))] == ["k3y&9x", "k3y<9y"]


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ('<a href="tel:020%201234567">', {"020 1234567": ("phone number", "tel", True)}),
        ('<a href="tel:112">', {}),
        ('<a href="/1234567"><a title="tel:1234567">', {}),
    ],
)
def test_a_link_to_a_phone_has_its_number(
    link: str, expected: dict[str, tuple[Kind, str, bool]]
) -> None:
    assert found(answered(link.encode(), mime="text/html")) == expected


@pytest.mark.parametrize("length", range(3, 9))
def test_claims_of_any_length_say_who_is_signed_in(length: int) -> None:
    name = "Abcdefgh"[:length]
    claims = base64.urlsafe_b64encode(json.dumps({"name": name}).encode()).decode().rstrip("=")
    assert name in found(answered({"t": f"eyJhbGciOiJub25lIn0.{claims}.x"}))


@pytest.mark.parametrize("value", ["Pa55", "word"])
def test_a_password_in_a_page_is_secret_everywhere(value: str) -> None:
    page = f'<input type="password" value="{value}">'
    assert found(answered(page.encode(), mime="text/html")) == {value: ("token", "password", True)}


def test_the_data_of_a_page_may_be_about_its_user() -> None:
    page = '<script type="application/json">{"viewer": {"name": "Ada"}}</script>'
    expected = {"Ada": ("name", "name", True)}
    assert found(answered(page.encode(), mime="text/html")) == expected


@pytest.mark.parametrize(("name", "expected"), [("Al", False), ("Ada", True), ("jo5", True)])
def test_a_name_of_two_letters_is_secret_only_where_it_is_held(name: str, expected: bool) -> None:
    own = {name: ("name", "name", expected)}
    assert found(answered({"name": name}, url=ME)) == own


@pytest.mark.parametrize("header", ["Cookie", "Set-Cookie"])
def test_a_cookie_begins_after_the_first_sign_of_equality(header: str) -> None:
    value = "c2VjcmV0PQ=="
    assert found(asked(headers=[(header, f'sid="{value}"; Path=/')])) == {
        value: ("cookie", "sid", True)
    }


def test_a_cookie_is_about_its_user() -> None:
    value = '{"name":"Ada"}'
    secrets = found(asked(headers=[("Cookie", f"seen=1; who={value}")]))
    assert secrets == {"Ada": ("name", "name", True)}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (json.dumps(SECRET), "authToken"),
        (json.dumps([SECRET]), "authToken"),
        (json.dumps({"value": {"a": [SECRET]}, "expires": 7, "is_valid": True}), "a"),
        (json.dumps({"to": "2026-01-31T10:00:00.5Z", "at": URL, "is": SECRET}), "is"),
        (json.dumps({"day": "2026-01-31", "at": "https://api.site.test/a?b", "is": SECRET}), "is"),
        (json.dumps(json.dumps({"is": SECRET})), "is"),
    ],
)
def test_of_json_that_is_secret_each_string_is(text: str, where: str) -> None:
    storage = [{"name": "authToken", "value": text}]
    state = stored(origins=[{"origin": URL, "localStorage": storage}])
    assert found(state) == {SECRET: ("authorization", where, True)}


def test_in_json_that_is_secret_an_address_with_a_password_is_secret() -> None:
    address = f"https://me:{SECRET}@site.test/"
    secrets = found(asked(headers=[("Cookie", f"at={json.dumps([address])}")]))
    assert address in secrets


def test_in_json_that_is_secret_what_the_rules_keep_is_kept() -> None:
    keeping = ScrubRules(keep=("is",))
    assert found(asked(headers=[("Cookie", f"at={json.dumps({'is': SECRET})}")]), keeping) == {}


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("abcdef1234567890", True),
        ("eW91/c2Vl+dGhpcw12==", True),
        ("abcdef123456789", False),  # too short
        ("abcdefghijklmnopq", False),  # no digit
        ("2026-01-31 10:00:00", False),
        ("12345678901234567", False),  # a number's name says whether it is one
    ],
)
def test_in_an_object_of_a_secret_name_what_looks_random_is_secret(
    value: str, is_secret: bool
) -> None:
    assert (value in found(answered({"token": {"access": value}}))) is is_secret


@pytest.mark.parametrize(
    ("number", "is_found"),
    [
        (5551234567, True),
        ("555 1234", True),
        ("555 123", False),
        ("+49 30 1234567890123", False),  # more than any number has
    ],
)
def test_a_phone_number_has_7_to_15_digits(number: Any, is_found: bool) -> None:
    expected = {str(number): ("phone number", "mobilePhone", True)}
    assert found(answered({"mobilePhone": number})) == (expected if is_found else {})


def test_an_address_of_few_letters_is_secret_everywhere() -> None:
    assert found(answered({"by": "a@b.io"})) == {"a@b.io": ("e-mail address", "text", True)}


@pytest.mark.parametrize("value", [True, None, 1.5, 1234.5, "", "abc", "Undefined", "NULL"])
def test_what_is_short_or_says_nothing_is_not_a_secret(value: Any) -> None:
    assert found(answered({"token": value})) == {}


@pytest.mark.parametrize(
    ("value", "is_distinct"),
    [
        ("abc123", True),
        ("aBcDeF", True),
        ("ab-c!", True),
        ("12345", True),
        ("abcdefghijklmnop", True),
        ("abc12", False),
        ("ab-c", False),
        ("ab_c", False),
        ("abcdef", False),
        ("Abcdef", False),
        ("ABCDEF", False),
        ("abc-def", True),
        ("1234", False),
        ("abcdefghijklmno", False),
    ],
)
def test_a_word_is_secret_only_where_it_is_held(value: str, is_distinct: bool) -> None:
    assert found(answered({"token": value})) == {value: ("token", "token", is_distinct)}


def test_what_users_keep_is_not_a_secret_and_what_they_add_is() -> None:
    rules = ScrubRules(members=("room*",), keep=("token", "about", "k3pt"))
    given = {"token": SECRET, "About": {"pin": SECRET}, "roomKey": "a1b2c3", "room2": "k3pt"}
    secrets = found(answered(given), rules)
    assert secrets == {"a1b2c3": ("token", "roomKey", True)}


@pytest.mark.parametrize("kind", ["script", "stylesheet"])
def test_a_program_of_the_site_has_only_secrets_that_say_what_they_are(kind: str) -> None:
    said = "ghp_" + "a1" * 12
    program = f'x = {{"token": "{SECRET}"}}; y = "{said}"'.encode()
    assert found(answered(program, mime="text/javascript", kind=kind)) == {
        said: ("token", "text", True)
    }


@pytest.mark.parametrize("text", ["Bearer {}", "Authorization: bearer {}", 'f("Bearer {}")'])
def test_what_follows_bearer_is_a_secret_if_it_looks_like_one(text: str) -> None:
    token = "Zx9Kq2Lm7Pw4Tn8Rv1"
    expected = {token: ("authorization", "text", True)}
    assert found(answered([text.format(token)])) == expected
    assert found(answered([text.format("authentication-by-token")])) == {}


def test_a_scheme_is_not_part_of_a_token() -> None:
    expected = {SECRET: ("authorization", "Authorization", True)}
    assert found(answered({"Authorization": f"Bearer {SECRET}"})) == expected


@pytest.mark.parametrize(
    "program",
    [
        "a?token=read():b",
        "f(a)&token=b.c2.value2()",
        'url + "&token=" + token1',
        "url + `&token=${token1}`",
        "a();token=b1.c",
        "&page_token=k3yOfSomeone9",
    ],
)
def test_what_a_program_calls_a_token_is_not_a_parameter(program: str) -> None:
    assert found(answered(program.encode(), mime="text/plain")) == {}


def test_a_password_that_is_not_utf_8_is_found_as_it_is_written() -> None:
    page = '<input type="password" value="pässwörd-1">'.encode("latin-1")
    [password] = found(answered(page, mime="text/html; charset=iso-8859-1"))
    assert password.encode("utf-8", "surrogateescape") == "pässwörd-1".encode("latin-1")


@pytest.mark.parametrize("unit", ["[\n", '[{"a":\n', "=[[", '["a"\n,'])
def test_lines_that_only_begin_json_are_not_read_again_from_each(unit: str) -> None:
    # It would take longer than a test may.
    assert found(answered(unit.encode() * 1_000_000, mime="text/plain")) == {}
