"""A built plugin, and a browser for the page of its tests."""

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from e2e.documents import run
from e2e.live_page import chromium
from opentabs_py.config.settings import load_settings


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built plugin without tests."""
    directory = tmp_path_factory.mktemp("plugins")
    made = run(["opentabs", "new", "chat", "--js"], directory)
    assert made.returncode == 0, made.stderr
    plugin = directory / "chat"
    built = run(["opentabs", "build", "."], plugin)
    assert built.returncode == 0, built.stderr
    shutil.rmtree(plugin / "tests")
    return plugin


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium(load_settings(port=0)) as running:
        yield running
