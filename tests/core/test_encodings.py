"""The encodings in which a text is searched for."""

import pytest

from opentabs_py.core.encodings import encodings_of

# Each line: what wrote it, and how it writes "é p&ss!w*rd~1'<x>=+\"/@".
TEXT = "é p&ss!w*rd~1'<x>=+\"/@"


@pytest.mark.parametrize(
    "written",
    [
        TEXT,
        "%C3%A9%20p%26ss!w*rd~1'%3Cx%3E%3D%2B%22%2F%40",  # encodeURIComponent
        "%C3%A9+p%26ss%21w*rd%7E1%27%3Cx%3E%3D%2B%22%2F%40",  # URLSearchParams
        "%c3%a9+p%26ss%21w*rd%7e1%27%3cx%3e%3d%2b%22%2f%40",  # in lower case
        "%c3%a9%20p%26ss%21w%2ard~1%27%3cx%3e%3d%2b%22%2f%40",
        "é p&ss!w*rd~1'<x>=+\\\"/@",  # JSON.stringify
        "%C3%A9%20p%26ss!w*rd~1'%3Cx%3E%3D%2B%5C%22%2F%40",  # both, as JSON in a query
        "%c3%a9+p%26ss%21w*rd%7e1%27%3cx%3e%3d%2b%5c%22%2f%40",
        "%25C3%25A9%2520p%2526ss!w*rd~1'%253Cx%253E%253D%252B%2522%252F%2540",  # a URL in a URL
        "%25c3%25a9%2520p%2526ss!w*rd~1'%253cx%253e%253d%252b%2522%252f%2540",
        "\\u00e9 p&ss!w*rd~1'<x>=+\\\"/@",  # Python's json
        "é p\\u0026ss!w*rd~1'\\u003cx\\u003e=+\\\"/@",  # Go
        'é p\\u0026ss!w*rd~1\\u0027\\u003cx\\u003e\\u003d+\\"/@',  # Gson
        "\\u00E9 p\\u0026ss!w*rd~1\\u0027\\u003Cx\\u003E=\\u002B\\u0022/@",  # .NET
        "\\u00E9 p\\u0026ss!w*rd~1\\u0027\\u003Cx\\u003E\\u003D\\u002B\\u0022/@",
        "é p&amp;ss!w*rd~1&#x27;&lt;x&gt;=+&quot;/@",  # HTML
        "w6kgcCZzcyF3KnJkfjEnPHg+PSsiL0A=",  # base64
        "w6kgcCZzcyF3KnJkfjEnPHg-PSsiL0A",  # base64url
    ],
)
def test_a_text_is_looked_for_as_each_language_writes_it(written: str) -> None:
    assert written in {encode(TEXT) for encode in encodings_of(TEXT)}


@pytest.mark.parametrize(
    ("text", "written", "expected"),
    [
        ("secret7", "c2VjcmV0Nw", False),
        ("secret-8", "c2VjcmV0LTg", True),
        ("secre?~?W", "c2VjcmU_fj9X", True),
    ],
)
def test_a_text_of_8_characters_is_looked_for_in_base64(
    text: str, written: str, expected: bool
) -> None:
    assert (written in {encode(text) for encode in encodings_of(text)}) is expected


def test_a_word_is_written_the_same_everywhere() -> None:
    assert {encode("X1") for encode in encodings_of("X1")} == {"X1"}


def test_a_text_that_was_cut_within_a_character_can_be_encoded() -> None:
    for encode in encodings_of("Bob \ud83d, more"):
        encode("Bob \ud83d, more")
