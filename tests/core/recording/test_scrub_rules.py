"""Rules of users, earlier recordings, and what comes through as it is."""

import re
from dataclasses import replace
from typing import Any

from opentabs_py.core.recording.exchange import (
    Event,
    Exchange,
    Frame,
    RecordedCall,
    RecordedSocket,
    Recording,
    Request,
    Response,
    Scrubbed,
)
from opentabs_py.core.recording.scrub import scrub
from opentabs_py.core.recording.scrub_rules import ScrubRules
from tests.core.recording.scrubbing import URL, answer, body, page, scrubbed


def test_users_add_members_texts_and_patterns() -> None:
    rules = ScrubRules(
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
    rules = ScrubRules(keep=("token_type", "lang", "public-key-1", "x-key"))
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
    rules = ScrubRules(texts=("lavender",))
    [one] = scrubbed(answer({"token": "lavender", "tea": "lavender"}), rules=rules)
    assert body(one) == {"token": "text-1", "tea": "text-1"}


def test_a_word_that_a_pattern_finds_after_its_holder_is_replaced_everywhere() -> None:
    rules = ScrubRules(patterns=(re.compile("mistletoe"),))
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
    [one] = scrubbed(answer({"at": "acmecorp.test"}), rules=ScrubRules(texts=("acme",)))
    assert body(one) == {"at": "text-1corp.test"}


def test_a_name_of_two_letters_is_replaced_where_it_is_held() -> None:
    me, other = scrubbed(
        answer({"name": "Al", "city": "Al"}, url=f"{URL}me"), answer({"about": "Al is a name"})
    )
    assert body(me) == {"name": "Robin", "city": "Al"}
    assert body(other) == {"about": "Al is a name"}
