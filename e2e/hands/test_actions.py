"""Agents use the elements of a page."""

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Route as PageRoute

from e2e.hands.rig import Rig, ref
from e2e.waiting import PATIENT
from opentabs_py.errors import ToolFailedError
from opentabs_py.hands import tools


async def test_a_form_is_filled_in_and_sent(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("type", ref=ref(snapshot, 'textbox "Name"'), text="Ada")
    await rig.call("select", ref=ref(snapshot, 'combobox "Size"'), values=["large"])

    done = await rig.call("click", ref=ref(snapshot, 'button "Order"'))

    assert "Sent Ada large" in done["changed"]
    assert "Cart" not in done["changed"]


async def test_a_key_is_pressed_where_the_focus_is(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("type", ref=ref(snapshot, 'textbox "Name"'), text="Bob")
    done = await rig.call("press", key="Enter")
    assert "Sent Bob small" in done["changed"]


async def test_a_text_is_typed_key_by_key_where_a_page_reacts_to_each(rig: Rig) -> None:
    search = ref(await rig.open(), 'textbox "Search"')
    await rig.call("type", ref=search, text="old")
    done = await rig.call("type", ref=search, text="ab", slowly=True, submit=True)
    assert "a b Enter" in done["changed"]


async def test_a_character_that_is_on_no_key_is_typed(rig: Rig) -> None:
    snapshot = await rig.open()
    name = ref(snapshot, 'textbox "Name"')
    await rig.call("press", key="ä", ref=name)
    done = await rig.call("press", key="🎉")
    assert "ä🎉" in done["changed"]


async def test_a_download_is_named_and_is_no_error(rig: Rig) -> None:
    await rig.open()
    done = await rig.call("navigate", url=f"{rig.url}report")
    assert (done["url"], done["downloads"]) == (rig.url, ["report.csv"])
    link = "document.body.innerHTML = '<a href=/report>Report</a>'"
    await rig.page.evaluate(link)
    shown = (await rig.call("snapshot"))["snapshot"]
    assert (await rig.call("click", ref=ref(shown, 'link "Report"')))["downloads"] == ["report.csv"]
    assert "downloads" not in await rig.call("press", key="Escape")


async def test_the_pdf_viewer_s_own_requests_are_not_listed(rig: Rig) -> None:
    await rig.open()
    await rig.call("network")
    await rig.call("navigate", url=f"{rig.url}paper.pdf")
    urls = [each["url"] for each in (await rig.call("network"))["requests"]]
    assert f"{rig.url}paper.pdf" in urls
    assert [url for url in urls if not url.startswith("http")] == []


async def test_a_key_is_pressed_on_an_element(rig: Rig) -> None:
    search = ref(await rig.open(), 'textbox "Search"')
    done = await rig.call("press", key="Shift+K", ref=search)
    assert "Shift K" in done["changed"]


@pytest.mark.parametrize(
    ("button", "shown"), [("Framed", 'button "Pressed"'), ("Shadowed", "From the shadow")]
)
async def test_frames_and_shadows_are_used_like_the_page(rig: Rig, button: str, shown: str) -> None:
    snapshot = await rig.open()
    done = await rig.call("click", ref=ref(snapshot, f'button "{button}"'))
    assert shown in done["changed"]


async def test_a_dialog_is_shown_and_answered(rig: Rig) -> None:
    snapshot = await rig.open()
    ask = ref(snapshot, 'button "Ask"')

    asked = await rig.call("click", ref=ask)
    blocked = await rig.fails("DIALOG_OPEN", "click", ref=ask)
    answered = await rig.call("dialog", accept=True)

    assert asked["dialog"] == {"type": "confirm", "message": "Really?"}
    assert "page_dialog" in blocked
    assert "Confirmed" in answered["changed"]
    await rig.fails("NO_DIALOG", "dialog", accept=True)


async def test_a_dialog_is_dismissed(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("click", ref=ref(snapshot, 'button "Ask"'))
    await rig.call("dialog", accept=False)
    assert "Confirmed" not in (await rig.call("snapshot"))["snapshot"]
    await rig.fails("NO_DIALOG", "dialog", accept=True)


async def test_a_prompt_is_answered_with_a_text(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("click", ref=ref(snapshot, 'button "Prompt"'))
    assert "Huge" in (await rig.call("dialog", accept=True, text="Huge"))["changed"]


async def test_an_element_that_is_gone_is_named_with_what_looks_like_it(rig: Rig) -> None:
    snapshot = await rig.open()
    order = ref(snapshot, 'button "Order"')
    await rig.page.evaluate(
        "document.querySelector('form button').outerHTML = '<button>Order</button>'"
    )

    message = await rig.fails("STALE_REF", "click", ref=order)

    [instead] = re.findall(r"Similar elements now: ((?:f\d+)?e\d+)", message)
    assert "Sent" in (await rig.call("click", ref=instead))["changed"]
    again = await rig.fails("STALE_REF", "click", ref=order)  # what it saw since is without it
    assert 'button "Order", is gone. Similar elements now: ' in again
    assert "no element e99999" in await rig.fails("STALE_REF", "click", ref="e99999")


async def test_a_click_that_was_done_is_not_to_be_repeated_though_the_next_page_is_late(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.open()
    await rig.page.evaluate("document.body.innerHTML = '<a href=/late>Pay</a>'")
    pay = ref((await rig.call("snapshot"))["snapshot"], 'link "Pay"')
    arrived, answered = anyio.Event(), anyio.Event()

    async def hold(route: PageRoute) -> None:
        arrived.set()
        await answered.wait()
        await route.abort()

    await rig.page.route("**/late", hold)
    monkeypatch.setattr(tools, "ACT_WITHIN", 5.0)  # enough for the click
    with pytest.raises(ToolFailedError) as caught:
        await rig.call("click", ref=pay)
    was_clicked = arrived.is_set()
    answered.set()
    await rig.page.unroute_all(behavior="wait")

    assert was_clicked
    detail = caught.value.detail
    assert (detail.code, detail.retryable) == ("ACTION_TIMED_OUT", False)
    assert "Do not click again" in detail.message


async def test_what_covers_an_element_is_named(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.page.evaluate(
        "document.querySelector('main > div').style.cssText = 'position: fixed; inset: 0'"
    )
    covered = ref(snapshot, 'button "Covered"')
    message = ""
    for _ in range(3):  # on a very busy machine, time may be up before the search starts
        message = await rig.fails("ACTION_TIMED_OUT", "click", ref=covered)
        if "intercepts pointer events" in message:
            break
    assert "intercepts pointer events" in message


async def test_only_files_of_the_servers_directory_are_uploaded(rig: Rig, tmp_path: Path) -> None:
    snapshot = await rig.open()
    photo = ref(snapshot, 'button "Photo"')
    (tmp_path / "secret.txt").write_text("x")

    done = await rig.call("upload", ref=photo, files=["photo.png"])

    assert "photo.png" in done["changed"]
    await rig.fails("NOT_FOUND", "upload", ref=photo, files=[str(tmp_path / "secret.txt")])


async def test_a_file_is_uploaded_with_the_button_that_opens_the_chooser(rig: Rig) -> None:
    attach = ref(await rig.open(), 'button "Attach"')
    done = await rig.call("upload", ref=attach, files=["photo.png"])
    assert "photo.png" in done["changed"]


@pytest.mark.parametrize(
    ("field", "what", "name", "arguments", "why"),
    [
        ("<input disabled>", "textbox", "type", {"text": "x"}, "textbox is disabled"),
        ("<input disabled>", "textbox", "type", {"text": "x", "slowly": True}, "is disabled"),
        ("<input readonly>", "textbox", "type", {"text": "x"}, "textbox is read-only"),
        ("<button disabled>Buy</button>", "button", "click", {}, 'button "Buy" is disabled'),
        (
            "<select disabled><option>A</select>",
            "combobox",
            "select",
            {"values": ["A"]},
            "is disabled",
        ),
        ("<input type=file disabled>", "button", "upload", {"files": ["photo.png"]}, "is disabled"),
    ],
)
async def test_an_action_on_a_disabled_element_says_so(
    rig: Rig, field: str, what: str, name: str, arguments: dict[str, Any], why: str
) -> None:
    await rig.open()
    await rig.page.set_content(field)
    used = ref((await rig.call("snapshot"))["snapshot"], what)
    assert why in await rig.fails("ACTION_FAILED", name, ref=used, **arguments)


async def test_an_option_that_is_not_there_fails_with_those_that_are(rig: Rig) -> None:
    await rig.open()
    await rig.page.set_content(
        "<select aria-label=Color><option>Red<optgroup label=Cold><option value=b>Blue</select>"
    )
    color = ref((await rig.call("snapshot"))["snapshot"], "combobox")
    said = await rig.fails("ACTION_FAILED", "select", ref=color, values=["Green"])
    assert 'combobox "Color" has no such option. It has: Red, Blue' in said


async def test_a_disabled_option_cannot_be_chosen(rig: Rig) -> None:
    await rig.open()
    await rig.page.set_content("<select><option>Red<option disabled>Blue</select>")
    color = ref((await rig.call("snapshot"))["snapshot"], "combobox")
    said = await rig.fails("ACTION_FAILED", "select", ref=color, values=["Blue"])
    assert "The option is disabled" in said


async def test_a_tab_that_an_action_closes_is_said_to_be_closed(rig: Rig) -> None:
    await rig.open()
    async with rig.page.expect_popup() as opening:
        await rig.page.evaluate("void open('/?closing')")
    opened = await opening.value
    await opened.wait_for_load_state()
    await opened.evaluate(
        "document.body.innerHTML = '<button onclick=window.close()>Close</button>'"
    )
    listed = (await rig.tabs.call("tabs_list"))["tabs"]
    [tab] = [each["tabId"] for each in listed if each["url"].endswith("?closing")]
    close = ref((await rig.call("snapshot", tabId=tab))["snapshot"], 'button "Close"')
    done = await rig.call("click", ref=close, tabId=tab)
    assert done["changed"] == "(the tab is closed)"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for what comes soon, however busy the machine is."""
    monkeypatch.setattr("opentabs_py.hands.used_page.USABLE_WITHIN", PATIENT)


@pytest.mark.usefixtures("soon")
async def test_an_option_that_is_added_soon_is_waited_for(rig: Rig) -> None:
    await rig.open()
    await rig.page.set_content("<select><option>Red</select>")
    color = ref((await rig.call("snapshot"))["snapshot"], "combobox")
    await rig.page.evaluate(
        """() => {
          const select = document.querySelector("select");
          setTimeout(() => select.add(new Option("Green")), 500);
        }"""
    )
    assert "Green" in (await rig.call("select", ref=color, values=["Green"]))["changed"]


@pytest.mark.usefixtures("soon")
async def test_an_element_that_gets_enabled_is_waited_for(rig: Rig) -> None:
    await rig.open()
    await rig.page.set_content("<button disabled onclick='this.textContent = 1'>Buy</button>")
    buy = ref((await rig.call("snapshot"))["snapshot"], "button")
    await rig.page.evaluate(
        "() => void setTimeout(() => (document.querySelector('button').disabled = false), 500)"
    )
    assert 'button "1"' in (await rig.call("click", ref=buy))["changed"]
