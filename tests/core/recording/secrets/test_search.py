"""Which parts of a recording are secret, of which kind, and what contains them."""

import gzip

import pytest

from opentabs_py.core.recording.exchange import RecordedCall, RecordedSocket, Recording
from opentabs_py.core.recording.scrub_rules import ScrubRules
from tests.core.recording.secrets.finding import (
    FORM,
    ME,
    PARTS,
    SECRET,
    TOKEN,
    URL,
    answered,
    asked,
    basic,
    found,
    multipart,
    socket,
    stored,
)


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(asked(f"{URL}?token={SECRET}"), id="a query"),
        pytest.param(asked(f"{URL}#token={SECRET}"), id="a fragment, as sign-in redirects have it"),
        pytest.param(Recording(f"{URL}#token={SECRET}"), id="the fragment of the first URL"),
        pytest.param(asked(f"{URL}a;token={SECRET}/b"), id="a parameter of a path"),
        pytest.param(asked(f"{URL}a;b=1;token={SECRET}"), id="a further parameter of a path"),
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
        *(
            pytest.param(answered(event.encode(), mime="text/event-stream"), id=f"{event!r}")
            for event in (f"id: 1\ndata: token={SECRET}\n\n", f"data:a=1&token={SECRET}\n\n")
        ),
        *(
            pytest.param(answered(gzip.compress(each), mime=mime), id=f"{each!r} in gzip")
            for each, mime in (
                (f'{{"token": "{SECRET}"}}'.encode(), "application/octet-stream"),
                (f"token={SECRET}".encode(), "application/gzip"),
            )
        ),
        pytest.param(
            asked(body=gzip.compress(f'{{"token": "{SECRET}"}}'.encode())), id="a request in gzip"
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


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (f"var accessToken = '{SECRET}';", "accessToken"),
        (f'a.b();window.accessToken="{SECRET}";', "window.accessToken"),
        (f"const $token = `{SECRET}`", "$token"),
    ],
)
def test_a_variable_of_a_page_is_secret_by_its_name(program: str, name: str) -> None:
    expected = {SECRET: ("token", name, True)}
    html = f"<p>a</p><script>{program}</script>".encode()
    assert found(answered(html, mime="text/html")) == expected
    assert found(answered(program.encode(), mime="text/javascript")) == expected
    assert found(answered(program.encode(), mime="text/javascript", kind="script")) == {}


CODE = "4/0AbCdEfGhIjKlMn"
STATE = "d41d8cd98f00b204"


@pytest.mark.parametrize(
    ("recording", "names"),
    [
        pytest.param(
            asked(f"{URL}cb?code={CODE}&state={STATE}"), {CODE: "code", STATE: "state"}, id="query"
        ),
        pytest.param(
            asked(f"{URL}cb#state={STATE}&code={CODE}"),
            {CODE: "code", STATE: "state"},
            id="fragment",
        ),
        pytest.param(
            asked(headers=[("Location", f"/authorize?client_id=a&state={STATE}")]),
            {STATE: "state"},
            id="redirect",
        ),
        pytest.param(
            asked(body=f"grant_type=b&code={CODE}&code_verifier={STATE}".encode(), mime=FORM),
            {CODE: "code", STATE: "code_verifier"},
            id="form",
        ),
    ],
)
def test_what_oauth_passes_to_sign_in_is_secret(
    recording: Recording, names: dict[str, str]
) -> None:
    expected = {text: ("authorization", name, True) for text, name in names.items()}
    assert found(recording) == expected
    assert found(recording, ScrubRules(keep=tuple(names.values()))) == {}


@pytest.mark.parametrize(
    "query",
    [
        f"code={CODE}",
        f"state={STATE}&tab=1",
        "code=94110&state=CA",
        "code=a&state=/items/0123456789abcdef",
    ],
)
def test_other_codes_and_states_are_kept(query: str) -> None:
    assert found(asked(f"{URL}?{query}")) == {}


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


@pytest.mark.parametrize("kind", ["script", "stylesheet"])
def test_a_program_of_the_site_has_only_secrets_that_say_what_they_are(kind: str) -> None:
    said = "ghp_" + "a1" * 12
    program = f'x = {{"token": "{SECRET}"}}; y = "{said}"'.encode()
    assert found(answered(program, mime="text/javascript", kind=kind)) == {
        said: ("token", "text", True)
    }
