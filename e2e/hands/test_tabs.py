"""Agents go to addresses, wait for pages, and choose among tabs."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from playwright.async_api import Page
from playwright.async_api import Route as PageRoute

from e2e.hands.rig import Rig, hand_settings, ref
from e2e.waiting import PATIENT
from opentabs_py.core.protocol import TabTarget
from opentabs_py.hands.pages import Driven, HandPages
from opentabs_py.session.session import OpenTabs


async def test_what_comes_later_is_waited_for(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("click", ref=ref(snapshot, 'button "Later"'))
    await rig.call("wait_for", text="Arrived")
    assert "Arrived" in (await rig.call("snapshot"))["snapshot"]
    message = await rig.fails("ACTION_TIMED_OUT", "wait_for", text="Never", seconds=0.2)
    assert '"Never" is not shown' in message


@pytest.mark.parametrize(
    "html",
    [
        "<p hidden>Saved</p><p id=shown>Saved</p>",
        "<iframe srcdoc='<p>Saved</p>' id=shown></iframe>",
    ],
)
async def test_a_text_is_found_in_frames_and_behind_a_hidden_one(rig: Rig, html: str) -> None:
    await rig.open()
    await rig.page.evaluate("(html) => (document.body.innerHTML = html)", html)
    await rig.call("wait_for", text="Saved")
    message = await rig.fails("ACTION_TIMED_OUT", "wait_for", gone="Saved", seconds=0.3)
    assert '"Saved" is not gone' in message
    await rig.page.evaluate("() => void setTimeout(() => shown.remove(), 300)")
    await rig.call("wait_for", gone="Saved")


async def test_an_address_is_waited_for_though_its_page_does_not_load(rig: Rig) -> None:
    await rig.open()
    answered = anyio.Event()

    async def hold(route: PageRoute) -> None:
        await answered.wait()
        await route.abort()

    async def show(route: PageRoute) -> None:
        await route.fulfill(body="<img src=/pending>", content_type="text/html")

    await rig.page.route("**/pending", hold)
    await rig.page.route("**/?step=3", show)
    await rig.page.goto(f"{rig.url}?step=3", wait_until="commit")
    done = await rig.call("wait_for", url="step=3", seconds=2)
    answered.set()
    await rig.page.unroute_all(behavior="wait")
    assert done["url"].endswith("?step=3")


async def test_an_address_is_waited_for(rig: Rig) -> None:
    snapshot = await rig.open()
    await rig.call("click", ref=ref(snapshot, 'button "Next"'))
    done = await rig.call("wait_for", url="step=2")
    assert done["url"].endswith("/?step=2")
    await rig.fails("INVALID_ARGUMENTS", "wait_for", url="step=2", text="Shop")
    await rig.fails("INVALID_ARGUMENTS", "wait_for")


async def test_a_page_is_reloaded(rig: Rig) -> None:
    search = ref(await rig.open(), 'textbox "Search"')
    await rig.call("press", key="K", ref=search)
    reloaded = await rig.call("navigate", action="reload")
    assert reloaded["title"] == "Shop"
    assert await rig.page.text_content("#keys") == ""


async def test_a_tab_goes_to_addresses_and_back(rig: Rig) -> None:
    await rig.open()
    there = await rig.call("navigate", url=f"{rig.url}long")
    back = await rig.call("navigate", action="back")
    again = await rig.call("navigate", action="forward")
    assert [each["title"] for each in (there, back, again)] == ["Long", "Shop", "Long"]
    await rig.fails("INVALID_ARGUMENTS", "navigate", url="file:///etc/passwd")
    await rig.fails("INVALID_ARGUMENTS", "navigate")


async def test_a_page_comes_back_from_the_back_forward_cache_with_what_was_typed(rig: Rig) -> None:
    cached = ["--disable-back-forward-cache"]
    async with OpenTabs(settings=hand_settings(), ignore_default_args=cached) as tabs:
        page = await tabs.open(rig.url)
        await page.evaluate("document.body.innerHTML = '<p>First</p><div contenteditable></div>'")
        await page.add_style_tag(content="div { height: 20px }")
        there = await tabs.call("page_navigate", {"url": f"{rig.url}long"})

        back = await tabs.call("page_navigate", {"action": "back"})
        editor = ref((await tabs.call("page_snapshot"))["snapshot"], "textbox")
        typed = await tabs.call("page_type", {"ref": editor, "text": "News"})
        text = await page.inner_text("p")
        again = await tabs.call("page_navigate", {"action": "forward"})

    assert text == "First"
    assert "First" in back["changed"]  # which a page that was loaded again would not have
    assert "News" in typed["changed"]
    assert [each["title"] for each in (there, back, again)] == ["Long", "Shop", "Long"]


async def test_a_dialog_of_a_new_tab_waits_for_its_answer(rig: Rig) -> None:
    await rig.open()
    await rig.page.evaluate("document.body.innerHTML = '<a href=/asking target=_blank>Ask</a>'")
    link = ref((await rig.call("snapshot"))["snapshot"], 'link "Ask"')
    async with rig.page.context.expect_event("dialog") as asking:
        await rig.call("click", ref=link)
    asked = (await asking.value).page
    assert asked is not None
    [tab] = [
        each["tabId"]
        for each in (await rig.tabs.call("tabs_list"))["tabs"]
        if each["url"].endswith("/asking")
    ]
    blocked = await rig.fails("DIALOG_OPEN", "snapshot", tabId=tab)
    answered = await rig.call("dialog", accept=True, tabId=tab)
    await asked.close()

    assert "Delete all?" in blocked
    assert answered["title"] == "true"


async def test_tabs_are_listed_though_a_page_does_not_answer(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.open()
    busy = await rig.tabs.open(f"{rig.url}long")
    arrived, answered = anyio.Event(), anyio.Event()

    async def hold(route: PageRoute) -> None:
        arrived.set()
        await answered.wait()
        await route.fulfill()

    await busy.route("**/held", hold)
    await busy.evaluate(
        """() => void setTimeout(() => {
          const request = new XMLHttpRequest();
          request.open("GET", "/held", false);
          request.send();
        })"""
    )
    with anyio.fail_after(PATIENT):
        await arrived.wait()
    monkeypatch.setattr("opentabs_py.hands.used_page.TITLE_WITHIN", 5.0)  # enough for the other
    listed = (await rig.tabs.call("tabs_list"))["tabs"]
    answered.set()
    await busy.close()

    assert {each["url"]: each["title"] for each in listed} == {rig.url: "Shop", busy.url: ""}


async def test_all_tabs_are_listed_and_may_be_named(rig: Rig) -> None:
    await rig.open()
    other = await rig.tabs.open(f"{rig.url}long")
    listed = (await rig.tabs.call("tabs_list"))["tabs"]
    by_title = {each["title"]: each["tabId"] for each in listed}

    shown = await rig.call("snapshot", tabId=by_title["Shop"])
    assert shown["title"] == "Shop"
    assert (await rig.call("snapshot"))["title"] == "Long"  # the active one
    await rig.fails("TAB_NOT_FOUND", "snapshot", tabId=12)
    await other.close()


async def test_a_tab_that_a_click_opens_is_in_its_result_and_has_references_of_its_own(
    rig: Rig,
) -> None:
    await rig.open()
    await rig.page.evaluate("document.querySelector('nav a').target = '_blank'")
    link = ref((await rig.call("snapshot"))["snapshot"], 'link "Cart"')

    clicked = await rig.call("click", ref=link)

    [opened] = clicked["opened"]
    assert opened["url"] == f"{rig.url}cart"
    said = await rig.fails("STALE_REF", "click", ref=link)  # the new tab is the active one
    assert "pass the tabId of the tab that has it" in said
    there = await rig.call("snapshot", tabId=opened["tabId"])
    item = ref(there["snapshot"], 'link "Item 3"')
    done = await rig.call("click", ref=item, tabId=opened["tabId"])
    assert done["url"] == f"{rig.url}3"
    assert "opened" not in done
    await rig.page.context.pages[-1].close()


async def test_a_tab_that_opens_while_tabs_are_looked_for_is_found(rig: Rig) -> None:
    context = rig.tabs.context
    opened: list[Page] = []

    async def browsers() -> Sequence[Driven]:
        return [Driven(context, attached=False)]

    async def targets() -> Sequence[TabTarget]:
        if not opened:  # after Playwright returned its pages
            opened.append(await context.new_page())
        session: Any = await context.new_cdp_session(opened[0])
        info = await session.send("Target.getTargetInfo")
        target = info["targetInfo"]["targetId"]
        return [TabTarget(tab_id=7, target_id=target, active=True, last_used=0)]

    pages = HandPages(
        browsers,
        targets,
        lambda: "",
        anyio.lowlevel.checkpoint,
        mask=str,
        is_own=lambda _url: False,
    )
    found = await pages.tabs(7)

    assert [(each.number, each.page) for each in found] == [(7, opened[0])]
    await opened[0].close()


async def test_a_browser_that_was_closed_is_launched_again_by_the_next_call(rig: Rig) -> None:
    async with OpenTabs(settings=hand_settings(), relaunch_urls=[rig.url]) as tabs:
        await tabs.context.close()
        await tabs.browser.wait_gone()

        shown = await tabs.call("page_snapshot")

        assert 'heading1 "Shop"' in shown["snapshot"]


async def test_without_hands_there_are_no_such_tools() -> None:
    settings = hand_settings(hands=False)
    async with OpenTabs(settings=settings) as tabs:
        assert [tool.name for tool in tabs.tools if "page_" in tool.name] == []
