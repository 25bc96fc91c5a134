"""The console, a web page that shows a server live: a real browser and a real server."""

import json
import logging
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from playwright.async_api import Browser, Page, Route, expect

from e2e.chain import PROBE
from e2e.console import (
    HOSTILE,
    PATIENT,
    READ_ALOUD,
    VIEWS,
    chromium,
    console_page,
    go,
    write_broken,
    write_evil,
    write_forms,
    write_lacking,
)
from e2e.terminals import terminal
from opentabs_py import Progress, ToolError, tool
from opentabs_py.config.settings import load_settings
from opentabs_py.console.access import Access
from opentabs_py.errors import CallError, ChainError
from opentabs_py.session.session import OpenTabs

WITHIN = PATIENT / 1000  # s


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the plugins."""
    return tmp_path_factory.mktemp("plugins")


@pytest.fixture(scope="module")
async def served(
    directory: Path,
    site: str,  # noqa: ARG001 (entered before, because it is left after)
) -> AsyncGenerator[OpenTabs]:
    """A server with plugins of all kinds."""
    settings = load_settings(port=0, profile=None, headed=False)
    plugins = [
        PROBE,
        write_forms(directory),
        write_evil(directory),
        write_broken(directory),
        write_lacking(directory, "days"),
    ]
    async with OpenTabs(plugins=plugins, settings=settings) as tabs:
        tabs.internals.keep_history()
        yield tabs


@pytest.fixture(scope="module")
async def browser(served: OpenTabs) -> AsyncGenerator[Browser]:
    async with chromium(served.settings) as running:
        yield running


@pytest.fixture
async def tab(served: OpenTabs, site: str) -> AsyncGenerator[Page]:
    """A tab in which the plugins are ready."""
    page = await served.open(f"{site}/page")
    with anyio.fail_after(WITHIN):
        while any(served.plugin(name).status != "ready" for name in ("probe", "forms", "evil")):
            await served.internals.bridge.changed().wait()
    yield page
    await page.goto("about:blank")


@pytest.fixture
async def page(served: OpenTabs, browser: Browser) -> AsyncGenerator[Page]:
    async with console_page(browser, served) as opened:
        yield opened


# --- access ---


async def test_the_address_lets_one_browser_in_once(served: OpenTabs, browser: Browser) -> None:
    url = served.console_url()
    first, second = await browser.new_context(), await browser.new_context()
    page = await first.new_page()
    await page.goto(url)
    await expect(page.get_by_role("heading", name="Plugins")).to_be_visible(timeout=PATIENT)
    assert "token" not in page.url
    [cookie] = await first.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
    await page.reload()
    await expect(page.get_by_role("heading", name="Plugins")).to_be_visible(timeout=PATIENT)

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


async def test_a_window_goes_on_when_another_one_is_opened_by_an_address_of_its_own(
    page: Page, served: OpenTabs
) -> None:
    other = await page.context.new_page()
    await other.goto(served.console_url())
    await expect(other.get_by_role("heading", name="Plugins")).to_be_visible(timeout=PATIENT)
    for each in (page, other):
        await each.get_by_role("link", name="Try it").click()
        await expect(each.get_by_role("link", name="probe_echo")).to_be_visible(timeout=PATIENT)


async def test_a_link_in_a_page_of_another_site_lets_its_visitor_in(
    served: OpenTabs, browser: Browser, site: str
) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{site.replace('127.0.0.1', 'localhost')}/page")
    await page.evaluate("(url) => { location.href = url; }", served.console_url())
    await expect(page.get_by_role("heading", name="Plugins")).to_be_visible(timeout=PATIENT)
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


# --- the views ---


async def test_plugins_are_cards_and_a_broken_one_says_what_to_do(page: Page, tab: Page) -> None:
    card = page.get_by_role("link", name="forms 1.0.0")
    await expect(card).to_contain_text("Ready")
    await expect(card).to_contain_text("2 tools")
    problems = page.get_by_role("region", name="Problems")
    await expect(problems).to_contain_text("Build the plugin first.")
    await card.click()
    await expect(page.get_by_role("heading", name="forms")).to_be_visible()
    reports = page.get_by_role("region", name="Reports")
    await expect(reports.get_by_role("link")).to_contain_text("File a report")
    await expect(reports.get_by_role("link")).to_contain_text("Files it")
    icon = reports.locator(".tool-icon path")
    await expect(icon).to_have_attribute("d", r := await lucide(page, "file-text"))
    assert r
    await tab.goto("about:blank")
    about = page.get_by_role("region", name="forms", exact=True)
    await expect(about).to_contain_text("No tab open", timeout=PATIENT)


async def test_a_click_counts_although_the_card_changes_while_the_button_is_down(
    page: Page, tab: Page, served: OpenTabs
) -> None:
    card = page.get_by_role("link", name="forms 1.0.0")
    await expect(card).to_contain_text("Ready")
    gate = served.registry.gate
    gate.set_rules({"forms.version": "ask"})

    async def call() -> None:
        with pytest.raises(ChainError, match="has left the site"):
            await served.call("forms_version")

    try:
        with anyio.fail_after(WITHIN):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await expect(page).to_have_title("(1) Plugins · OpenTabs")
                await card.hover()
                await page.mouse.down()
                await tab.goto("about:blank")  # which ends the question
                while served.registry.status("forms") != "closed":
                    await served.internals.pages.changed().wait()
                await expect(page).to_have_title("Plugins · OpenTabs")  # with the new status
                await page.mouse.up()
                await expect(page.get_by_role("heading", name="forms")).to_be_visible()
    finally:
        gate.set_rules({})
    about = page.get_by_role("region", name="forms", exact=True)
    await expect(about).to_contain_text("No tab open")


async def lucide(page: Page, name: str) -> str:
    outlines: dict[str, str] = await page.evaluate(
        "async () => (await fetch('/console/lucide.json')).json()"
    )
    return outlines[name]


@pytest.mark.usefixtures("tab")
async def test_a_form_for_a_nested_schema_sends_what_it_shows(page: Page) -> None:
    await go(page, "try/forms_where")
    await page.get_by_label("title", exact=True).fill("A leak")
    await page.get_by_label("limit", exact=True).fill("3")
    await page.get_by_role("button", name="Add to people").click()
    people = page.get_by_role("group", name="people")
    await people.get_by_label("name", exact=True).fill("Ada")
    await page.get_by_label("Send place").check()
    await page.get_by_label("Kind of place").select_option(label="A point")
    await page.get_by_label("x", exact=True).fill("1.5")
    await page.get_by_role("button", name="JSON", exact=True).click()
    text = page.get_by_label("The arguments, as JSON")
    wanted = {
        "title": "A leak",
        "people": [{"name": "Ada"}],
        "priority": "high",
        "limit": 3,
        "place": {"x": 1.5},
    }
    assert json.loads(await text.input_value()) == wanted

    wanted["people"] = [{"name": "Ada", "boss": {"name": "Bob"}}]
    wanted["place"] = "the cellar"
    del wanted["limit"]
    await text.fill(json.dumps(wanted))
    await page.get_by_role("button", name="Form", exact=True).click()
    await expect(page.get_by_label("Kind of place")).to_have_value("0")
    await expect(page.get_by_label("Send limit")).not_to_be_checked()
    await page.get_by_role("button", name="Run").click()
    outcome = page.get_by_role("region", name="What happens")
    await expect(outcome).to_contain_text("Succeeded")
    await outcome.get_by_role("button", name="Text").click()
    result = json.loads(await page.get_by_label("The result as text").inner_text())
    assert result["params"] == wanted
    await expect(page.get_by_role("button", name="Run again")).to_be_enabled()


BIG = '{"id": 9007199254740993, "list": [1, 1e300, -18446744073709551616]}'


@pytest.mark.parametrize("structured", [BIG, "null"])
async def test_integers_of_any_size_are_shown_as_they_are(page: Page, structured: str) -> None:
    content = json.dumps([{"type": "text", "text": BIG}])
    outcome = (
        f'{{"isError":false,"seconds":0,"content":{content},"structuredContent":{structured}}}'
    )
    await page.route("**/call", lambda route: route.fulfill(body=f'{{"outcome":{outcome}}}\n'))
    await go(page, "try/forms_version")
    await page.get_by_role("button", name="Run").click()
    shown = page.get_by_role("region", name="What happens")
    await expect(shown.get_by_text("9007199254740993", exact=True)).to_be_visible()
    await shown.get_by_role("button", name="Text").click()
    result = json.loads(await page.get_by_label("The result as text").inner_text())
    assert result == json.loads(BIG)


async def test_what_is_said_of_a_tool_is_set_apart(page: Page) -> None:
    await go(page, "try/forms_version")
    reads, owner = page.get_by_text("only reads"), page.get_by_role("link", name="forms")
    await expect(owner).to_be_visible()
    one, other = await reads.bounding_box(), await owner.bounding_box()
    assert one is not None
    assert other is not None
    assert one["x"] + one["width"] + 4 < other["x"]


@pytest.mark.usefixtures("tab")
async def test_arguments_that_are_wrong_are_explained_and_nothing_is_lost(page: Page) -> None:
    await go(page, "try/forms_where")
    await page.get_by_label("Send limit").check()
    await page.get_by_role("button", name="Run").click()
    message = "limit: write a number, for example 12, -0.5 or 1e3."
    await expect(page.get_by_role("alert")).to_have_text(message)
    await page.get_by_role("button", name="JSON", exact=True).click()
    await expect(page.get_by_role("button", name="Form", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    await page.get_by_label("limit", exact=True).fill("30")
    await page.get_by_role("button", name="Run").click()
    alert = page.get_by_role("region", name="What happens").get_by_role("alert")
    await expect(alert).to_contain_text("INVALID_ARGUMENTS")
    await expect(alert).to_contain_text("limit")
    await expect(page.get_by_label("limit", exact=True)).to_have_value("30")


@pytest.mark.usefixtures("tab")
async def test_a_tool_that_has_changed_is_shown_as_it_is_now(
    page: Page, served: OpenTabs, directory: Path
) -> None:
    file = anyio.Path(directory) / "forms" / "dist" / "tools.json"
    before = await file.read_text()
    listed = json.loads(before)
    where = listed["tools"][0]

    async def load(text: str) -> None:
        await file.write_text(text)
        await served.reload_plugins()

    await go(page, "try/forms_where")
    title = page.get_by_label("title", exact=True)
    await title.fill("A leak")
    try:
        where["description"] = "Files it in two copies"
        await load(json.dumps(listed))
        await expect(page.get_by_text("Files it in two copies")).to_be_visible()
        await expect(title).to_have_value("A leak")
        where["input_schema"]["properties"]["colour"] = {"type": "string"}
        await load(json.dumps(listed))
        await expect(page.get_by_label("colour", exact=True)).to_be_visible()
    finally:
        await load(before)


# An update in which the probe is not ready; the page handles it as soon as it is parsed.
FOLLOW_UPDATES = """() => {
    const parse = JSON.parse;
    globalThis.isProbeGone = false;
    JSON.parse = (...given) => {
        const value = parse(...given);
        globalThis.isProbeGone ||= (value?.plugins?.changed ?? []).some(
            ({ name, status }) => name === "probe" && status === "closed");
        return value;
    };
}"""


@pytest.fixture
async def following(page: Page, tab: Page) -> Page:
    """The console, once it shows that the tab is ready; it follows later updates."""
    assert tab.url != "about:blank"
    await go(page, "plugins/probe")
    await expect(page.get_by_role("main")).to_contain_text("Ready")
    await page.evaluate(FOLLOW_UPDATES)
    return page


async def test_a_list_of_tools_that_failed_to_load_is_loaded_again(
    following: Page, tab: Page
) -> None:
    page = following
    await page.route("**/console/api/tools", lambda route: route.abort("connectionrefused"))
    await go(page, "try")
    await expect(page.get_by_text("The server does not answer.")).to_be_visible()
    await page.unroute("**/console/api/tools")
    await tab.goto("about:blank")  # the next update, which changes no tool
    await expect(page.get_by_role("link", name="File a report")).to_be_visible()


async def open_with_late_failure(page: Page) -> anyio.Event:
    """Open the list of tools; its first request fails once the event that is returned is set."""
    begun, may_fail = anyio.Event(), anyio.Event()

    async def refuse_late(route: Route) -> None:
        begun.set()
        await may_fail.wait()
        await route.abort("connectionrefused")

    await page.route("**/console/api/tools", refuse_late, times=1)
    await go(page, "try")
    with anyio.fail_after(WITHIN):
        await begun.wait()
    return may_fail


async def test_a_list_of_tools_is_loaded_again_if_an_update_came_before_it_failed(
    following: Page, tab: Page
) -> None:
    page = following
    updated = await open_with_late_failure(page)
    await tab.goto("about:blank")
    await page.wait_for_function("() => globalThis.isProbeGone", timeout=PATIENT)
    updated.set()
    await expect(page.get_by_role("link", name="File a report")).to_be_visible()


async def test_a_list_of_tools_stays_when_an_earlier_request_for_it_fails(page: Page) -> None:
    may_fail = await open_with_late_failure(page)
    await page.get_by_label("Find a tool").fill("report")  # which asks for the list again
    found = page.get_by_role("link", name="File a report")
    await expect(found).to_be_visible()
    async with page.expect_event("requestfailed"):
        may_fail.set()
    await page.evaluate("fetch('/')")  # ends after it
    await expect(found).to_be_visible()


async def test_a_list_of_tools_that_fails_to_load_hides_no_tool_opened_meanwhile(
    page: Page,
) -> None:
    asked, may_fail = anyio.Event(), anyio.Event()

    async def fail(route: Route) -> None:
        asked.set()
        await may_fail.wait()
        await route.abort("connectionrefused")

    await page.route("**/console/api/tools", fail)
    await go(page, "try")
    with anyio.fail_after(WITHIN):
        await asked.wait()
    await go(page, "try/forms_version")
    run = page.get_by_role("button", name="Run")
    await expect(run).to_be_visible()
    async with page.expect_event("requestfailed"):
        may_fail.set()
    await page.evaluate("fetch('/console/api/tools').catch(() => {})")  # fails after the first
    await expect(run).to_be_visible()


async def test_progress_moves_as_it_comes_logs_appear_and_cancel_reaches_the_page(
    page: Page, tab: Page
) -> None:
    await go(page, "try/probe_run")
    await page.get_by_role("button", name="JSON", exact=True).click()
    steps = [{"report": {"progress": 1, "total": 4, "message": "begun"}}, {"log": "so far"}]
    arguments = {"key": "console", "steps": [*steps, {"wait": 120_000}]}
    await page.get_by_label("The arguments, as JSON").fill(json.dumps(arguments))
    await page.get_by_role("button", name="Run").click()
    outcome = page.get_by_role("region", name="What happens")
    await expect(outcome.get_by_role("progressbar")).to_have_js_property("value", 1)
    await expect(outcome).to_contain_text("1 / 4 begun")
    await expect(outcome.get_by_role("list", name="Logs")).to_contain_text("so far")
    await tab.evaluate("probe.report({progress: 3, total: 4, message: 'nearly'})")
    await expect(outcome.get_by_role("progressbar")).to_have_js_property("value", 3)
    await expect(outcome).to_contain_text("3 / 4 nearly")
    await page.get_by_role("button", name="Cancel").click()
    await expect(outcome).to_contain_text("You cancelled this call.")
    await tab.wait_for_function("probe.aborted.console !== undefined", timeout=PATIENT)
    await outcome.get_by_role("link", name="Where its time went").click()
    details = page.get_by_role("complementary", name="The chosen call")
    await expect(details).to_contain_text("cancelled")
    await expect(details).to_contain_text("console")


async def test_calls_of_others_are_shown_as_they_run_and_can_be_ended(
    page: Page, tab: Page, served: OpenTabs
) -> None:
    await go(page, "calls")
    steps = [{"report": {"progress": 2, "total": 8, "message": "page 2"}}, {"wait": 120_000}]
    failures: list[CallError] = []

    async def call() -> None:
        try:
            await served.call("probe_run", {"key": "theirs", "steps": steps})
        except CallError as error:
            failures.append(error)

    with anyio.fail_after(WITHIN):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            row = page.get_by_role("option", name="probe_run, running").first
            await expect(row.get_by_role("progressbar")).to_have_js_property("value", 2)
            await expect(row).to_contain_text("page 2")
            await tab.evaluate("probe.report({progress: 6, total: 8, message: 'page 6'})")
            await expect(row).to_contain_text("page 6")
            await row.click()
            details = page.get_by_role("complementary", name="The chosen call")
            await expect(details.locator(".pill")).to_have_text("running")
            await expect(details).to_contain_text("The page: the tool is running.")
            await expect(details).not_to_contain_text("ended here")
            await details.get_by_role("button", name="Cancel").click()
    assert failures[0].detail.code == "CANCELLED"
    await expect(details.locator(".pill")).to_have_text("cancelled", timeout=PATIENT)


async def test_cancel_keeps_the_pointer_and_the_focus_while_its_call_reports(
    page: Page, tab: Page, served: OpenTabs
) -> None:
    await go(page, "calls")
    failures: list[CallError] = []

    async def call() -> None:
        steps = [{"report": {"message": "page 1"}}, {"wait": 120_000}]
        try:
            await served.call("probe_run", {"key": "held", "steps": steps})
        except CallError as error:
            failures.append(error)

    async def report(message: str) -> None:
        """Report, and wait until the details show it."""
        await tab.evaluate("(message) => probe.report({message})", message)
        await expect(details).to_contain_text(message)

    details = page.get_by_role("complementary", name="The chosen call")
    cancel = details.get_by_role("button", name="Cancel")
    with anyio.fail_after(WITHIN):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await page.get_by_role("option", name="probe_run, running").first.click()
            await cancel.focus()
            await report("page 2")
            await expect(cancel).to_be_focused()
            await cancel.hover()
            await page.mouse.down()
            await report("page 3")
            await page.mouse.up()
    assert failures[0].detail.code == "CANCELLED"
    await expect(details.locator(".pill")).to_have_text("cancelled", timeout=PATIENT)
    await expect(cancel).to_have_count(0)


@pytest.mark.usefixtures("tab")
async def test_a_failed_call_opens_with_its_stack_trace_and_its_hops(
    page: Page, served: OpenTabs
) -> None:
    with pytest.raises(CallError):
        await served.call("probe_fail", {"kind": "plain"})
    await go(page, "calls")
    await page.get_by_label("Outcome").select_option("failed")
    await page.get_by_label("Filter calls").fill("probe_fail broke")
    row = page.get_by_role("listbox", name="Calls").get_by_role("option").first
    await expect(row).to_contain_text("something broke")
    await row.click()
    details = page.get_by_role("complementary", name="The chosen call")
    await expect(details.locator(".stack")).to_contain_text("something broke")
    await expect(details).to_contain_text("Where the time went")
    await expect(details.get_by_role("row")).not_to_have_count(0)
    await page.get_by_label("Filter calls").fill("nothing like this")
    await expect(page.get_by_text("No call matches.")).to_be_visible()


@pytest.mark.usefixtures("tab")
async def test_a_call_that_asks_waits_for_the_answer_given_here(
    page: Page, served: OpenTabs
) -> None:
    gate = served.registry.gate
    gate.set_rules({"forms.where": "ask"})
    values: list[Any] = []

    async def call() -> None:
        arguments = {"title": HOSTILE, "people": []}
        values.append(await served.call("forms_where", arguments))

    try:
        with anyio.fail_after(WITHIN):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await page.get_by_role("link", name="Approvals").click()
                question = page.get_by_role("list", name="Questions").get_by_role("listitem").first
                await expect(question).to_contain_text("wants to use File a report")
                await expect(question.get_by_label("The arguments")).to_contain_text("<img src=x")
                await expect(page).to_have_title("(1) Approvals · OpenTabs")
                await question.get_by_role("button", name="Allow once").click()
        assert values[0]["params"]["title"] == HOSTILE
        await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    finally:
        gate.set_rules({})


@pytest.mark.usefixtures("tab")
async def test_a_call_that_waits_for_an_answer_says_so_and_leads_to_it(
    page: Page, served: OpenTabs
) -> None:
    gate = served.registry.gate
    gate.set_rules({"forms.where": "ask"})
    details = page.get_by_role("complementary", name="The chosen call")
    try:
        with anyio.fail_after(WITHIN):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(served.call, "forms_where", {"title": "?", "people": []})
                await go(page, "calls")
                calls = page.get_by_role("listbox", name="Calls")
                asking = calls.get_by_role("option", name="waiting for you")
                await expect(asking).to_contain_text("Waiting for your answer")
                await asking.click()
                await expect(details.locator(".pill")).to_have_text("waiting for you")
                await details.get_by_role("link", name="Answer").click()
                await page.get_by_role("button", name="Allow once").click()
        await go(page, "calls")
        await expect(calls.get_by_role("option").first).to_have_accessible_name(
            re.compile("forms_where, succeeded")
        )
        await expect(asking).to_have_count(0)
        await calls.get_by_role("option").first.click()
        await expect(details.locator(".pill")).to_have_text("succeeded")
        await expect(details.get_by_role("link", name="Answer")).to_have_count(0)
    finally:
        gate.set_rules({})


@pytest.mark.usefixtures("tab")
async def test_the_seconds_that_are_left_to_answer_are_not_read_aloud(
    page: Page, served: OpenTabs
) -> None:
    gate = served.registry.gate
    gate.set_rules({"forms.version": "ask"})
    try:
        with anyio.fail_after(WITHIN):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(served.call, "forms_version")
                await go(page, "approvals")
                left = page.locator(".left")
                await expect(left).to_contain_text("s left")
                await page.evaluate(READ_ALOUD)
                await expect(left).not_to_have_text(await left.inner_text())
                assert await page.evaluate("readAloud") == []
                await page.get_by_role("button", name="Allow once").click()
    finally:
        gate.set_rules({})


async def test_a_tool_is_turned_off_where_it_is_shown(page: Page, served: OpenTabs) -> None:
    await go(page, "plugins/forms")
    permission = page.get_by_label("Permission of forms_version")
    try:
        served.registry.gate.set_rules({})
        await expect(permission).to_have_value("auto")
        async with page.expect_response("**/console/api/permission") as answered:
            await permission.select_option("Off")
        assert (await (await answered.value).json()) == {}
        decision = served.registry.decision("forms_version")
        assert decision is not None
        assert decision.permission == "off"
    finally:
        served.registry.gate.set_rules({"forms.version": "auto"})  # something new to show
        served.registry.gate.set_rules({})


async def test_settings_that_were_typed_stay_while_their_plugin_is_skipped(
    page: Page, tab: Page, served: OpenTabs, directory: Path
) -> None:
    await go(page, "plugins/lacking")
    problem = page.get_by_role("region", name="Problems")
    await expect(problem).to_contain_text("lacking.days")
    days = page.get_by_label("days")
    await days.fill("typed")
    await tab.evaluate("document.title = 'Another title'")
    await go(page, "tabs")
    await expect(page.get_by_text("Another title")).to_be_visible()
    await go(page, "plugins/lacking")
    await expect(days).to_have_value("typed")
    await anyio.to_thread.run_sync(write_lacking, directory, "first", "days")
    await served.reload_plugins()
    await expect(problem).to_contain_text("lacking.first")
    await expect(days).to_have_value("typed")


async def test_a_change_of_tools_leaves_the_focus_the_scroll_position_and_typed_settings(
    page: Page, served: OpenTabs
) -> None:
    await page.set_viewport_size({"width": 1280, "height": 300})
    await go(page, "plugins/forms")
    await page.get_by_text("Settings", exact=True).click()
    await page.get_by_label("days").fill("typed")
    permission = page.get_by_label("Permission of forms_version")
    await permission.focus()
    area = page.locator(".scroll-area")
    top = await area.evaluate("(area) => area.scrollTop")
    assert top > 0
    try:
        served.registry.gate.set_rules({"forms.version": "off"})
        await expect(permission).to_have_value("off")
        await expect(permission).to_be_focused()
        await expect(page.get_by_label("days")).to_have_value("typed")
        await expect(area).to_have_js_property("scrollTop", top)
    finally:
        served.registry.gate.set_rules({})


async def test_tabs_show_what_is_ready_in_each(page: Page, tab: Page) -> None:
    await go(page, "tabs")
    row = page.get_by_role("region", name="Browser default").get_by_role("listitem").first
    await expect(row).to_contain_text("probe ready")
    await expect(row).to_contain_text("forms ready")
    await tab.goto("about:blank")
    await expect(page.get_by_text("No tab in which a plugin runs.")).to_be_visible(timeout=PATIENT)


async def test_logs_are_followed_and_filtered(page: Page) -> None:
    await go(page, "logs")
    log = logging.getLogger("opentabs_py.plugin.probe")
    log.warning("careful with %s", HOSTILE)
    logging.getLogger("opentabs_py.server").error("broken\nin two lines")
    await expect(page.get_by_role("option").filter(has_text="careful with <img")).to_be_visible()
    await page.get_by_label("Least level").select_option("error")
    await expect(page.get_by_role("option").filter(has_text="careful")).to_have_count(0)
    await page.get_by_role("option").filter(has_text="broken").last.click()
    whole = page.get_by_role("region", name="The chosen entry")
    await expect(whole.locator("pre")).to_have_text("broken\nin two lines")
    await page.get_by_label("Least level").select_option("debug")
    await page.get_by_label("Source").select_option("probe")
    await expect(page.get_by_role("option").filter(has_text="broken")).to_have_count(0)


# --- for everyone ---


@pytest.mark.usefixtures("tab")
async def test_hostile_texts_are_text_and_a_hostile_icon_does_nothing(page: Page) -> None:
    card = page.locator("[data-keep=evil]")
    await expect(card).to_contain_text("<img src=x onerror=")
    image = card.locator("img")
    await page.wait_for_function(
        "() => document.querySelector('[data-keep=evil] img').naturalWidth > 0", timeout=PATIENT
    )
    await expect(image).to_be_visible()
    await go(page, "plugins/evil")
    await expect(page.get_by_role("heading", name="<img").first).to_be_visible()
    await go(page, "try/evil_version")
    await expect(page.get_by_role("heading", name="<img").first).to_be_visible()
    assert await page.evaluate("document.querySelectorAll('img[src=x]').length") == 0
    await expect(page).to_have_title("Try it · OpenTabs")
    alone = await page.context.new_page()
    await alone.goto(page.url.split("/#", 1)[0] + "/console/api/icons/evil.svg")
    assert await alone.evaluate("document.querySelector('script').textContent.length") > 0
    assert await alone.evaluate("origin") == "null"  # a sandbox
    await alone.close()


@pytest.mark.usefixtures("tab")
@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (900, False), (1900, True)])
async def test_nothing_is_wider_than_the_window(
    served: OpenTabs, browser: Browser, width: int, dark: bool
) -> None:
    async with console_page(browser, served, width=width, dark=dark) as page:
        for path in (
            *VIEWS,
            "plugins/evil",
            "plugins/forms",
            "try/evil_version",
            "try/forms_where",
        ):
            await go(page, path)
            await expect(page.locator("#view h1, #view h2").first).to_be_visible()
            wide = await page.evaluate("""() => {
                const parts = document.querySelectorAll(".scroll-area");
                const seen = [document.documentElement, ...parts];
                return seen.filter((each) => each.scrollWidth > each.clientWidth + 1).map(
                  (each) => each.className || each.tagName);
            }""")
            assert wide == [], path


@pytest.mark.usefixtures("tab")
@pytest.mark.parametrize("width", [320, 400, 900])
async def test_the_time_of_a_log_record_is_shown_whole(
    served: OpenTabs, browser: Browser, width: int
) -> None:
    logging.getLogger("opentabs_py").warning("something to show")
    async with console_page(browser, served, width=width) as page:
        await go(page, "logs")
        time = page.locator(".log .when").first
        await expect(time).to_be_visible()
        assert await time.evaluate("""(element) => {
            const text = document.createRange();
            text.selectNodeContents(element);
            const [needed, given] = [text, element].map((each) => each.getBoundingClientRect());
            return needed.width <= given.width;
        }""")


@pytest.mark.usefixtures("tab")
@pytest.mark.parametrize("width", [901, 1120, 1900])
async def test_the_list_of_calls_fills_its_room_with_and_without_a_call_open(
    served: OpenTabs, browser: Browser, width: int
) -> None:
    await served.call("probe_echo", {"value": 1})
    # The space above and below the button, and to the right of the last item of a row, in pixels.
    free = """() => {
        const box = (selector) => document.querySelector(selector).getBoundingClientRect();
        const column = box(".calls .column"), button = box(".earlier button");
        return [button.top - box(".calls .list").bottom, column.bottom - button.bottom,
            column.right - box(".call .took").right].map(Math.round);
    }"""
    async with console_page(browser, served, width=width) as page:
        await go(page, "calls")
        row = page.get_by_role("option", name="probe_echo, succeeded").first
        await expect(row).to_be_visible()
        assert await page.evaluate(free) == [10, 10, 22]
        await row.click()
        await expect(page.get_by_role("complementary", name="The chosen call")).to_be_visible()
        assert await page.evaluate(free) == [10, 10, 22]


@pytest.mark.usefixtures("tab")
async def test_everything_that_can_be_used_has_a_name(served: OpenTabs, browser: Browser) -> None:
    named = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "listbox", "option"}
    named |= {"progressbar", "region", "navigation", "complementary", "img"}
    async with console_page(browser, served) as page:
        session = await page.context.new_cdp_session(page)
        for path in (*VIEWS, "plugins/forms", "plugins/broken", "try/forms_where"):
            await go(page, path)
            await expect(page.locator("#view h1, #view h2").first).to_be_visible()
            tree = await session.send("Accessibility.getFullAXTree")
            nameless = [
                node
                for node in tree["nodes"]
                if not node["ignored"]
                and node["role"]["value"] in named
                and not node.get("name", {}).get("value", "").strip()
            ]
            assert nameless == [], path


@pytest.mark.usefixtures("tab")
async def test_all_of_it_works_with_the_keyboard_alone(page: Page) -> None:
    press = page.keyboard.press
    await press("/")
    await expect(page.get_by_label("Find a plugin or a tool")).to_be_focused()
    await page.keyboard.type("forms")
    await press("Tab")
    await expect(page.locator(".card-link").first).to_be_focused()
    await press("Enter")
    await expect(page.get_by_role("heading", name="forms")).to_be_visible()
    await page.get_by_role("link", name="version", exact=False).last.focus()
    await press("Enter")
    outcome = page.get_by_role("region", name="What happens")
    await expect(outcome).to_contain_text("Run the tool")
    await press("Control+Enter")
    await expect(outcome).to_contain_text("Succeeded")
    await press("Tab")
    await expect(page.get_by_role("link", name="All tools")).to_be_focused()
    await page.get_by_role("button", name="Run").focus()
    await press("Enter")
    await expect(page.get_by_role("button", name="Run again")).to_be_visible()
    await page.get_by_role("link", name="Calls").focus()
    await press("Enter")
    calls = page.get_by_role("listbox", name="Calls")
    await expect(calls.get_by_role("option").first).to_contain_text("forms_version")
    await calls.focus()
    await press("ArrowDown")
    details = page.get_by_role("complementary", name="The chosen call")
    await expect(details).to_contain_text("forms_version")
    await expect(calls.get_by_role("option", selected=True)).to_have_count(1)
    await press("Escape")
    await expect(details).to_be_hidden()


async def test_reduced_motion_is_respected(served: OpenTabs, browser: Browser) -> None:
    async with console_page(browser, served) as page:
        await page.emulate_media(reduced_motion="reduce")
        await go(page, "try/forms_version")
        await page.evaluate("""() => {
            const bar = document.createElement("progress");
            bar.className = "bar";
            document.body.append(bar);
        }""")
        animated = await page.evaluate("""() => getComputedStyle(
            document.querySelector("body > progress")).animationName""")
        assert animated == "none"


# --- failures ---


async def test_the_page_says_so_when_the_server_is_gone(browser: Browser) -> None:
    settings = load_settings(port=0, profile=None)
    async with OpenTabs(browser="none", settings=settings) as tabs:
        stack = console_page(browser, tabs)
        page = await stack.__aenter__()
    await expect(page.locator("#state")).to_contain_text("not running", timeout=PATIENT)
    await stack.__aexit__(None, None, None)


async def test_the_questions_of_a_server_that_is_gone_are_not_shown(browser: Browser) -> None:
    @tool
    def greet() -> str:
        """Greet."""
        raise AssertionError

    async def call(tabs: OpenTabs) -> None:
        with pytest.raises(CallError):
            await tabs.call("greet")

    settings = load_settings(port=0, profile=None, permissions={"default": "ask"})
    async with anyio.create_task_group() as tasks:
        async with OpenTabs(browser="none", settings=settings, tools=[greet]) as tabs:
            stack = console_page(browser, tabs)
            page = await stack.__aenter__()
            tasks.start_soon(call, tabs)
            await expect(page).to_have_title("(1) Plugins · OpenTabs")
        await expect(page.locator("#state")).to_contain_text("not running", timeout=PATIENT)
        await expect(page).to_have_title("Plugins · OpenTabs")
        await go(page, "approvals")
        await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await stack.__aexit__(None, None, None)


async def test_the_running_calls_of_a_server_that_is_gone_are_shown_as_lost(
    browser: Browser,
) -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        raise AssertionError

    async def call(tabs: OpenTabs) -> None:
        with pytest.raises(CallError):
            await tabs.call("wait")

    settings = load_settings(port=0, profile=None)
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        async with OpenTabs(browser="none", settings=settings, tools=[wait]) as tabs:
            page = await stack.enter_async_context(console_page(browser, tabs))
            await go(page, "calls")
            tasks.start_soon(call, tabs)
            await expect(page.get_by_role("option", name="wait, running")).to_be_visible()
        await expect(page.get_by_role("option", name="wait, lost")).to_be_visible(timeout=PATIENT)


async def test_the_details_of_a_call_stay_when_its_server_is_gone(browser: Browser) -> None:
    @tool
    async def count(progress: Progress) -> str:
        """Count, and wait."""
        progress.report(progress=1, message="counted one")
        await anyio.sleep_forever()
        raise AssertionError

    @tool
    def fail() -> None:
        """Fail."""
        raise ToolError("It is out of stock.", code="OUT_OF_STOCK")

    async def call(tabs: OpenTabs, name: str) -> None:
        with pytest.raises(CallError):
            await tabs.call(name)

    settings = load_settings(port=0, profile=None)
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        async with OpenTabs(browser="none", settings=settings, tools=[count, fail]) as tabs:
            page = await stack.enter_async_context(console_page(browser, tabs))
            await go(page, "calls")
            await call(tabs, "fail")
            tasks.start_soon(call, tabs, "count")
            details = page.get_by_role("complementary", name="The chosen call")
            await page.get_by_role("option", name="count, running").click()
            await expect(details).to_contain_text("counted one")
        await expect(details.locator(".pill")).to_have_text("lost", timeout=PATIENT)
        await expect(details).to_contain_text("The server stopped")
        await expect(details).to_contain_text("counted one")
        await expect(details.get_by_role("button", name="Cancel")).to_have_count(0)
        await page.get_by_role("option", name="fail, failed").click()
        await expect(details).to_contain_text("It is out of stock.")
        await expect(details).to_contain_text("opentabs status")


@pytest.mark.usefixtures("tab")
async def test_a_page_that_does_not_read_holds_up_nothing(served: OpenTabs) -> None:
    base = served.mcp_url.removesuffix("/mcp")
    host, port = base.removeprefix("http://").split(":")
    async with httpx2.AsyncClient() as client:
        entered = await client.get(served.console_url())
        key = entered.text.partition("/#key=")[2].partition('"')[0]
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    headers = f"Host: {host}:{port}\r\nCookie: {cookie}\r\nX-OpenTabs-Console: {key}\r\n"
    request = f"GET /console/api/stream HTTP/1.1\r\n{headers}\r\n"
    with anyio.fail_after(WITHIN):
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(request.encode())
            assert b"200" in await stream.receive(64)
            for number in range(200):
                assert await served.call("probe_echo", {"value": number}) == {"value": number}
            told = b""
            while b'"state":"succeeded"' not in told:
                told += await stream.receive()
