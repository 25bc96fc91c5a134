"""The hands' tools, called as an agent calls them; run by test_kit_hands.py."""

import pytest
from playwright.sync_api import Dialog, Page

from opentabs_py import ToolFailedError
from opentabs_py.testing import SyncMcpClient, SyncOpenTabs, expect

SHOP = """<title>Shop</title><h1>Shop</h1><label>Name <input></label>
<button onclick="this.textContent = 'Ordered by ' + document.querySelector('input').value"
>Order</button>
<button onclick="this.textContent = confirm('Really?')">Ask</button>"""
OTHER = "<title>Other</title><button>Order</button><button>Order</button>"


def test_a_page_is_filled_in_as_an_agent_does_it(opentabs: SyncOpenTabs, page: Page) -> None:
    page.set_content(SHOP)
    hands = opentabs.hands

    assert 'heading1 "Shop"' in hands.snapshot(page)
    hands.call("page_type", ref=hands.ref('textbox "Name"'), text="Ada")
    done = hands.call("page_click", {"ref": hands.ref('button "Order"')})

    assert 'button "Ordered by Ada"' in done["changed"]
    assert page.get_by_role("button", name="Ordered by Ada").is_visible()


def test_each_page_is_used_by_itself(opentabs: SyncOpenTabs, page: Page) -> None:
    page.set_content(SHOP)
    other = opentabs.context.new_page()
    other.set_content(OTHER)

    assert "Shop" in opentabs.hands.snapshot(page)
    assert "Shop" not in opentabs.hands.snapshot(other)
    with pytest.raises(LookupError, match='button "Order" at e'):
        opentabs.hands.ref('button "Order"', other)
    with pytest.raises(LookupError, match='no link "Cart"'):
        opentabs.hands.ref('link "Cart"', page)


def test_a_call_fails_as_it_fails_for_an_agent(opentabs: SyncOpenTabs, page: Page) -> None:
    page.set_content(SHOP)
    call = opentabs.hands.start("page_click", ref="e999")
    expect(call).to_fail(code="STALE_REF")
    with pytest.raises(ToolFailedError, match="has no dialog"):
        opentabs.hands.call("page_dialog", accept=True)


def test_a_client_has_the_same_tools(
    opentabs: SyncOpenTabs, mcp: SyncMcpClient, page: Page
) -> None:
    page.set_content(SHOP)
    assert "page_click" in [tool.name for tool in mcp.list_tools()]
    value = mcp.call("page_click", {"ref": opentabs.hands.ref('button "Order"')})
    assert 'button "Ordered by"' in value["changed"]


def test_a_dialog_is_left_to_the_hands(opentabs: SyncOpenTabs, page: Page) -> None:
    dialogs: list[Dialog] = []

    def leave(dialog: Dialog) -> None:  # without a handler, Playwright dismisses it
        dialogs.append(dialog)

    page.on("dialog", leave)
    page.set_content(SHOP)

    asked = opentabs.hands.call("page_click", ref=opentabs.hands.ref('button "Ask"'))
    answered = opentabs.hands.call("page_dialog", accept=True)

    assert asked["dialog"]["message"] == "Really?"
    assert 'button "true"' in answered["changed"]
    assert len(dialogs) == 1
