"""The workers that an endpoint knows from their announcements."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from opentabs_py.core.fleet.liveness import SILENT_FOR
from opentabs_py.core.fleet.messages import Announcement, encode
from opentabs_py.fleet.directory import Directory
from tests.core.fleet.test_pool import worker


class Known:
    """A directory, and the workers about whose changes it has notified."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self.changes: list[str] = []
        self.conflicts: list[Announcement] = []
        self.directory = Directory(
            labels or {}, self.changes.append, on_conflict=self.conflicts.append
        )

    def hear(self, name: str, number: int, now: float = 0, **more: Any) -> None:
        self.directory.handle(encode(worker(name, number, **more)), now)

    @property
    def usable(self) -> list[str]:
        return [each.name for each in self.directory.usable]


def instance(name: str) -> str:
    return worker(name).instance


def test_a_worker_is_used_while_it_serves_and_has_all_labels() -> None:
    known = Known({"site": "eu"})
    known.hear("a", 10, labels={"site": "eu", "tier": "gold"})
    known.hear("b", 20, labels={"site": "us"})
    known.hear("c", 30)
    assert known.usable == ["a"]
    known.hear("a", 10, labels={"site": "eu", "tier": "gold"}, state="draining")
    assert known.usable == []
    assert [each.name for each in known.directory.all] == ["a", "b", "c"]


def test_one_that_starts_is_not_known_yet_and_one_that_leaves_no_more() -> None:
    known = Known()
    known.hear("a", 10, state="starting")
    assert known.directory.all == []
    known.hear("a", 10)
    known.hear("a", 10, state="leaving")
    assert known.directory.all == []
    assert known.changes == [instance("a")] * 2


def test_the_log_says_who_comes_and_who_goes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    known = Known()
    for state in ("starting", "serving", "draining", "leaving", "leaving"):
        known.hear("a", 10, state=state)
    known.hear("b", 20, now=0)
    known.directory.remove_silent(3 * SILENT_FOR)
    known.hear("b", 20, now=3 * SILENT_FOR)
    said = [(each.split()[2], each.rpartition(") ")[2]) for each in caplog.messages]
    there, left, gone = "is there", "has left", "is gone"
    assert said == [("a", there), ("a", left), ("b", there), ("b", gone), ("b", there)]


def test_one_that_repeats_itself_is_heard_and_not_read_again() -> None:
    known = Known()
    known.hear("a", 10, now=0)
    known.hear("b", 20, now=0)
    read = known.directory.get(instance("a"))
    known.hear("a", 10, now=SILENT_FOR)
    assert known.directory.get(instance("a")) is read
    known.directory.remove_silent(2.5 * SILENT_FOR)
    assert known.usable == ["a"]
    assert known.changes == [instance(name) for name in "abab"]  # the last one is gone


def test_what_it_announced_before_the_last_time_is_not_a_repetition() -> None:
    known = Known()
    for calls in (1, 2, 1):
        known.hear("a", 10, calls=calls)
        assert [each.calls for each in known.directory.all] == [calls]


def test_after_a_reconnect_workers_have_time_to_reconnect_too() -> None:
    known = Known()
    known.hear("a", 10, now=0)
    known.directory.handle_relinked(3 * SILENT_FOR)
    known.directory.remove_silent(3 * SILENT_FOR)
    assert known.usable == ["a"]


def test_the_later_of_two_with_one_name_is_refused_until_the_other_has_gone() -> None:
    known = Known()
    known.hear("a", 20, instance="f" * 16, started=2.0)
    known.hear("a", 10)
    assert [each.number for each in known.directory.usable] == [10]
    assert "has the name or the number of a on h" in known.directory.refused["f" * 16]
    assert [each.number for each in known.conflicts] == [10]
    known.directory.remove(instance("a"))
    assert [each.number for each in known.directory.usable] == [20]
    assert known.directory.refused == {}
    assert known.changes == ["f" * 16, "f" * 16, instance("a"), instance("a"), "f" * 16]


def test_a_worker_with_another_number_than_before_is_another() -> None:
    known = Known()
    known.hear("a", 10)
    known.hear("b", 20, started=2.0)
    known.hear("a", 20)
    assert [(each.name, each.number) for each in known.directory.usable] == [("a", 20)]


def test_one_of_another_version_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    known = Known()
    known.hear("a", 10, version=99)
    known.directory.handle(b"nonsense", 0)
    assert known.directory.all == []
    assert "fleet protocol 99" in known.directory.refused[instance("a")]
    assert "not JSON" in known.directory.refused[""]
    assert len(caplog.messages) == 2


def test_what_others_wrote_into_a_reason_adds_no_line(caplog: pytest.LogCaptureFixture) -> None:
    known = Known()
    strange = {"version": 99, "name": "a\n2026-11-27 09:00:00,000 INFO Forged", "instance": "i"}
    known.directory.handle(json.dumps(strange).encode(), 0)
    known.hear("b", 20, host="h\nForged")
    known.hear("c", 20)
    assert [*known.directory.refused] == ["i", instance("c")]
    for said in (*caplog.messages, *known.directory.refused.values()):
        assert "Forged" in said
        assert "\n" not in said


def test_one_of_another_version_that_is_no_longer_heard_is_forgotten() -> None:
    known = Known()
    known.hear("a", 10, version=99)
    known.hear("b", 20, version=99, now=SILENT_FOR)
    known.hear("a", 10, version=99, now=SILENT_FOR)
    known.hear("c", 30, version=99)
    known.directory.remove_silent(2 * SILENT_FOR)
    assert known.directory.refused.keys() == {instance("a"), instance("b")}
    known.directory.remove_silent(3 * SILENT_FOR)
    assert known.directory.refused == {}


def test_what_nobody_could_read_is_forgotten_when_it_is_no_longer_heard() -> None:
    known = Known()
    known.directory.handle(b"nonsense", 0)
    known.directory.handle(b"nonsense", SILENT_FOR)
    known.directory.remove_silent(2 * SILENT_FOR)
    assert known.directory.refused.keys() == {""}
    known.directory.remove_silent(3 * SILENT_FOR)
    assert known.directory.refused == {}


def test_two_workers_that_cannot_be_read_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    known = Known()
    for now in range(10):
        known.directory.handle(b"nonsense", now)
        known.directory.handle(b"[]", now)
    assert len(caplog.messages) == 1
    known.directory.remove_silent(9 + 2 * SILENT_FOR)
    known.directory.handle(b"nonsense", 100)
    assert len(caplog.messages) == 2
