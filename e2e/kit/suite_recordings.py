"""Tests that replay a recording of the site in `e2e/sites/recorded_site.py`, which is not there."""

import os

import pytest

from e2e.sites.recorded_site import GAP
from opentabs_py.testing import SyncOpenTabs, expect

URL = os.environ.get("SITE", "")
recorded = pytest.mark.opentabs(recording="site.har")
STREAMS = ("notes_watch", "notes_talk")


@pytest.fixture
def ready(opentabs: SyncOpenTabs) -> SyncOpenTabs:
    opentabs.page.goto(URL or opentabs.recording.url)
    expect(opentabs.plugin()).to_be_ready()
    return opentabs


@recorded
def test_the_recorded_calls_return_what_they_returned(ready: SyncOpenTabs) -> None:
    calls = [each for each in ready.recording.calls if each.tool not in STREAMS]
    assert len(calls) == 9
    for each in calls:
        expect(ready.start(each.tool, each.arguments)).to_return(each.value)


@recorded
def test_a_member_that_only_prevents_caching_is_not_compared(ready: SyncOpenTabs) -> None:
    first, again = ready.start("notes_items"), ready.start("notes_items")

    expect(first).to_progress([{"progress": n, "total": 3} for n in (1, 2, 3)])
    expect(again).to_succeed()


@recorded
def test_graphql_is_compared_by_operation_and_variables(ready: SyncOpenTabs) -> None:
    assert ready.call("notes_item", id=2, layout="wide") == {"id": 2, "title": "Item 2"}


@pytest.mark.opentabs(recording="slow.har")
def test_messages_come_at_once(ready: SyncOpenTabs) -> None:
    watched, talked = ready.call("notes_watch"), ready.call("notes_talk", asks=[1, 2])

    assert [note["n"] for note in watched["notes"]] == [0, 1, 2, 3, 4]
    assert [each["answer"] for each in talked["heard"] if "answer" in each] == [1, 2]
    assert talked["heard"][2] == [1, 255]


@pytest.mark.opentabs(recording="site.har", replay_timing="recorded")
def test_messages_come_when_they_came(ready: SyncOpenTabs) -> None:
    watched, talked = ready.call("notes_watch"), ready.call("notes_talk", asks=[1, 2])

    assert [note["n"] for note in watched["notes"]] == [0, 1, 2, 3, 4]
    assert watched["seconds"] > 3.5 * GAP
    assert talked["seconds"] > 1.5 * GAP


@recorded
def test_a_page_that_redirects_does_so_again(opentabs: SyncOpenTabs) -> None:
    opentabs.page.goto(f"{opentabs.recording.url}old")
    opentabs.page.wait_for_url(f"{opentabs.recording.url}#part")
    expect(opentabs.page).to_have_title("Notes")


@recorded
def test_a_route_of_the_test_comes_first(ready: SyncOpenTabs) -> None:
    ready.page.route("**/graphql", lambda route: route.fulfill(json={"data": {"item": {"id": 0}}}))
    assert ready.call("notes_item", id=5) == {"id": 0}


@recorded
def test_fails_for_what_was_not_recorded(ready: SyncOpenTabs) -> None:
    with pytest.raises(Exception, match="Failed to fetch"):
        ready.call("notes_item", id=3)


@recorded
def test_fails_for_writing_twice(ready: SyncOpenTabs) -> None:
    ready.call("notes_add", text="tea")
    with pytest.raises(Exception, match="Failed to fetch"):
        ready.call("notes_add", text="tea")


@recorded
def test_fails_for_a_message_that_was_not_sent(ready: SyncOpenTabs) -> None:
    with pytest.raises(Exception, match="closed with 1011"):
        ready.call("notes_talk", asks=[7])


@pytest.mark.opentabs(recording="absent.har")
def test_fails_without_a_recording(opentabs: SyncOpenTabs) -> None:
    raise AssertionError(opentabs)


def test_fails_without_a_mark(opentabs: SyncOpenTabs) -> None:
    with pytest.raises(LookupError, match="has no recording"):
        _ = opentabs.recording
