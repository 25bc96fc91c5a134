"""What the DevTools of a headed browser show of a plugin."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.plugins.scaffold import scaffold
from opentabs_py.session.session import OpenTabs

pytestmark = pytest.mark.anyio

TOOL = "src/tools/hello.ts"


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plugin = tmp_path_factory.mktemp("plugins") / "chat"
    scaffold("chat", plugin, language="ts")
    command = [str(Path(sys.executable).with_name("opentabs")), "build", str(plugin)]
    subprocess.run(command, check=True, capture_output=True)
    return plugin


async def source_in_devtools(tabs: OpenTabs) -> str | None:
    """Return the tool's source from the page's debugger; None if it has none."""
    page = await tabs.open_start_page("chat")
    await tabs.internals.bridge.wait_ready("chat")
    cdp = await page.context.new_cdp_session(page)
    scripts: list[dict[str, Any]] = []
    cdp.on("Debugger.scriptParsed", lambda script: scripts.append(script))  # noqa: PLW0108
    await cdp.send("Debugger.enable")
    [script] = [each for each in scripts if "/adapters/chat-" in each["url"]]
    kind, _, data = script["sourceMapURL"].partition(";base64,")
    if kind != "data:application/json":
        return None
    source_map = json.loads(base64.b64decode(data))
    number = source_map["sources"].index(f"../{TOOL}")
    return str(source_map["sourcesContent"][number])


async def test_a_browser_with_a_window_shows_the_source_of_a_plugin(chat: Path) -> None:
    settings = load_settings(port=0, headed=True)
    async with OpenTabs(
        settings=settings, plugins=[chat], args=["--ozone-platform=headless"]
    ) as tabs:
        with anyio.fail_after(PATIENT):
            shown = await source_in_devtools(tabs)
    source = (chat / TOOL).read_text().splitlines()
    assert shown is not None
    other = [line for line in shown.splitlines() if line not in source]
    assert len(shown.splitlines()) == len(source)
    assert other == ['import * as z from "zod";']  # as the build bundles it


async def test_one_without_is_sent_only_the_adapter(chat: Path) -> None:
    async with OpenTabs(settings=load_settings(port=0), plugins=[chat]) as tabs:
        with anyio.fail_after(PATIENT):
            assert await source_in_devtools(tabs) is None
