"""The report of a test run, opened as a file in a browser."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Browser, Locator, Page, expect

from e2e.kit.runs import prepare
from e2e.waiting import PATIENT_MS
from opentabs_py import __version__
from opentabs_py.core.recording.exchange import Exchange, Recording, Request, Response
from opentabs_py.recording.files import write_recording

SITE = "http://site.test/"


def prepare_suite(directory: Path) -> Path:
    """Copy the suite with every outcome to a directory, with a file that cannot be imported."""
    prepare(directory, "report_page")
    (directory / "test_uncollectable.py").write_text("import no_such_module\n")
    answer = Response(200, headers=[("content-type", "text/html")], body=b"<h1>The site</h1>")
    exchanges = [
        Exchange(Request("GET", SITE, kind="document"), answer),
        Exchange(Request("GET", f"{SITE}api/new?page=1"), answer),
    ]
    write_recording(Recording(SITE, exchanges), directory / "recorded.har", version=__version__)
    return directory


@dataclass
class OpenReport:
    """A report, and what its page requested."""

    page: Page
    requests: list[str]

    @property
    def details(self) -> Locator:
        return self.page.get_by_role("complementary", name="The selected test")

    @property
    def groups(self) -> Locator:
        return self.page.get_by_role("group", name="Show tests that are")

    def row(self, name: str) -> Locator:
        """The row of a test, by the start of its name and its state."""
        return self.page.get_by_role("option", name=re.compile(f"^{re.escape(name)}"))

    async def choose(self, name: str) -> None:
        await self.row(name).first.click()
        await expect(self.details.locator("h2")).to_contain_text(name.partition(",")[0])


@asynccontextmanager
async def open_report(
    browser: Browser, file: Path, *, width: int = 1280, height: int = 800, dark: bool = False
) -> AsyncGenerator[OpenReport]:
    """Open a report from disk, as people do; its errors fail the test."""
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(PATIENT_MS)
    page = await context.new_page()
    said: list[str] = []
    shown = OpenReport(page, [])
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: shown.requests.append(request.url))
    await page.goto(file.as_uri())
    await expect(page.get_by_role("listbox", name="Tests")).to_be_visible()
    yield shown
    assert said == [], "\n".join(said)
    assert [url for url in shown.requests if not url.startswith("data:")] == [file.as_uri()]
    await context.close()
