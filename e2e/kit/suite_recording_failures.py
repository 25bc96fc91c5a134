"""Tests that record, of which only the one that passes may write its recording."""

import os
from collections.abc import Callable, Sequence

import pytest

from opentabs_py import Progress
from opentabs_py.testing import SyncOpenTabs, expect


def goes_back(progress: Progress) -> None:
    """Break its contract."""
    progress.report(progress=2)
    progress.report(progress=1)


@pytest.fixture(scope="session")
def opentabs_tools() -> Sequence[Callable[..., None]]:
    """A tool that breaks its contract."""
    return [goes_back]


def call_tool(opentabs: SyncOpenTabs) -> None:
    opentabs.page.goto(os.environ["SITE"])
    expect(opentabs.plugin()).to_be_ready()
    opentabs.call("notes_item", id=1)


@pytest.mark.opentabs(recording="made/passes.har")
def test_passes(opentabs: SyncOpenTabs) -> None:
    call_tool(opentabs)


@pytest.mark.opentabs(recording="made/fails.har")
def test_fails(opentabs: SyncOpenTabs) -> None:
    call_tool(opentabs)
    raise AssertionError


@pytest.mark.opentabs(recording="made/fails_softly.har")
def test_fails_softly(opentabs: SyncOpenTabs) -> None:
    call_tool(opentabs)
    expect.soft(opentabs.start("notes_item", id=1)).to_return({"id": 2})


@pytest.mark.opentabs(recording="made/breaks_its_contract.har")
def test_breaks_its_contract(opentabs: SyncOpenTabs) -> None:
    call_tool(opentabs)
    opentabs.call("goes_back")
