"""The user is asked before a tool runs that a page registers, unless it only reads."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from playwright.async_api import Page, Route

from e2e.waiting import PATIENT
from e2e.webmcp.page_tools import ADD, ALL, COUNT, PAY, failure, settings_for, wait_for, wait_listed
from opentabs_py.core.questions import Question
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs

REGISTERS_PAY = 'context.registerTool({\n  name: "pay",'


async def test_only_tools_that_say_that_they_read_run_unasked(shop: str) -> None:
    async with OpenTabs(settings=settings_for(permissions={})) as tabs:
        await tabs.open(shop)
        await wait_for(tabs, lambda names: names >= ALL)
        assert await tabs.call(ADD, {"a": 1, "b": 2}) == {"sum": 3}
        for name in (PAY, COUNT):
            assert (await failure(tabs, name)).detail.code == "CONSENT_NEEDED"


@dataclass
class Asked:
    """A server that asks before it calls `pay`, with a page that has it."""

    tabs: OpenTabs
    page: Page
    outcomes: list[Any] = field(default_factory=list[Any])

    async def call(self) -> None:
        try:
            self.outcomes.append(await self.tabs.call(PAY))
        except CallError as error:
            self.outcomes.append(error.detail.code)

    async def during(self, event: Callable[[Question], Awaitable[object]]) -> None:
        """Make a call, and let something happen while the user is asked."""
        questions = self.tabs.internals.registry.gate.questions
        asked = anyio.Event()
        end = questions.subscribe(asked.set)
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as group:
                group.start_soon(self.call)
                await asked.wait()
                end()
                [question] = questions.waiting
                await event(question)
        assert questions.waiting == []

    async def allow(self, question: Question) -> None:
        self.tabs.internals.registry.gate.questions.answer(question.id, "once", by="the test")


@pytest.fixture
async def asked(shop: str) -> AsyncGenerator[Asked]:
    async with OpenTabs(settings=settings_for(permissions={})) as tabs:
        page = await tabs.open(shop)
        await wait_listed(tabs, lambda names: names >= ALL)
        with tabs.internals.registry.gate.questions.shown():
            yield Asked(tabs, page)


async def test_a_call_that_the_user_allows_runs_in_the_tab_of_its_question(asked: Asked) -> None:
    async def allow(question: Question) -> None:
        [document] = asked.tabs.internals.bridge.tabs.documents
        assert question.place.tab_id == document.tab_id
        assert question.rule.startswith("page--127-0-0-1-")
        await asked.allow(question)

    await asked.during(allow)
    assert asked.outcomes == [1]


async def test_the_user_is_asked_about_a_tool_until_its_page_is_left_or_closed(
    asked: Asked, shop: str
) -> None:
    async def reload_and_allow(question: Question) -> None:
        bridge = asked.tabs.internals.bridge
        before = [each.document_id for each in bridge.tabs.documents]
        await asked.page.reload()
        # Until the server hears of the new page, the tools that it lists are those of the old one.
        while [each.document_id for each in bridge.tabs.documents] in (before, []):
            await bridge.changed().wait()
        await wait_listed(asked.tabs, lambda names: names >= ALL)
        await asked.allow(question)

    await asked.during(reload_and_allow)
    await asked.during(lambda _: asked.page.goto("about:blank"))
    await asked.page.goto(shop)
    await wait_listed(asked.tabs, lambda names: names >= ALL)
    await asked.during(lambda _: asked.page.close())
    assert asked.outcomes == [1, "PAGE_TOOL_GONE", "PAGE_TOOL_GONE"]


async def test_the_question_stays_while_the_page_registers_its_tools_again(
    asked: Asked, shop: str
) -> None:
    partly_listed = anyio.Event()

    async def serve_slowly(route: Route) -> None:
        text = await (await route.fetch()).text()
        late = f'</script><script src="/late.js"></script><script>{REGISTERS_PAY}'
        await route.fulfill(body=text.replace(REGISTERS_PAY, late), content_type="text/html")

    async def serve_late(route: Route) -> None:
        await partly_listed.wait()
        await route.fulfill(body="", content_type="text/javascript")

    async def reload_slowly_and_allow(question: Question) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(asked.page.reload)
            await wait_listed(asked.tabs, lambda names: ADD in names and PAY not in names)
            partly_listed.set()
        await wait_listed(asked.tabs, lambda names: names >= ALL)
        await asked.allow(question)

    await asked.page.route(shop, serve_slowly)
    await asked.page.route("**/late.js", serve_late)
    await asked.during(reload_slowly_and_allow)
    assert asked.outcomes == [1]
