"""The replay of a site whose service worker answered for it."""

import json
from pathlib import Path

import pytest

from opentabs_py.testing import SyncOpenTabs


@pytest.mark.opentabs(recording="worker.har")
def test_pages_get_what_they_got(opentabs: SyncOpenTabs) -> None:
    page, seen = opentabs.page, []
    for path in ("", "again"):
        page.goto(opentabs.recording.url + path)
        page.wait_for_function("document.body?.dataset.seen !== undefined")
        seen.append(page.evaluate("document.body.dataset.seen"))
    assert seen == json.loads(Path("seen.json").read_text())
