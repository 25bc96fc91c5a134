"""`opentabs new --from`: a recording becomes a plugin that works unedited."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.applications import Starlette

from e2e.documents import ROOT, run
from e2e.sites.other_sites import ZOO_SCRIPT, Helpdesk, library, zoo
from e2e.sites.test_recordings import Served, record, serving
from opentabs_py.demo import create_demo_site

TSC = ROOT / "adapter_js" / "node_modules" / ".bin" / "tsc"

CHAT = """
async def use(page, opentabs):
    await page.get_by_role("button", name="random").click()
    await page.locator(".message").first.wait_for()
    async with page.expect_response("**/messages?view=1"):
        await page.evaluate("fetch('/api/channels/nothing/messages?view=1').then(r => r.text())")
    await page.fill("#text", "Hello there")
    async with page.expect_response(lambda answer: answer.request.method == "POST"):
        await page.press("#text", "Enter")
"""
LIBRARY = """
async def use(page, opentabs):
    async with page.expect_response("**/graphql"):
        await page.click("#more")
    async with page.expect_response("**/graphql"):
        await page.click("#more")
    async with page.expect_response("**/graphql"):
        await page.click("text=Volume 3")
    async with page.expect_response("**/graphql"):
        await page.click("#review")
"""
HELPDESK = """
async def use(page, opentabs):
    async def click(text):
        async with page.expect_navigation() as navigation:
            await page.click(f"text={text}")
        await (await navigation.value).body()  # before the page goes away

    await click("Tickets")
    async with page.expect_navigation():
        await page.get_by_label("Close 101").click()
    await click("Tickets")
    await click("Next")
    await click("Next")
    await page.select_option("select", "waiting")
    await click("Show")
    await click("Printer 3")
    await page.fill("textarea", "Have you turned it off and on?")
    await click("Send")
    await page.goto(page.url.rpartition("/tickets")[0] + "/tickets/999")
    await click("New")
    await page.fill("[name=subject]", "No paper")
    await page.select_option("select", "1")
    await page.check("[name=urgent]")
    await page.select_option("[name=parts]", ["ink", "drum"])
    await page.check("[value=boss]")
    await click("Create")
"""


ZOO = f"""
async def use(page, opentabs):
    await page.evaluate({ZOO_SCRIPT!r})
"""


class Site:
    """A site, as `serving` requires it."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    def app(self) -> Starlette:
        return self._app


