"""One Chromium for all tests, with the probe plugin; each test gets its own tab."""

import os
import signal
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client import Client
from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from e2e.browser.apart import Apart, launch_apart
from e2e.browser.desktop import missing_programs, screen
from e2e.chain import PROBE, Advance, Tab, wait_for_document
from e2e.quiet import Quiet, Turns
from e2e.waiting import PATIENT_MS
from opentabs_py.config.settings import load_settings
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.clock import StoppableClock

if TYPE_CHECKING:
    from e2e.fleet.members import Fleet, Nats

# Pages that differ in what their host lets scripts do.
HEADERS = {
    "strict": {"content-security-policy": "script-src 'none'; require-trusted-types-for 'script'"},
    "sandbox": {"content-security-policy": "sandbox"},
    "sandbox-scripts": {"content-security-policy": "sandbox allow-scripts"},
    "no-frames": {"content-security-policy": "default-src 'none'; frame-src 'none'"},
}
BODIES = {
    "unready": '<body data-ready="no">signed out',
    "hostile": '<script src="/hostile.js"></script><body>hostile',
}
HOSTILE = (Path(__file__).parent / "pages" / "hostile.js").read_text()
# The files that take longest start first, because workers take one file after another. Before them
# come those that need quiet, among files of short tests: quiet waits for running tests to end.
LONGEST = (
    "cli/test_stopping.py",
    "cli/test_cli.py",
    "cli/test_background.py",
    "browser/test_attach.py",
    "mcp/test_clients.py",
    "plugins/test_reload.py",
    "pages/test_traps.py",
    "calls/test_progress.py",
    "kit/test_timing.py",
    "mcp/test_conformance.py",
    "runner/test_running.py",
    "runner/test_command.py",
    "runner/test_one_run.py",
    "sites/test_verify.py",
    "sites/test_recordings.py",
    "sites/test_generate.py",
    "server/test_consent.py",
    "fleet/test_losses.py",
    "fleet/test_fleet.py",
    "fleet/test_commands.py",
    "kit/test_report_page.py",
    "docs/test_webmcp_doc.py",
    "server/test_metrics.py",
    "server/test_audit.py",
    "docs/test_testing_doc.py",
    "browser/test_driver.py",
    "kit/test_fuzz.py",
    "kit/test_command.py",
    "kit/test_plain.py",
    "kit/test_building.py",
    "kit/test_faults.py",
    "kit/test_expectations.py",
    "docs/test_plugins_doc.py",
    "calls/test_recovery.py",
    "docs/test_readme.py",
    "calls/test_cancellation.py",
    "kit/test_runs.py",
    "kit/test_lifetime.py",
    "kit/test_isolation.py",
    "docs/test_ci_doc.py",
    "calls/test_limits.py",
    "mcp/test_config.py",
    "calls/test_conditions.py",
    "kit/test_options.py",
    "calls/test_crashes.py",
    "plugins/test_start_page.py",
    "plugins/test_built_plugins.py",
    "kit/test_tools.py",
    "pages/test_pages.py",
)
TURNS: "pytest.StashKey[Turns]" = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Let signals reach the programs that tests start, and let worker processes take turns.

    Also let Playwright's `expect` wait as long as all other waits.
    """
    expect.set_options(timeout=PATIENT_MS)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a run under `nohup`, or with `&`
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # programs inherit that
        signal.signal(signal.SIGHUP, lambda *_: None)
    # Commands must find neither the user's running servers, settings and reviews nor those of
    # another worker.
    state = tempfile.TemporaryDirectory(prefix="opentabs-test-state-")
    config.add_cleanup(state.cleanup)
    os.environ["XDG_STATE_HOME"] = state.name
    os.environ["XDG_CONFIG_HOME"] = f"{state.name}/config"
    os.environ["XDG_DATA_HOME"] = f"{state.name}/data"
    if hasattr(config, "workerinput"):
        # The parent of this worker's temporary directory is shared by all workers.
        config.stash[TURNS] = Turns(Path(config.getoption("basetemp")).parent)
        config.add_cleanup(config.stash[TURNS].close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest tests first."""
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Start a test only when no other test needs quiet."""
    turns = item.config.stash.get(TURNS, None)
    with nullcontext() if turns is None else turns.running():
        return (yield)


@pytest.fixture(scope="session")
def quiet(pytestconfig: pytest.Config) -> Quiet:
    """Provides quiet for measurements."""
    turns = pytestconfig.stash.get(TURNS, None)
    return nullcontext if turns is None else turns.quiet


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Writes a line to the terminal."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")

    def say_(line: str) -> None:
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(line)

    return say_


@pytest.fixture(scope="session")
def display() -> Generator[str]:
    """A screen without a window manager, and xdotool to use it."""
    if missing := missing_programs():
        pytest.skip(f"needs {missing[0]}")
    with screen() as name:
        yield name


@pytest.fixture
def short_path() -> Generator[Path]:
    """A directory whose name is short enough for Chromium's socket in it."""
    with tempfile.TemporaryDirectory(prefix="t") as directory:
        yield Path(directory)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def site() -> AsyncGenerator[str]:
    """The address of a site with one page per kind of host."""

    async def page(request: Request) -> HTMLResponse:
        kind = request.path_params["kind"]
        if kind == "hostile.js":
            return HTMLResponse(HOSTILE, media_type="text/javascript")
        if kind == "never":
            while (await request.receive())["type"] != "http.disconnect":
                pass
        body = BODIES.get(kind, "<body>a page")
        html = f"<!doctype html><title>{kind}</title>{body}"
        return HTMLResponse(html, headers=HEADERS.get(kind))

    listener = bind("127.0.0.1", 0)
    app = Starlette(routes=[Route("/{kind:path}", page)])
    async with serve_http(app, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(scope="session")
def clock() -> StoppableClock:
    """The clock of the calls' timers in `tabs`. It runs in real time, except for `advance`."""
    return StoppableClock()


@pytest.fixture(scope="session")
async def tabs(clock: StoppableClock) -> AsyncGenerator[OpenTabs]:
    """The running chain."""
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(
        plugins=[PROBE],
        settings=settings,
        # Without it, no document would enter the back/forward cache.
        ignore_default_args=["--disable-back-forward-cache"],
        _seams=Seams(clock=clock),
    ) as running:
        yield running


@pytest.fixture
async def advance(tabs: OpenTabs, clock: StoppableClock) -> AsyncGenerator[Advance]:
    """Stops the clock of the calls' timers; from then on, only the test advances it."""
    clock.stop()
    yield lambda seconds: clock.advance(seconds, tabs.internals.bridge.calls.settle)
    clock.resume()


@pytest.fixture
async def open_tab(tabs: OpenTabs, site: str) -> AsyncGenerator[Callable[..., Any]]:
    """Opens tabs; closes them after the test."""
    pages: list[Page] = []

    async def open_(path: str = "page", readiness: str = "ready", host: str = "127.0.0.1") -> Tab:
        page = await tabs.context.new_page()
        pages.append(page)
        # The fragment distinguishes this tab's document from all others.
        url = f"{site.replace('127.0.0.1', host)}/{path}#{len(tabs.context.pages)}-{id(page)}"
        await page.goto(url)
        document = await wait_for_document(tabs, url, readiness)
        return Tab(page, document.tab_id, tabs)

    yield open_
    for page in pages:
        if not page.is_closed():
            await page.close()


@pytest.fixture
async def tab(open_tab: Callable[..., Any]) -> Tab:
    """A tab in which the probe is ready."""
    opened = await open_tab()
    assert isinstance(opened, Tab)
    return opened


@pytest.fixture
async def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Apart]:
    """A browser that outlives its servers."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    async with launch_apart(tmp_path) as launched:
        yield launched


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, tabs: OpenTabs) -> AsyncGenerator[Client]:
    """A real MCP client over Streamable HTTP, in each era."""
    async with Client(tabs.mcp_url, mode=request.param) as connected:
        yield connected


@pytest.fixture
def records(tabs: OpenTabs) -> Generator[list[CallRecord]]:
    """The records of this test's calls, once they have ended."""
    kept: list[CallRecord] = []
    end = tabs.observe(kept.append)
    yield kept
    end()


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> "Generator[Nats]":
    """A NATS server."""
    from e2e.fleet.members import nats_server

    with nats_server(tmp_path_factory.mktemp("nats")) as nats:
        yield nats


@pytest.fixture
def fleet(nats: "Nats", tmp_path: Path) -> "Generator[Fleet]":
    """A fleet without workers."""
    from e2e.fleet.members import a_fleet

    with a_fleet(nats, tmp_path) as fleet:
        yield fleet
