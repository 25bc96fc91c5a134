"""The workers that an endpoint knows."""

import json
from typing import Any

import pytest

from opentabs_py.core.fleet.liveness import SILENT_FOR
from opentabs_py.core.fleet.messages import encode
from opentabs_py.fleet.directory import Directory
from tests.core.fleet.test_routing import worker


class Known:
    """A directory, and whose changes it has notified."""

    def __init__(self, **labels: str) -> None:
        self.changed: list[str] = []
        self.directory = Directory(labels, "1", self.changed.append)

    def hear(self, name: str, number: int = 0, *, now: float = 0.0, **more: Any) -> str:
        said = worker(name, number, **more)
        self.directory.handle(encode(said), now)
        return said.instance

    @property
    def usable(self) -> list[str]:
        return [each.name for each in self.directory.usable]


def test_a_worker_that_announces_itself_is_used_until_it_leaves() -> None:
    known = Known()
    one = known.hear("one", state="starting")
    assert known.usable == []
    known.hear("one")
    assert known.usable == ["one"]
    known.hear("one", state="leaving")
    assert known.usable == []
    assert known.changed == [one, one]


def test_one_that_drains_is_known_and_not_used() -> None:
    known = Known()
    known.hear("one")
    known.hear("one", state="draining")
    assert known.usable == []
    assert [each.name for each in known.directory.all] == ["one"]


def test_only_those_with_the_labels_are_used() -> None:
    known = Known(site="eu")
    known.hear("one", 1, labels={"site": "eu"})
    known.hear("two", 2)
    assert known.usable == ["one"]


def test_a_second_worker_with_a_name_is_refused_until_the_first_has_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    known = Known()
    first = known.hear("one", 1)
    second = known.hear("one", 2, instance="f" * 16, started=2.0)
    assert [each.instance for each in known.directory.usable] == [first]
    known.hear("one", 2, instance="f" * 16, started=2.0)
    assert len(caplog.messages) == 1  # not at each of its announcements
    assert "restart it, with another --name" in caplog.messages[0]
    known.directory.remove(first)
    assert [each.instance for each in known.directory.usable] == [second]
    assert known.directory.refused == {}


def test_a_worker_that_is_used_comes_after_those_that_were_not() -> None:
    known = Known()
    one = known.hear("one", 1)
    known.hear("two", 2)
    known.directory.use(one)
    assert known.usable == ["two", "one"]
    known.directory.use("nobody")
    assert known.usable == ["two", "one"]


def test_one_that_says_nothing_for_long_is_removed() -> None:
    known = Known()
    known.hear("one", now=10.0)
    known.directory.remove_silent(10.0 + SILENT_FOR)
    assert known.usable == ["one"]
    known.directory.remove_silent(10.0 + 2 * SILENT_FOR)
    assert known.usable == []


def test_after_our_own_interruption_silence_counts_anew() -> None:
    known = Known()
    known.hear("one", now=10.0)
    known.directory.handle_relinked(100.0)
    known.directory.remove_silent(101.0)
    assert known.usable == ["one"]


@pytest.mark.parametrize("data", [b"", b"{}", json.dumps({"version": 1}).encode()])
def test_what_is_no_announcement_is_logged_and_changes_nothing(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    known = Known()
    known.directory.handle(data, 0.0)
    assert known.usable == []
    assert len(caplog.messages) == 1
