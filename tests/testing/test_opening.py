"""With which settings the servers of a test start."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from opentabs_py.config.settings import Settings
from opentabs_py.core.limits import Limits
from opentabs_py.testing.opening import ServedByTest, _start_servers


class Slot:
    """Starts nothing, and keeps the settings."""

    def begin(self, _plugins: Any, _tools: Any, settings: Settings, *, own: bool) -> None:
        self.settings, self.own = settings, own

    def release(self, _chain: None) -> None: ...


class Node:
    """A test with one mark."""

    def __init__(self, mark: pytest.Mark) -> None:
        self._mark = mark

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._mark if self._mark.name == name else None

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [self._mark] if self._mark.name == name else []


def started(mark: pytest.MarkDecorator, *, is_offline: bool = False) -> list[Slot]:
    """Start the servers of a test of two people, and return what was asked for."""
    request = SimpleNamespace(node=Node(mark.mark), getfixturevalue=lambda _: {})
    settings = Settings(port=7321, profile=Path("/home/me/profile"))
    slots = [Slot(), Slot()]
    with ExitStack() as stack:
        served = ServedByTest([], [], settings, Limits())
        _start_servers(cast(Any, request), cast(Any, slots), served, stack, is_offline=is_offline)
    return slots


def test_a_fresh_profile_is_not_that_of_the_settings_nor_is_its_port() -> None:
    slots = started(pytest.mark.opentabs(fresh_profile=True))
    places = [(slot.own, slot.settings.port, slot.settings.profile) for slot in slots]
    assert places == [(True, 0, None), (True, 0, None)]


def test_a_replay_uses_neither_the_profile_nor_the_port_of_the_settings() -> None:
    slots = started(pytest.mark.opentabs(), is_offline=True)
    assert [(slot.settings.port, slot.settings.profile) for slot in slots] == [(0, None)] * 2


@pytest.mark.parametrize(
    ("mark", "own"),
    [
        (pytest.mark.opentabs(), False),
        (pytest.mark.browser_context_args(locale="de-DE"), True),
    ],
)
def test_the_first_browser_has_port_and_profile_of_the_settings(
    mark: pytest.MarkDecorator, own: bool
) -> None:
    places = [(slot.own, slot.settings.port, slot.settings.profile) for slot in started(mark)]
    assert places == [(own, 7321, Path("/home/me/profile")), (own, 0, None)]
