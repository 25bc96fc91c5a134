"""The page to try a plugin on: its playground, or else its homepage."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from opentabs_py.config.settings import load_settings
from opentabs_py.errors import BrowserError
from opentabs_py.session.session import OpenTabs


def plugin(directory: Path, name: str, **about: Any) -> Path:
    (directory / "dist").mkdir(parents=True)
    described = {
        "displayName": name,
        "description": name,
        "urlPatterns": ["http://127.0.0.1/*"],
        **about,
    }
    package = {"name": f"opentabs-plugin-{name}", "version": "1.0.0", "opentabs": described}
    (directory / "package.json").write_text(json.dumps(package))
    (directory / "dist" / "tools.json").write_text('{"tools": []}')
    (directory / "dist" / "adapter.iife.js").write_text("")
    return directory


def with_playground(directory: Path) -> Path:
    (directory / "playground" / "api").mkdir(parents=True)
    (directory / "playground" / "index.html").write_text("<title>A playground</title>")
    (directory / "playground" / "api" / "me.json").write_text('{"name": "Ada"}')
    return directory


async def test_a_playground_is_served_before_a_homepage_is_opened(
    tmp_path: Path, site: str
) -> None:
    home = f"{site}/page"
    both = with_playground(plugin(tmp_path / "both", "both", homepage=home))
    elsewhere = ["https://example.com/*"]
    for_others = plugin(tmp_path / "others", "others", homepage=home, urlPatterns=elsewhere)
    neither = plugin(tmp_path / "neither", "neither")
    plugins = [both, with_playground(for_others), neither]
    async with OpenTabs(plugins=plugins, settings=load_settings(port=0)) as tabs:
        playground = await tabs.open_start_page("both")
        again = await tabs.open_start_page("both")
        homepage = await tabs.open_start_page("others")

        assert await playground.title() == "A playground"
        assert await playground.evaluate("fetch('api/me.json').then((me) => me.json())") == {
            "name": "Ada"
        }
        assert again.url == playground.url
        assert homepage.url == home
        assert await tabs.start_page_url("neither") is None
        with pytest.raises(BrowserError, match=r"neither has no playground/ .* and no homepage"):
            await tabs.open_start_page("neither")
        with pytest.raises(LookupError, match="no plugin 'nobody'"):
            await tabs.open_start_page("nobody")
        with pytest.raises(LookupError, match="Name one of them: both, others, neither"):
            await tabs.open_start_page()
        address = playground.url

    with pytest.raises(httpx2.ConnectError):  # it ends with the session
        httpx2.get(address)


async def test_a_page_that_is_not_there_is_opened_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = with_playground(plugin(tmp_path / "both", "both"))
    async with OpenTabs(plugins=[directory], settings=load_settings(port=0)) as tabs:
        address = (await tabs.start_page_url("both") or "").removeprefix("http://")
        page = await tabs.open(f"{address}nothing")

        assert page.url == f"http://{address}nothing"
    assert f"{address}nothing answered 404 Not Found" in caplog.text


async def test_a_playground_serves_nothing_from_outside_it(tmp_path: Path) -> None:
    directory = with_playground(plugin(tmp_path / "both", "both"))
    (tmp_path / "both" / "secret.txt").write_text("secret")
    async with OpenTabs(plugins=[directory], settings=load_settings(port=0)) as tabs:
        page = await tabs.open_start_page("both")

        outside = await page.evaluate(
            "Promise.all(['/../secret.txt', '/%2e%2e/secret.txt', '/..%2fsecret.txt']"
            ".map((path) => fetch(path).then((answer) => answer.status)))"
        )

    assert outside == [404, 404, 404]


def test_call_opens_the_start_page_of_a_plugin_named_with_two_underscores(tmp_path: Path) -> None:
    directory = with_playground(plugin(tmp_path, "hand"))
    look = {"displayName": "Look", "description": "Look", "input_schema": {"type": "object"}}
    (tmp_path / "dist" / "tools.json").write_text(json.dumps({"tools": [{"name": "look", **look}]}))
    (tmp_path / "dist" / "adapter.iife.js").write_text(
        "globalThis.__openTabs.adapters.hand = {isReady: async () => true,"
        " tools: [{name: 'look', handle: async () => ({title: document.title})}]};"
    )
    plugins = ["--plugin", str(directory), "--plugin", str(tmp_path / "left out")]
    run = subprocess.run(
        [sys.executable, "-m", "opentabs_py", "call", "hand__look", *plugins],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (run.returncode, json.loads(run.stdout or "null")) == (0, {"title": "A playground"})
