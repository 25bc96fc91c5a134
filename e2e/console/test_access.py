"""Who may use the console, and what its page can do."""

import re
import signal
from math import inf
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from playwright.async_api import Browser, Page, Route, expect

from e2e.terminals import terminal
from opentabs_py.console import watch
from opentabs_py.console.access import Access
from opentabs_py.session.session import OpenTabs

# Playwright's pages are never hidden; a person's tabs are, but the one they look at.
HIDES = """
    let visibilityState = "visible";
    Object.defineProperty(document, "visibilityState", { get: () => visibilityState });
    globalThis.hide = () => {
        visibilityState = "hidden";
        document.dispatchEvent(new Event("visibilitychange"));
    };
"""


async def test_the_address_lets_one_browser_in_once(served: OpenTabs, browser: Browser) -> None:
    url = served.console_url()
    first, second = await browser.new_context(), await browser.new_context()
    page = await first.new_page()
    await page.goto(url)
    await expect(page.get_by_role("heading", name="Plugins")).to_be_visible()
    assert "token" not in page.url
    [cookie] = await first.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
    await page.reload()
    await expect(page.get_by_role("heading", name="Plugins")).to_be_visible()

    other = await second.new_page()
    answer = await other.goto(url)
    assert answer is not None
    assert answer.status == 401
    await expect(other.get_by_text("opentabs ui")).to_be_visible()
    await first.close()
    await second.close()


def test_the_address_that_serve_shows_in_a_terminal_is_whole(tmp_path: Path) -> None:
    command = ["opentabs", "serve", "--browser", "none", "--port", "0"]
    with terminal(command, tmp_path, COLUMNS="80", XDG_STATE_HOME=str(tmp_path)) as shown:
        shown.wait_for("Console at")
        shown.wait_for("?token=")
        shown.wait_for("\n")
        shown.process.send_signal(signal.SIGINT)
        shown.wait()
    [token] = re.findall(r"\?token=(\S+)", shown.output)
    assert len(token) == len(Access(0, lambda: 0.0).invite())


async def test_a_page_that_hears_nothing_for_long_connects_again(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "QUIET_AT_MOST", inf)  # as if the server was suspended
    await page.clock.install()
    await page.reload()
    state = page.locator("#state")
    await expect(state).to_have_attribute("data-state", "live")
    async with page.expect_request("**/console/api/stream?*"):
        await page.clock.fast_forward(15_000)
    await expect(state).to_have_attribute("data-state", "live")


async def test_there_may_be_more_tabs_than_a_browser_opens_connections(
    served: OpenTabs, browser: Browser
) -> None:
    context = await browser.new_context()
    await context.add_init_script(HIDES)
    tabs: list[Page] = []
    for _ in range(8):
        tab = await context.new_page()
        await tab.goto(served.console_url())
        await tab.get_by_role("link", name="Try it").click()
        await expect(tab.get_by_role("link", name="probe_echo")).to_be_visible()
        if tabs:
            await tabs[-1].evaluate("hide()")
        tabs.append(tab)

    first, second, *others, last = [each.locator("#state") for each in tabs]
    for each in (first, last):
        await expect(each).to_have_attribute("data-state", "live")
    for each in (second, *others):
        await expect(each).to_have_attribute("data-state", "connecting")
    await tabs[0].close()
    await expect(second).to_have_attribute("data-state", "live")
    await context.close()


async def test_a_window_goes_on_when_another_one_is_opened_by_an_address_of_its_own(
    page: Page, served: OpenTabs
) -> None:
    other = await page.context.new_page()
    await other.goto(served.console_url())
    await expect(other.get_by_role("heading", name="Plugins")).to_be_visible()
    for each in (page, other):
        await each.get_by_role("link", name="Try it").click()
        await expect(each.get_by_role("link", name="probe_echo")).to_be_visible()


async def test_two_windows_that_are_opened_at_once_by_addresses_of_their_own_both_go_on(
    served: OpenTabs, browser: Browser
) -> None:
    context = await browser.new_context()
    first, second = await context.new_page(), await context.new_page()
    is_second_in = anyio.Event()

    async def wait(route: Route) -> None:
        if "token" not in route.request.url:
            await is_second_in.wait()
        await route.continue_()

    await first.route(re.compile(r"/(\?token=.*)?$"), wait)
    async with anyio.create_task_group() as group:
        async with first.expect_response("**/?token=*"):
            group.start_soon(first.goto, served.console_url())
        await second.goto(served.console_url())
        await expect(second.locator("#state")).to_have_text("Live")
        is_second_in.set()
        await expect(first.locator("#state")).to_have_text(re.compile("Live|Run opentabs ui"))
    for each in (first, second):
        await each.reload()
        await expect(each.locator("#state")).to_have_text("Live")
    await context.close()


async def test_a_link_in_a_page_of_another_site_lets_its_visitor_in(
    served: OpenTabs, browser: Browser, site: str
) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{site.replace('127.0.0.1', 'localhost')}/page")
    await page.evaluate("(url) => { location.href = url; }", served.console_url())
    await expect(page.get_by_role("heading", name="Plugins")).to_be_visible()
    await context.close()


async def test_a_page_of_another_port_cannot_use_the_cookie(
    served: OpenTabs, page: Page, site: str
) -> None:
    other = await page.context.new_page()
    await other.goto(f"{site}/page")
    base = served.mcp_url.removesuffix("/mcp")
    outcome = await other.evaluate(
        """async (base) => {
            const send = (headers, mode) => fetch(`${base}/console/api/call`, {
              method: "POST", mode, credentials: "include", headers,
              body: JSON.stringify({tool: "probe_echo", arguments: {value: 1}}),
            }).then((answer) => answer.type, () => "refused");
            return [
              await send({"content-type": "application/json", "x-opentabs-console": "1"}, "cors"),
              await send({"content-type": "text/plain"}, "no-cors"),
              await fetch(`${base}/console/api/tools`, {credentials: "include"}).then(
                () => "read", () => "refused"),
            ];
        }""",
        base,
    )
    assert outcome == ["refused", "opaque", "refused"]
    async with httpx2.AsyncClient() as client:
        [cookie] = await page.context.cookies(base)
        headers = {"cookie": f"{cookie.get('name')}={cookie.get('value')}"}
        # What a program listening on the other port sees, and what it lacks.
        stolen = await client.get(f"{base}/console/api/calls/x", headers=headers)
        assert stolen.status_code == 401
        key = await page.evaluate("localStorage.getItem('opentabs-console')")
        headers["x-opentabs-console"] = key
        own = await client.get(f"{base}/console/api/calls/x", headers=headers)
        assert own.status_code == 404
        assert await other.evaluate("localStorage.getItem('opentabs-console')") is None
    assert not any(each["name"] == "probe_echo" for each in await running_calls(page))
    await other.close()


async def running_calls(page: Page) -> list[Any]:
    rows: list[Any] = await page.evaluate("""async () => {
        const headers = { "x-opentabs-console": localStorage.getItem("opentabs-console") };
        const answer = await fetch("/console/api/stream?since=0", { headers });
        const reader = answer.body.getReader();
        let text = "";
        while (!text.includes("\\n\\n")) {
          text += new TextDecoder().decode((await reader.read()).value);
        }
        await reader.cancel();
        return JSON.parse(text.slice(6)).calls.changed;
    }""")
    return rows
