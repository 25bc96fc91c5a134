"""The replay of a page that tries in every way to reach another server."""

import pytest

from opentabs_py.testing import SyncOpenTabs


@pytest.mark.opentabs(recording="traps.har")
def test_traps(opentabs: SyncOpenTabs) -> None:
    page = opentabs.page
    page.goto(opentabs.recording.url)
    page.wait_for_function("document.body?.dataset.done === 'yes'")
    page.goto(opentabs.recording.url + "gone")
    page.wait_for_timeout(500)  # for a connection that the browser opens by itself


@pytest.mark.opentabs
def test_a_plain_test_reaches_it(opentabs: SyncOpenTabs) -> None:
    opentabs.page.goto(open("trap.txt").read())  # noqa: PTH123, SIM115
