"""Decisions in the console are written to the user's files, and take effect at once."""

import json
import tomllib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Page, expect

from e2e.console.opened import console_page
from e2e.live_page import chromium
from e2e.on_disk import write_plugin
from e2e.waiting import PATIENT
from opentabs_py.calling.call import CallOrigin
from opentabs_py.config.paths import data_dir, user_file
from opentabs_py.config.settings import Settings, load_settings
from opentabs_py.session.session import OpenTabs

SECRET = "the secret of this test"
SETTINGS = {
    "site": {"type": "url", "label": "Your site", "required": True},
    "key": {"type": "string", "label": "API key", "description": "From your account."},
    "days": {"type": "number", "label": "Days", "default": 7},
    "loud": {"type": "boolean", "label": "Loud"},
    "view": {"type": "select", "label": "View", "options": ["day", "week"]},
}


@dataclass
class Home:
    """A user's files, a server that reads them, and its console."""

    tabs: OpenTabs
    page: Page
    plugin: Path

    def settings(self) -> dict[str, object]:
        return tomllib.loads(user_file().read_text())


@pytest.fixture
async def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Home]:
    """A plugin in the user's settings that nobody has reviewed, and that lacks a setting."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    plugin = write_plugin(tmp_path / "notes", tools=["config"], patterns=[], settings=SETTINGS)
    await anyio.to_thread.run_sync(write, f"# mine\nplugins = [{json.dumps(str(plugin))}]\n")

    def read() -> Settings:
        return load_settings(port=0, profile=None, headed=False)

    async with (
        OpenTabs(settings=read(), read_settings=read) as tabs,
        chromium(tabs.settings) as browser,
        console_page(browser, tabs) as page,
    ):
        yield Home(tabs, page, plugin)


def write(text: str) -> None:
    user_file().parent.mkdir(parents=True)
    user_file().write_text(text)


async def test_a_missing_setting_is_filled_in_and_a_review_given_where_they_are_missed(
    home: Home, site: str
) -> None:
    page = home.page
    problems = page.get_by_role("region", name="Problems")
    await expect(problems).to_contain_text("notes.site is missing")
    await problems.get_by_role("link", name="notes").click()
    await page.get_by_label("Days").fill("many")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status").filter(has_text="write a number")).to_be_visible()
    await page.get_by_label("Days").fill("3")
    await page.get_by_label("Your site").fill(site)
    await page.get_by_label("API key").fill(SECRET)
    await page.get_by_label("Loud").check()
    await page.locator("#setting-view").select_option("week")
    await page.get_by_role("button", name="Save").click()

    await page.get_by_role("link", name="All plugins").first.click()
    card = page.get_by_role("list").get_by_role("link", name="notes")
    await expect(card).to_contain_text("Never reviewed")
    await card.click()
    review = page.get_by_role("region", name="Review")
    await expect(review).to_contain_text("It has not been reviewed")
    wanted = {"site": site, "key": SECRET, "days": 3, "loud": True, "view": "week"}
    assert home.settings()["plugin_settings"] == {"notes": wanted}
    assert user_file().read_text().startswith("# mine\n")
    assert SECRET not in await page.content()

    await review.get_by_text("adapter.iife.js").click()
    await expect(review.locator("pre").first).to_contain_text("registry.adapters")
    await review.get_by_role("button", name="Approve this build").click()
    await expect(review).to_have_count(0)
    approved = json.loads((data_dir() / "reviews" / "approved.json").read_text())
    assert [*approved] == ["notes"]

    tab = await home.tabs.open(f"{site}/page")
    await tab.wait_for_function("document.readyState === 'complete'")
    with anyio.fail_after(PATIENT):
        while home.tabs.plugin("notes").status != "ready":
            await home.tabs.internals.bridge.changed().wait()
    value = await home.tabs.internals.tool_calls.call(
        "notes_config", {}, origin=CallOrigin(allowed_by="the test")
    )
    assert value["config"] == wanted

    permission = page.get_by_label("Permission of notes_config")
    await expect(permission).to_have_value("ask")
    async with page.expect_response("**/console/api/permission"):
        await permission.select_option("Runs")
    assert home.settings()["permissions"] == {"notes.config": "auto"}
    assert (await home.tabs.call("notes_config"))["config"] == wanted


async def test_a_permission_that_another_source_overrides_is_noted_where_it_was_given(
    home: Home, site: str
) -> None:
    project = anyio.Path("pyproject.toml")
    await project.write_text('[tool.opentabs.permissions]\n"notes.config" = "ask"\n')
    user_file().write_text(f"{user_file().read_text()}plugin_settings.notes.site = '{site}'\n")
    await home.tabs.reload_plugins()
    page = home.page
    await page.goto(f"{page.url.partition('#')[0]}#/plugins/notes")
    await page.get_by_role("button", name="Approve this build").click()
    permission = page.get_by_label("Permission of notes_config")
    await permission.select_option("Runs")
    note = page.get_by_role("alert").filter(has_text="only until the server stops")
    await expect(note).to_contain_text('notes.config is "auto" only until')
    await expect(note).to_contain_text("pyproject.toml, which takes precedence over your settings")
    await permission.select_option("Asks you")
    await expect(note).to_have_count(0)

    await page.goto(f"{page.url.partition('#')[0]}#/approvals")
    await home.tabs.open(f"{site}/page")
    async with anyio.create_task_group() as group:
        group.start_soon(home.tabs.call, "notes_config")
        await page.get_by_role("button", name="Always").click()
    note = page.get_by_role("alert").filter(has_text="notes_config is allowed only until")
    await expect(note).to_contain_text("pyproject.toml, which takes precedence")
    await page.get_by_role("button", name="Close").click()
    await expect(note).to_have_count(0)
