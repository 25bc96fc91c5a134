"""Tools run in the console: their forms, their results, and the lists they are chosen from."""

import json
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Page, Route, expect

from e2e.console.opened import go
from e2e.waiting import PATIENT
from opentabs_py.session.session import OpenTabs


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


async def test_a_tool_keeps_the_focus_while_others_change(page: Page, served: OpenTabs) -> None:
    gate = served.internals.registry.gate
    await go(page, "try/forms_version")
    owner = page.get_by_role("link", name="forms")
    await owner.focus()
    try:
        async with page.expect_response("**/tools/forms_version") as read:
            gate.set_rules({"probe.echo": "ask"})
        await (await read.value).finished()
        await page.evaluate("new Promise(requestAnimationFrame)")  # it has been drawn
        await expect(owner).to_be_focused()
    finally:
        gate.set_rules({})


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


@pytest.mark.parametrize(
    ("path", "shown"), [("try", "File a report"), ("try/forms_version", "Run")]
)
async def test_what_failed_to_load_is_loaded_again_although_nothing_changes(
    page: Page, path: str, shown: str
) -> None:
    failed = page.get_by_text("The server does not answer.")
    await page.route("**/console/api/tools**", lambda route: route.abort("connectionrefused"))
    await go(page, path)
    await expect(failed).to_be_visible()
    await page.unroute_all()
    await expect(page.get_by_role("main")).to_contain_text(shown)
    await expect(failed).to_have_count(0)


async def open_with_late_failure(page: Page) -> anyio.Event:
    """Open the list of tools; its first request fails once the event that is returned is set."""
    begun, may_fail = anyio.Event(), anyio.Event()

    async def refuse_late(route: Route) -> None:
        begun.set()
        await may_fail.wait()
        await route.abort("connectionrefused")

    await page.route("**/console/api/tools", refuse_late, times=1)
    await go(page, "try")
    with anyio.fail_after(PATIENT):
        await begun.wait()
    return may_fail


async def test_a_list_of_tools_is_loaded_again_if_an_update_came_before_it_failed(
    following: Page, tab: Page
) -> None:
    page = following
    updated = await open_with_late_failure(page)
    await tab.goto("about:blank")
    await page.wait_for_function("() => globalThis.isProbeGone")
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
    with anyio.fail_after(PATIENT):
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
    await tab.wait_for_function("probe.aborted.console !== undefined")
    await outcome.get_by_role("link", name="Where its time went").click()
    details = page.get_by_role("complementary", name="The selected call")
    await expect(details).to_contain_text("cancelled")
    await expect(details).to_contain_text("console")
