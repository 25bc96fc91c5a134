"""Chromium runs sandboxed, and a kept profile keeps its protections."""

import os
import subprocess
from pathlib import Path

import pytest

from e2e.browser.as_user import run_as_user
from e2e.chain import PROBE
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs

OPEN = f"""
import anyio, sys
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import BrowserError
from opentabs_py.session.session import OpenTabs

async def main():
    async with OpenTabs(plugins=[{str(PROBE)!r}], settings=load_settings(port=0)) as tabs:
        page = await tabs.context.new_page()
        await page.goto("chrome://sandbox")
        print(await page.inner_text("body"))

try:
    anyio.run(main)
except BrowserError as error:
    sys.exit(str(error))
"""

needs_namespaces = pytest.mark.skipif(
    subprocess.run(["unshare", "--user", "true"], check=False, capture_output=True).returncode != 0,
    reason="this system lets nobody have a user namespace",
)


@needs_namespaces
async def test_a_browser_has_its_sandbox() -> None:
    code, stdout, stderr = await run_as_user(OPEN)

    assert code == 0, stderr
    assert "You are adequately sandboxed" in stdout


@needs_namespaces
async def test_without_a_sandbox_an_error_lists_the_remedies() -> None:
    code, _, stderr = await run_as_user(OPEN, namespaces=False)

    assert code == 1
    assert "user namespaces" in stderr
    assert "OPENTABS_NO_SANDBOX=1" in stderr


@needs_namespaces
async def test_the_sandbox_is_off_only_when_it_is_turned_off_and_with_a_warning() -> None:
    code, stdout, stderr = await run_as_user(
        OPEN, namespaces=False, env={"OPENTABS_NO_SANDBOX": "1"}
    )

    assert code == 0, stderr
    assert "You are NOT adequately sandboxed" in stdout
    assert "without its sandbox" in stderr


async def test_a_kept_profile_is_not_softened_as_a_tests_is(tmp_path: Path, site: str) -> None:
    settings = load_settings(port=0, profile=tmp_path / "profile")
    async with OpenTabs(plugins=[PROBE], settings=settings) as tabs:
        page = await tabs.open(f"{site}/page")
        value = await tabs.call("probe_echo", {"value": 1})
        await page.goto("chrome://version")
        switches = (await page.inner_text("#command_line")).split()

    assert value == {"value": 1}
    for softened in ("--password-store=basic", "--use-mock-keychain", "--disable-popup-blocking"):
        assert softened not in switches
    # If there are several lists, Chromium uses the last.
    features = [each for each in switches if each.startswith("--disable-features=")][-1]
    assert "ThirdPartyStoragePartitioning" not in features
    assert "--disable-ipc-flooding-protection" not in switches


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has no sandbox without asking")
async def test_root_is_warned_when_a_profile_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = load_settings(port=0, profile=tmp_path / "profile")
    async with OpenTabs(plugins=[PROBE], settings=settings):
        pass

    assert "because root starts it" in caplog.text