SITES: dict[str, tuple[Callable[[], Served], str]] = {
    "chat": (lambda: Site(create_demo_site(page_delay=0.01)), CHAT),
    "library": (lambda: Site(library()), LIBRARY),
    "zoo": (lambda: Site(zoo()), ZOO),
    "helpdesk": (Helpdesk, HELPDESK),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A recording of each site."""
    found: dict[str, Path] = {}
    for name, (make, script) in SITES.items():
        directory = tmp_path_factory.mktemp(name)
        (directory / "use.py").write_text(script)
        with serving(make()) as url:
            done = record(directory, url, "--script", "use.py", "--out", f"{name}.har")
        assert done.returncode == 0, done.stderr
        found[name] = directory / f"{name}.har"
    return found


def opentabs(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "opentabs_py", *arguments], directory, COLUMNS="100")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module", params=[*SITES])
def plugin(
    request: pytest.FixtureRequest,
    recorded: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The plugin that was generated for a site; the site is gone."""
    name: str = request.param
    directory = tmp_path_factory.mktemp(name)
    done = opentabs(directory, "new", name, "--from", str(recorded[name]))
    assert done.returncode == 0, done.stderr
    assert "Nothing in the recording says" not in done.stderr
    return directory / name


def test_a_generated_plugin_compiles_type_checks_and_passes_its_tests(plugin: Path) -> None:
    built = opentabs(plugin, "build")
    assert built.returncode == 0, built.stderr
    checked = run([str(TSC), "--project", "."], plugin)
    assert checked.returncode == 0, checked.stdout
    ruff = [sys.executable, "-m", "ruff", "format", "--diff", "--line-length=100", "tests"]
    formatted = run(ruff, plugin)
    assert formatted.returncode == 0, formatted.stdout

    tested = opentabs(plugin, "test", "--", "--timeout=60")

    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert re.search(r"\d+ passed in", tested.stdout), tested.stdout


def test_a_generated_plugin_works_at_the_site_itself(plugin: Path) -> None:
    make, _ = SITES[plugin.name]
    site = Helpdesk(created=True) if plugin.name == "helpdesk" else make()
    assert opentabs(plugin, "build").returncode == 0
    with serving(site) as url:
        done = opentabs(plugin, "verify", ".", "--site", url, "--writes", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    calls = json.loads(done.stdout)["calls"]
    assert calls == {"same": len(EXPECTED[plugin.name])}


# The calls in each plugin's recording.
EXPECTED = {
    "chat": ["list_channels", "list_messages", "list_messages", "create_message"],
    "library": ["list_books", "get_book_detail", "add_review"],
    "zoo": [
        *("get_me", "list_animals", "list_keepers", "list_visits", "list_cages", "list_feeds"),
        *("get_animal", "get_animal", "get_animal", "search", "list_tanks"),
        *("create_animal", "update_animal"),
        *("delete_animal", "feed_animal", "pet_animal", "zoo_list_gates", "zoo_close", "zoo_greet"),
        "get_gate",
    ],
    "helpdesk": [
        *("list_tickets", "list_tickets", "close_ticket", "get_ticket", "get_ticket"),
        *("get_ticket", "create_comment", "create_ticket"),
    ],
}


def test_each_tool_is_called_in_the_recording(plugin: Path) -> None:
    har = json.loads((plugin / "tests" / "site.har").read_text())
    called = [each["tool"] for each in har["log"]["_opentabs"]["calls"]]
    assert called == [f"{plugin.name}_{tool}" for tool in EXPECTED[plugin.name]]


def test_tools_of_chosen_requests_can_be_written_in_javascript(recorded: dict[str, Path]) -> None:
    file = recorded["chat"]
    chosen = ("--tool", "GET /api/channels/general/messages", "--tool", "GET /")

    made = opentabs(file.parent, "new", "part", "--js", "--from", file.name, *chosen)
    built = opentabs(file.parent / "part", "build")

    assert made.returncode == 0, made.stderr
    assert "part_list_messages reads GET /api/channels/{id}/messages" in words(made.stderr)
    assert "part_list_channels" not in made.stderr
    assert built.returncode == 0, built.stderr


def test_a_prompt_asks_for_better_names(recorded: dict[str, Path]) -> None:
    file = recorded["library"]
    done = opentabs(file.parent, "new", "books", "--from", file.name, "--prompt")

    assert done.returncode == 0, done.stderr
    assert "## books_get_book_detail" in done.stdout
    assert 'called with: {"id": "book-0003"}' in done.stdout
    assert not (file.parent / "books").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--from", "nothing.har"), "There is no recording nothing.har"),
        (("--from", "chat.har", "--tool", "GET /nothing"), "The recording has no 'GET /nothing'"),
        (("--tool", "GET /"), "need a recording: --from FILE.har"),
        (("--from", "empty.har"), "has nothing that a tool could be made from"),
    ],
)
def test_what_cannot_be_generated_is_refused(
    recorded: dict[str, Path], arguments: tuple[str, ...], text: str
) -> None:
    directory = recorded["chat"].parent
    (directory / "empty.har").write_text('{"log": {"entries": []}}')

    done = opentabs(directory, "new", "refused", *arguments)

    assert done.returncode in (2, 3), done.stderr
    assert text in words(done.stderr), done.stderr
    assert not (directory / "refused").exists()


def test_a_site_is_analyzed_by_opening_it(tmp_path: Path) -> None:
    with serving(Site(library())) as url:
        done = opentabs(tmp_path, "analyze", url)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == url
    text = words(done.stdout)
    assert "authorization (from localStorage session)" in text
    assert "x-csrf-token (from meta csrf-token)" in text
    assert "list_books reads POST /graphql Books first" in text
    assert lines[-1].startswith(f"Make a plugin: opentabs record {url}, use the site, then")


def test_a_recording_is_analyzed_for_programs(recorded: dict[str, Path], tmp_path: Path) -> None:
    done = opentabs(tmp_path, "analyze", str(recorded["helpdesk"]), "--json")

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["auth"]["cookies"] == ["helpdesk"]
    assert [(each["name"], each["reads"]) for each in document["tools"]] == [
        ("list_tickets", True),
        ("close_ticket", False),
        ("get_ticket", True),
        ("create_comment", False),
        ("create_ticket", False),
    ]


@pytest.mark.parametrize("target", ["ftp://chat.example.com", f"file:{'a' * 300}"])
def test_only_addresses_and_recordings_are_analyzed(tmp_path: Path, target: str) -> None:
    done = opentabs(tmp_path, "analyze", target)

    assert done.returncode == 2
    assert "write an http or https URL" in done.stderr
    assert "or the name of a recording" in " ".join(done.stderr.split())
