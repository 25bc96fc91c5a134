"""Tests with a profile and a port of the user's own; run by test_isolation.py.

The tests run in this order. The recording `site.har` has a cookie of its own.
"""

import socket

import pytest
from playwright.sync_api import BrowserContext, Page

from opentabs_py.config.settings import Settings

pytestmark = pytest.mark.usefixtures("opentabs")


@pytest.fixture(scope="session")
def opentabs_settings(
    opentabs_settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    profile = tmp_path_factory.mktemp("profile") / "own"
    return opentabs_settings.model_copy(update={"profile": profile, "port": port})


def names(context: BrowserContext) -> list[str]:
    return [each["name"] for each in context.cookies()]


def test_sign_in(context: BrowserContext) -> None:
    url = "http://site.test/"
    context.add_cookies([{"name": "own", "value": "1", "url": url, "expires": 2e9}])


@pytest.mark.browser_context_args(locale="de-DE")
def test_with_arguments(page: Page, context: BrowserContext) -> None:
    assert (page.evaluate("navigator.language"), names(context)) == ("de-DE", ["own"])


@pytest.mark.opentabs(recording="site.har")
def test_replay(context: BrowserContext) -> None:
    assert names(context) == ["recorded"]


def test_still_signed_in(context: BrowserContext) -> None:
    assert names(context) == ["own"]
