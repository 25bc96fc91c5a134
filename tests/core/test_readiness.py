"""When a process is ready for calls."""

from typing import get_args

import pytest

from opentabs_py.core import readiness
from opentabs_py.core.fleet.messages import State


@pytest.mark.parametrize(
    ("needs_browser", "connected", "ready"),
    [(True, True, True), (True, False, False), (False, False, True)],
)
def test_a_server_needs_an_extension_only_if_it_has_something_for_a_browser(
    needs_browser: bool, connected: bool, ready: bool
) -> None:
    now = readiness.of_server(needs_browser=needs_browser, connected=connected)
    assert now.ready is ready


@pytest.mark.parametrize(
    ("linked", "workers", "ready", "why"),
    [
        (True, 2, True, "workers: 2"),
        (True, 0, False, "no worker can be used"),
        (False, 2, False, "not connected to NATS"),
    ],
)
def test_an_endpoint_needs_nats_and_a_worker(
    linked: bool, workers: int, ready: bool, why: str
) -> None:
    now = readiness.of_endpoint(linked=linked, workers=workers)
    assert (now.ready, now.why) == (ready, why)


def test_a_worker_without_nats_is_not_ready() -> None:
    now = readiness.of_worker(linked=False, state="serving", browsers={})
    assert (now.ready, now.why) == (False, "not connected to NATS")


@pytest.mark.parametrize("state", get_args(State))
def test_a_worker_is_ready_only_while_it_serves(state: State) -> None:
    now = readiness.of_worker(linked=True, state=state, browsers={})
    assert now.ready is (state == "serving")


def test_a_worker_names_each_browser_that_is_not_connected() -> None:
    browsers = {"one": True, "two": False, "three": False}
    now = readiness.of_worker(linked=True, state="serving", browsers=browsers)
    assert (now.ready, now.why) == (False, "not connected: two, three")


def test_a_worker_whose_browsers_are_all_connected_is_ready() -> None:
    now = readiness.of_worker(linked=True, state="serving", browsers={"one": True})
    assert (now.ready, now.why) == (True, "browsers connected: 1")
