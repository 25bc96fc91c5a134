"""No plugin runs in our own pages, where it could answer on the user's behalf."""

import pytest

from e2e.chain import wait_for_document
from opentabs_py.session.session import OpenTabs


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_nothing_of_a_plugin_or_of_the_runtime_is_in_the_console(
    tabs: OpenTabs, site: str, host: str
) -> None:
    """The probe's patterns match every page of this machine."""
    console = tabs.console_url().replace("127.0.0.1", host)
    page = await tabs.context.new_page()
    try:
        await page.goto(console)
        await page.get_by_role("navigation").first.wait_for()
        address = page.url
        # A page opened later has its plugin, so this page would have it, too.
        other = await tabs.context.new_page()
        await other.goto(f"{site}/page?{host}")
        await wait_for_document(tabs, f"{site}/page?{host}")
        await other.close()
        assert await page.evaluate("typeof globalThis.__openTabs") == "undefined"
        assert address not in [each.url for each in tabs.internals.bridge.tabs.documents]
        assert not tabs.internals.bridge.plugin_sync.serving(address)
    finally:
        await page.close()
