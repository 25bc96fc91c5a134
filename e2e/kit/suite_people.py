"""Tests with two people in two browsers; run by test_kit_people.py.

The tests run in this order; each `..._then_...` follows what it is about.
"""

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from e2e.kit.runs import wait_until
from opentabs_py.testing import SyncMcpClient, SyncOpenTabs, expect

two = pytest.mark.opentabs(browsers=["ann", "ben"])
SITE = "http://127.0.0.1:9"
seen: dict[str, Any] = {}


def people_of(opentabs: SyncOpenTabs) -> tuple[SyncOpenTabs, SyncOpenTabs]:
    return opentabs.browsers["ann"], opentabs.browsers["ben"]


def open_site(person: SyncOpenTabs) -> None:
    html = '<meta name="opentabs-demo"><title>chat</title>'
    answer = {"body": html, "content_type": "text/html"}
    person.page.route(f"{SITE}/", lambda route: route.fulfill(**answer))
    person.page.goto(f"{SITE}/")


@two
def test_one_reads_what_the_other_writes(opentabs: SyncOpenTabs, demo_site: str) -> None:
    ann, ben = people_of(opentabs)
    ann.page.goto(demo_site)
    ben.page.goto(demo_site)

    ann.call("demo_send_message", channelId="general", text="Tea at four?")

    messages = ben.call("demo_export_messages", channelId="general")["messages"]
    assert "Tea at four?" in [message["text"] for message in messages]


@two
def test_neither_has_the_cookies_of_the_other(opentabs: SyncOpenTabs) -> None:
    ann, ben = people_of(opentabs)
    open_site(ann)
    open_site(ben)

    ann.page.evaluate("document.cookie = 'who=ann'; localStorage.who = 'ann'")

    both = "[document.cookie, localStorage.who ?? '']"
    assert ann.page.evaluate(both) == ["who=ann", "ann"]
    assert ben.page.evaluate(both) == ["", ""]
    seen["urls"] = [ann.mcp_url, ben.mcp_url]


@two
def test_then_nothing_is_left_in_the_same_browsers(opentabs: SyncOpenTabs) -> None:
    for person, url in zip(people_of(opentabs), seen["urls"], strict=True):
        open_site(person)

        assert person.mcp_url == url, "the browser was not shared"
        assert person.page.evaluate("[document.cookie, localStorage.who ?? '']") == ["", ""]
        assert [each.url for each in person.context.pages] == ["about:blank", f"{SITE}/"]


def test_then_the_first_is_that_of_tests_with_one(opentabs: SyncOpenTabs) -> None:
    assert opentabs.mcp_url == seen["urls"][0]
    with pytest.raises(LookupError, match="no browser named 'ann'; it has none"):
        opentabs.browsers["ann"]


@two
def test_the_usual_fixtures_are_those_of_the_first(
    opentabs: SyncOpenTabs, page: Page, context: BrowserContext, mcp: SyncMcpClient
) -> None:
    ann, ben = people_of(opentabs)
    open_site(ann)

    assert opentabs is ann
    assert page is ann.page
    assert context is ann.context is not ben.context
    expect(ann.plugin("demo")).to_be_ready()
    assert ben.plugin("demo").status == "closed"
    expect(mcp.start("probe_echo", value=1)).to_return({"value": 1})
    assert [record.name for record in ann.trace] == ["probe_echo"]
    assert ben.trace == ()


@two
def test_calls_of_both_run_at_once_and_a_fault_hits_one(opentabs: SyncOpenTabs) -> None:
    ann, ben = people_of(opentabs)
    calls = []
    for person in (ann, ben):
        open_site(person)
        calls.append(person.start("probe_run", key="k", steps=[{"wait": 60_000}]))
        wait_until(person.page, "'k' in probe.runs")

    ann.faults.close_tab(ann.page)

    expect(calls[0]).to_fail(code="TAB_CLOSED")
    expect(calls[1]).to_be_running()


@pytest.mark.opentabs(browsers=["ann", "ben"], clock="manual")
def test_each_has_a_clock(opentabs: SyncOpenTabs) -> None:
    ann, ben = people_of(opentabs)
    calls = []
    for person in (ann, ben):
        open_site(person)
        calls.append(person.start("probe_run", key="k", steps=[{"wait": 60_000}]))

    ben.clock.advance(30)

    expect(calls[0]).to_be_running()
    expect(calls[1]).to_time_out("idle")


@two
def test_a_failure_shows_which_server_each_uses(opentabs: SyncOpenTabs, mcp: SyncMcpClient) -> None:
    ann, ben = people_of(opentabs)

    assert repr(ann) == f"<SyncOpenTabs {ann.mcp_url}>"
    assert repr(ann) != repr(ben)
    assert repr(mcp) == f"<SyncMcpClient {ann.mcp_url}>"


@pytest.mark.opentabs(browsers=["ann", "ben"], signed_in={"ben": "bens"})
def test_one_begins_with_a_sign_in(opentabs: SyncOpenTabs) -> None:
    ann, ben = people_of(opentabs)
    open_site(ann)
    open_site(ben)

    assert ann.page.evaluate("document.cookie") == ""
    assert ben.page.evaluate("document.cookie") == "who=ben"


@pytest.mark.opentabs(browsers=["ann", "ben"], fresh_profile=True)
def test_both_have_browsers_of_their_own(opentabs: SyncOpenTabs) -> None:
    urls = [person.mcp_url for person in people_of(opentabs)]

    assert {*urls} & {*seen["urls"]} == set()


@two
def test_fails(opentabs: SyncOpenTabs) -> None:
    ann, ben = people_of(opentabs)
    for person in (ann, ben):
        open_site(person)
    ann.call("probe_echo", value=1)
    ben.call("probe_run", key="k", steps=[])

    pytest.fail("on purpose")


@two
def test_breaks_a_contract_in_the_second_browser(opentabs: SyncOpenTabs) -> None:
    _, ben = people_of(opentabs)
    open_site(ben)

    ben.call("probe_run", key="k", steps=[{"report": {"progress": n}} for n in (2, 1)])
