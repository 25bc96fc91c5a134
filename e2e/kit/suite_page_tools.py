"""Tests of a page that registers tools; they replay its recording."""

import pytest

from opentabs_py.testing import SyncOpenTabs, expect


@pytest.mark.opentabs(recording="stock.har")
def test_stock(opentabs: SyncOpenTabs) -> None:
    page = opentabs.page
    page.goto(opentabs.recording.url)
    expect(page).to_offer_tool("stock")
    expect(page).not_to_offer_tool("sales")
    [stock] = opentabs.page_tools(page)
    call = stock.start(id=3)
    expect(call).to_progress([{"message": "Asking"}])
    expect(call).to_return({"id": 3, "left": 7})
