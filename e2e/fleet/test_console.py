"""The console of an endpoint, whose tools and tabs are its workers'."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from playwright.async_api import Page, expect

from e2e.chain import PROBE
from e2e.console.opened import console_page, go
from e2e.fleet.members import Fleet, double, endpoint
from e2e.live_page import chromium
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs


@asynccontextmanager
async def console_of_endpoint(fleet: Fleet) -> AsyncGenerator[tuple[OpenTabs, Page]]:
    """Open the console of an endpoint, when its worker's plugin is ready."""
    async with (
        endpoint(fleet, workers=1, ready="probe") as tabs,
        chromium(tabs.settings) as browser,
        console_page(browser, tabs) as page,
    ):
        yield tabs, page


async def test_the_console_does_not_look_for_the_tabs_of_workers_here(
    fleet: Fleet, site: str
) -> None:
    worker = fleet.worker("one", "--plugin", str(PROBE), "--open", f"{site}/page")
    async with console_of_endpoint(fleet) as (_, page):
        await go(page, "tabs")
        await expect(page.locator("#view")).to_contain_text("This server has no browser")
        await go(page, "try/probe_echo")
        await expect(page.get_by_label("Tab", exact=True)).to_have_text("Best match")
        await page.get_by_role("button", name="Python").click()
        chosen = f"nats=FleetOptions('{fleet.nats.url}', fleet='{fleet.name}', labels={{}})"
        await expect(page.get_by_label("Copied code")).to_contain_text(chosen)
        await go(page, "plugins/probe")
        about = page.get_by_role("region", name="probe", exact=True)
        await expect(about).to_contain_text("In the browsers of the workers")
        worker.kill()
        await expect(about).to_contain_text("It is ready in no worker")
        await expect(about).to_contain_text("Not ready")


async def test_a_call_that_a_worker_has_is_not_said_to_be_in_the_server(
    fleet: Fleet, site: str
) -> None:
    worker = fleet.worker("one", "--plugin", str(PROBE), "--open", f"{site}/page")
    async with console_of_endpoint(fleet) as (tabs, page):
        await go(page, "calls")
        steps = [{"wait": 120_000}]
        call = await tabs.start("probe_run", {"key": "away", "steps": steps})
        await page.get_by_role("option", name="probe_run, running").click()
        details = page.get_by_role("complementary", name="The selected call")
        await expect(details).to_contain_text("A worker of the fleet: how far the call got there")
        worker.kill()
        await expect(details).to_contain_text("WORKER_LOST")
        await expect(details).to_contain_text("A worker of the fleet: how far the call got there")
        await call.wait()


async def test_a_python_tool_of_a_worker_is_not_said_to_run_in_the_server(shared: Fleet) -> None:
    async with (
        endpoint(shared, workers=1, tools=[double]) as tabs,
        chromium(tabs.settings) as browser,
        console_page(browser, tabs) as page,
    ):
        for name, said in {"who": "runs in a worker", "double": "runs in the server"}.items():
            await go(page, f"try/{name}")
            await expect(page.get_by_role("heading", name=name)).to_be_visible()
            await expect(page.locator(".badge", has_text="runs in")).to_have_text(said)


async def test_the_console_says_so_while_nats_cannot_be_reached(fleet: Fleet) -> None:
    joined = FleetOptions(fleet.nats.url, fleet.name)
    async with (
        OpenTabs(nats=joined, settings=load_settings(port=0), tools=[double]) as tabs,
        chromium(tabs.settings) as browser,
        console_page(browser, tabs) as page,
    ):
        fleet.nats.kill()
        problems = page.get_by_role("region", name="Problems")
        await expect(problems).to_contain_text(f"NATS at {fleet.nats.url} cannot be reached")
        await expect(problems.get_by_role("listitem")).to_contain_text("The fleet")
        await go(page, "calls")
        await expect(page.get_by_label("1 with a problem")).to_be_visible()
        fleet.nats.start()
        await expect(page.get_by_label("1 with a problem")).to_have_count(0)


async def test_without_workers_the_console_says_to_start_one(fleet: Fleet) -> None:
    joined = FleetOptions(fleet.nats.url, fleet.name)
    async with (
        OpenTabs(nats=joined, settings=load_settings(port=0)) as tabs,
        chromium(tabs.settings) as browser,
        console_page(browser, tabs) as page,
    ):
        for view in ("plugins", "try"):
            await go(page, view)
            await expect(page.locator("#view")).to_contain_text("opentabs worker --plugin DIR")
