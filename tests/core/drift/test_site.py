"""The responses of several recordings, combined."""

from dataclasses import replace

from opentabs_py.core.drift.site import compare_site
from opentabs_py.core.recording.exchange import Response, Scrubbed
from tests.core.drift.samples import called, failed, got, recording

PAGE = '<p class="a">1'


def test_the_responses_of_all_recordings_count() -> None:
    one = recording(
        got("/", PAGE, kind="document"),
        got("/api?q=1", {"a": 1}),
        failed("/lost", "net::ERR_ONE"),
        called(),
        scrubbed=[Scrubbed("name", "n", "Robin", 1), Scrubbed("name", "n", "", 1)],
    )
    other = recording(
        got("/", {"b": 1}),
        got("/", PAGE, kind="document"),
        got("/api?q=1", {"a": 2}),
        got("/api?q=2", {"a": 3}, status=201),
        failed("/lost", "net::ERR_OTHER"),
        called(tool="u"),
    )

    site = compare_site([one, other], recording(got("/api", {"b": 1}), got("/new", 1)))

    by_name = {str(route): responses for route, responses in site.was.items()}
    home, api, lost = by_name["GET /"], by_name["GET /api"], by_name["GET /lost"]
    assert (home.media, home.is_document, len(home.marks)) == ({"HTML", "JSON"}, True, 2)
    assert (api.statuses, dict(api.tools)) == ({200, 201}, {"t": 1, "u": 2})
    assert sorted(map(str, api.values.values())) == ["[{'a': 1}, {'a': 2}]", "[{'a': 3}]"]
    assert lost.failures == {"net::ERR_ONE", "net::ERR_OTHER"}
    assert [str(route) for route, _, _ in site.known()] == ["GET /api"]
    assert site.replaced == {"Robin"}


def test_a_response_that_one_recording_has_not_read_is_known_to_be_unread() -> None:
    read = got("/api", 1)
    unread = replace(read, response=Response(200, "", [], None))

    site = compare_site([recording(unread), recording(read)], recording())

    assert [responses.is_unread for responses in site.was.values()] == [True]


def test_a_page_stays_one_if_it_is_also_asked_for_data() -> None:
    both = [got("/", PAGE, kind="document"), got("/", 1)]

    for exchanges in (both, both[::-1]):
        site = compare_site([recording(*exchanges)], recording())
        [home] = site.was.values()
        assert home.is_document
