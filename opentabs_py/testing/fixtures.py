"""The fixtures of the test kit. Like any fixture, each can be overridden."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opentabs_py.testing.item_options import (
    is_async,
    marks_of,
    uses_opentabs,
)

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

    from opentabs_py.config.settings import Settings
    from opentabs_py.core.limits import Limits
    from opentabs_py.testing.client import SyncMcpClient
    from opentabs_py.testing.people import People
    from opentabs_py.testing.slots import ChainSlots
    from opentabs_py.testing.sync_session import SyncOpenTabs

PAGE_DELAY = 0.01  # s per page of an export of the demo site, so that its reports arrive one by one


@pytest.fixture(scope="module")
def opentabs_plugins(
    request: pytest.FixtureRequest, _opentabs_slots: "ChainSlots"
) -> Sequence[str | Path]:
    """The directories of the plugins under test.

    By default the plugin that contains the test file, or else `plugins` under `[tool.opentabs]`.
    A plugin whose source is newer than its build is built first.
    """
    from opentabs_py.config.settings import load_settings, settings_files
    from opentabs_py.testing.building import BUILD_WITHIN, build_if_stale, plugins_under_test
    from opentabs_py.testing.opening import failing_plainly

    with failing_plainly():
        settings = load_settings()
    directories = plugins_under_test(request.path.parent, settings)
    has_other = settings.webmcp or settings.hands or request.getfixturevalue("opentabs_tools")
    if not directories and not has_other:
        project, _ = settings_files()
        pytest.fail(
            f"No plugin to test: {request.path} is not inside a plugin. Set plugins = "
            f'["..."] under [tool.opentabs] in {project} (settings are those of the directory '
            "in which pytest was started), or define a fixture opentabs_plugins; for tools "
            "written in Python, a fixture opentabs_tools; for the tools that pages register "
            'themselves, set webmcp = ["http://127.0.0.1/*"] there; for hands on any page, '
            "hands = true.",
            pytrace=False,
        )
    with failing_plainly():
        for directory in directories:
            _opentabs_slots.thread.run(build_if_stale, directory, within=BUILD_WITHIN)
    return directories


@pytest.fixture(scope="module")
def opentabs_tools() -> Sequence[Any]:
    """Tools written in Python, served next to the plugins: functions, methods and `Module`s."""
    return ()


@pytest.fixture(scope="session")
def opentabs_settings(pytestconfig: pytest.Config) -> "Settings":
    """The server's settings: this project's, on a free port, with a fresh profile."""
    from opentabs_py.config.settings import load_settings
    from opentabs_py.testing.opening import failing_plainly

    with failing_plainly():
        settings = load_settings()
    return settings.for_own_use(
        plugins=(),
        plugin_folders=(),
        profile=None,
        permissions={"default": "auto"},
        no_review=(Path("/"),),
        headed=pytestconfig.getoption("--headed", default=False),
    )


@pytest.fixture
def opentabs_limits(request: pytest.FixtureRequest, opentabs_settings: "Settings") -> "Limits":
    """The timers of a call: those of the settings, unless the test's mark overrides them."""
    from opentabs_py.core.limits import Limits

    marks = marks_of(request.node)
    limits = opentabs_settings.limits
    return Limits(idle=marks.idle or limits.idle, ceiling=marks.ceiling or limits.ceiling)


@pytest.fixture
def opentabs(_opentabs_people: "People") -> "SyncOpenTabs":
    """The running chain: the server, Chromium with the extension, the plugins."""
    return _opentabs_people.first.tabs


@pytest.fixture
def context(request: pytest.FixtureRequest) -> "BrowserContext":
    """The browser that has the extension; in tests without opentabs, Playwright's own."""
    if not uses_opentabs(request):
        plain: BrowserContext = request.getfixturevalue("context")
        return plain
    people: People = request.getfixturevalue("_opentabs_people")
    return people.first.context


@pytest.fixture
def mcp(opentabs: "SyncOpenTabs", _opentabs_slots: "ChainSlots") -> Generator["SyncMcpClient"]:
    """A connected MCP client."""
    from opentabs_py.testing.client import connect_client

    with connect_client(_opentabs_slots.thread, opentabs) as client:
        yield client


@pytest.fixture
def demo_site(_opentabs_slots: "ChainSlots") -> Generator[str]:
    """The URL of a demo chat site, with fresh data for each test."""
    from opentabs_py.demo import create_demo_site
    from opentabs_py.server.http.serve import serve_locally

    site = create_demo_site(page_delay=PAGE_DELAY)
    with _opentabs_slots.thread.open(serve_locally(site)) as url:
        yield url


@pytest.fixture(scope="session")
def _opentabs_slots() -> Generator["ChainSlots"]:
    from opentabs_py.testing.slots import ChainSlots

    slots = ChainSlots()
    yield slots
    slots.close()


@pytest.fixture(scope="session")
def _opentabs_browsers(
    _opentabs_slots: "ChainSlots", playwright: Any, _pw_artifacts_folder: Any
) -> Generator[None]:
    """Close the browsers before Playwright stops."""
    from opentabs_py.browser.scratch import own_directory

    own_directory(Path(_pw_artifacts_folder.name))
    _opentabs_slots.thread.playwright = playwright
    yield
    _opentabs_slots.close_browsers()
    _opentabs_slots.thread.playwright = None


@pytest.fixture
def _opentabs_people(
    request: pytest.FixtureRequest,
    _opentabs_slots: "ChainSlots",
    opentabs_plugins: Sequence[str | Path],
    opentabs_tools: Sequence[Any],
    opentabs_settings: "Settings",
    opentabs_limits: "Limits",
    browser_name: str,
) -> Generator["People"]:
    """A turn with a browser for each person of one test; usually there is one."""
    from opentabs_py.testing.opening import ServedByTest, opened

    if browser_name != "chromium":
        pytest.skip("only Chromium can load the extension")
    if is_async(request.node):
        pytest.fail(
            "This test is async, but the fixture opentabs is for synchronous tests. Use "
            "`async with OpenTabs(plugins=opentabs_plugins) as tabs:`, or remove the `async`.",
            pytrace=False,
        )
    served = ServedByTest(opentabs_plugins, opentabs_tools, opentabs_settings, opentabs_limits)
    with opened(request, _opentabs_slots, served) as people:
        yield people
