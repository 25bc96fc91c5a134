"""What `opentabs fleet` prints."""

import io
import re
from typing import cast

import pytest
from rich.console import Console

from opentabs_py.cli.commands.fleet import when_idle
from opentabs_py.cli.commands.worker import served
from opentabs_py.cli.fleet_table import show_workers
from opentabs_py.core.fleet.messages import encode
from opentabs_py.fleet.link import NatsLink
from opentabs_py.fleet.observed import ObservedFleet
from tests.core.fleet.test_pool import worker
from tests.fleet.test_observed import FakeLink


def shown(width: int) -> str:
    fleet = ObservedFleet(cast("NatsLink", FakeLink()))
    busy = worker("a-worker-with-a-long-name-0123", labels={"site": "eu"}, memory=2**30, calls=1234)
    for each in (busy, worker("b", 10, state="draining")):
        fleet.directory.handle(encode(each), 0)
    console = Console(width=width, file=io.StringIO())
    with console.capture() as capture:
        console.print(show_workers(fleet.directory.all, fleet, console))
    return capture.get()


@pytest.mark.parametrize("width", [200, 110, 60, 40, 20])
def test_nothing_of_a_worker_is_lost_in_a_narrow_terminal(width: int) -> None:
    said = shown(width)
    whole = re.sub(r"\s", "", said)
    for text in (
        "a-worker-with-a-long-name-0123",
        "1234",
        "1024MiB",
        "chat1",
        "site=eu",
        "draining",
    ):
        assert text in whole
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= width


def test_a_worker_says_what_it_serves() -> None:
    said = served("a", ["b", "c"], 1, has_plugins=True)
    assert said == "The worker a serves b, c, up to 1 call at once"
    assert served("a", [], 8, has_plugins=False) == (
        "The worker a serves no plugin and no tool. Pass --plugin DIR or --tools FILE."
    )


def test_a_worker_whose_plugins_are_not_reviewed_does_not_ask_for_others() -> None:
    said = served("a", [], 8, has_plugins=True)
    assert said == "The worker a serves no plugin and no tool now, for the reasons above."


def test_a_worker_says_when_it_stops() -> None:
    assert when_idle(0) == "now"
    assert when_idle(1) == "when its last call has ended"
    assert when_idle(2) == "when its 2 calls have ended"
