"""A first result, then empty tests, which measure the test kit's overhead; run by the bench."""

import json
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


URL = "http://127.0.0.1:9/"
PAGE = "<!doctype html><title>A page</title><body>"
ANSWER = '{"messages": []}'


@pytest.mark.parametrize("number", range(30))
def test_further(opentabs: SyncOpenTabs, page: Page, number: int) -> None:
    del number
    assert opentabs.logs == ()
    assert page.url == "about:blank"


@pytest.fixture(scope="module")
def recording() -> str:
    """A recording of a page and three responses."""

    def entry(path: str, text: str, mime: str) -> object:
        headers = [{"name": "content-type", "value": mime}]
        content = {"mimeType": mime, "text": text}
        return {
            "startedDateTime": "2026-11-23T12:00:00Z",
            "request": {"method": "GET", "url": URL + path},
            "response": {"status": 200, "headers": headers, "content": content},
        }

    entries = [entry("", PAGE, "text/html")]
    entries += [entry(f"api?n={n}", ANSWER, "application/json") for n in range(3)]
    Path("site.har").write_text(json.dumps({"log": {"entries": entries}}))
    return URL


def use(opentabs: SyncOpenTabs, page: Page) -> None:
    page.goto(URL)
    for number in range(3):
        assert page.evaluate(f"fetch('api?n={number}').then((answer) => answer.text())") == ANSWER
    assert opentabs.call("probe_echo", value=1) == {"value": 1}


@pytest.mark.parametrize("number", range(20))
def test_routed(opentabs: SyncOpenTabs, page: Page, number: int) -> None:
    del number
    page.route(URL, lambda route: route.fulfill(body=PAGE, content_type="text/html"))
    page.route("**/api*", lambda route: route.fulfill(body=ANSWER, content_type="application/json"))
    use(opentabs, page)


@pytest.mark.parametrize("number", range(20))
@pytest.mark.usefixtures("recording")
@pytest.mark.opentabs(recording="site.har")
def test_replayed(opentabs: SyncOpenTabs, page: Page, number: int) -> None:
    del number
    use(opentabs, page)
