"""With `expose = "ready"`, the list of tools follows the tabs of a real browser."""

import re

import anyio
import pytest

from e2e.chain import PROBE
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs
from tests.clients import Hearing, hearing


async def wait_for_tools(client: Hearing, *, ready: bool) -> None:
    with anyio.fail_after(PATIENT):
        while ("probe_echo" in await client.tools()) != ready:
            await client.wait_for_change()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_are_listed_while_a_tab_of_their_site_is_open(mode: str, site: str) -> None:
    settings = load_settings(expose="ready", port=0, profile=None, headed=False)
    async with (
        OpenTabs(plugins=[PROBE], settings=settings) as tabs,
        hearing(tabs.mcp_url, mode) as client,
    ):
        assert await client.tools() == ["tabs_close", "tabs_list", "tabs_open"]

        page = await tabs.open(f"{site}/page")
        await client.wait_for_change()
        await wait_for_tools(client, ready=True)
        result = await client.client.call_tool("probe_echo", {"value": 1})
        assert result.structured_content == {"value": 1}

        await page.goto("about:blank")
        await client.wait_for_change()
        await wait_for_tools(client, ready=False)
        result = await client.client.call_tool("probe_echo", {"value": 1})
        assert result.is_error
        assert re.search("TAB_NOT_FOUND", str(result.content))
