"""How the calls of a recording are repeated."""

import pytest

from opentabs_py.core.drift.steps import rebased, steps_of
from opentabs_py.core.recording.exchange import (
    Exchange,
    RecordedCall,
    Recording,
    Request,
    Response,
    Scrubbed,
)
from tests.core.drift.samples import HOME, failed, got


def test_a_call_is_made_on_the_page_that_was_open() -> None:
    exchanges = [
        got("/", "", kind="document", at=1),
        got("/inbox", "", kind="document", at=3),
        got("/gone", "", kind="document", status=404, at=4),
        failed("/lost", "net::ERR_FAILED", kind="document", at=4),
        got("/data", 1, at=4),
        got("https://ads.example.org/", "", kind="document", at=4),
        Exchange(
            Request("GET", f"{HOME}frame", [("Sec-Fetch-Dest", "iframe")], kind="document"),
            Response(200),
            started=4,
        ),
        Exchange(Request("POST", f"{HOME}form", kind="document"), Response(200), started=4),
    ]
    calls = [RecordedCall("t", started=at) for at in (0, 2, 5)]

    steps = steps_of(Recording(HOME, exchanges, calls=calls))

    assert [step.url for step in steps] == [HOME, HOME, f"{HOME}inbox"]


def test_arguments_that_were_scrubbed_are_found() -> None:
    scrubbed = [
        Scrubbed("e-mail address", "to", "user-1@example.com", 1),
        Scrubbed("x", "x", "", 1),
    ]
    calls = [RecordedCall("t", {"to": ["user-1@example.com"]}), RecordedCall("t", {"to": "ada"})]

    steps = steps_of(Recording(HOME, calls=calls, scrubbed=scrubbed))

    assert [step.scrubbed for step in steps] == ["user-1@example.com", ""]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/a?b", "http://staging:81/a?b"),
        ("https://else.org/a", "https://else.org/a"),
    ],
)
def test_a_site_may_be_elsewhere(url: str, expected: str) -> None:
    assert rebased(url, HOME, "http://staging:81/x") == expected
    assert rebased(url, HOME, None) == url
