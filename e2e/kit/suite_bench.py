"""A first result, then empty tests, which measure the test kit's overhead; run by bench.py."""

import time
from pathlib import Path

import pytest
from playwright.sync_api import Page

from opentabs_py.testing import SyncOpenTabs


def test_first_result(opentabs: SyncOpenTabs, page: Page) -> None:
    page.route("**/*", lambda route: route.fulfill(body="<body>", content_type="text/html"))
    page.goto("http://127.0.0.1:9/")
    assert opentabs.call("probe_echo", value=1) == {"value": 1}
    Path("first").write_text(str(time.time()))


@pytest.mark.parametrize("number", range(30))
def test_further(opentabs: SyncOpenTabs, page: Page, number: int) -> None:
    del number
    assert opentabs.logs == ()
    assert page.url == "about:blank"
