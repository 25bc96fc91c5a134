"""The names of the user who is signed in."""

import re

import pytest

from tests.core.recording.scrubbing import URL, answer, body, scrubbed, text


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
