"""Secrets in the HTML of a page."""

import pytest

from opentabs_py.core.recording.secrets.forms import Kind
from tests.core.recording.secrets.finding import SECRET, answered, found


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


@pytest.mark.parametrize("value", ["Pa55", "word"])
def test_a_password_in_a_page_is_secret_everywhere(value: str) -> None:
    page = f'<input type="password" value="{value}">'
    assert found(answered(page.encode(), mime="text/html")) == {value: ("token", "password", True)}


def test_the_data_of_a_page_may_be_about_its_user() -> None:
    page = '<script type="application/json">{"viewer": {"name": "Ada"}}</script>'
    expected = {"Ada": ("name", "name", True)}
    assert found(answered(page.encode(), mime="text/html")) == expected


def test_a_password_that_is_not_utf_8_is_found_as_it_is_written() -> None:
    page = '<input type="password" value="pässwörd-1">'.encode("latin-1")
    [password] = found(answered(page, mime="text/html; charset=iso-8859-1"))
    assert password.encode("utf-8", "surrogateescape") == "pässwörd-1".encode("latin-1")
