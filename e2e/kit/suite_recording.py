"""Tests that record the site in `e2e/sites/recorded_site.py`."""

import os

import pytest

from opentabs_py.testing import SyncOpenTabs, expect

IDS = [int(each) for each in os.environ.get("IDS", "1").split(",")]


def open_site(opentabs: SyncOpenTabs) -> None:
    site = os.environ["SITE"]
    opentabs.page.goto(opentabs.recording.url if site == "recorded" else site)
    expect(opentabs.plugin()).to_be_ready()


@pytest.mark.opentabs(recording="made/items.har")
def test_items(opentabs: SyncOpenTabs) -> None:
    open_site(opentabs)
    for each in IDS:
        assert opentabs.call("notes_item", id=each) == {"id": each, "title": f"Item {each}"}


@pytest.mark.opentabs(recording="made/items.har")
@pytest.mark.skipif("MORE" not in os.environ, reason="only one test uses the recording")
def test_another_item(opentabs: SyncOpenTabs) -> None:
    open_site(opentabs)
    assert opentabs.call("notes_item", id=4) == {"id": 4, "title": "Item 4"}
