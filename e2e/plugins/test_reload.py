"""A rebuilt plugin is reloaded in open tabs, without reloading the page."""

import json
import logging
import shutil
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Page

from e2e.on_disk import BUILT, PLAIN, delete_plugin, write_plugin
from e2e.waiting import PATIENT
from opentabs_py.bridge import plugin_sync
from opentabs_py.config.settings import load_settings
from opentabs_py.core.plugin_names import RESERVED_TOOLS
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import CallError
from opentabs_py.plugins.plugin import PluginChanges
from opentabs_py.session.session import OpenTabs
from tests.waiting import until_all_wait

HOSTS = ["http://127.0.0.1/*", "http://localhost/*"]


@asynccontextmanager
async def serving(*plugins: Path) -> AsyncGenerator[OpenTabs]:
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(plugins=plugins, settings=settings) as tabs:
        yield tabs


@dataclass
class Shared:
    """A running chain for the plugins `chat` and `other`, which the tests add and remove."""

    tabs: OpenTabs
    folder: Path

    async def write(self, name: str, version: str = "1", **options: Any) -> Path:
        """Write a plugin, and serve it."""
        plugin = write_plugin(self.folder / name, version, **options)
        await self.tabs.reload_plugins()
        return plugin

    async def clear(self) -> None:
        """Close every page and delete every plugin."""
        left = self.tabs.context.pages
        await self.tabs.context.new_page()
        for page in left:
            await page.close()
        for plugin in self.folder.iterdir():
            delete_plugin(plugin)
        await self.tabs.reload_plugins()
        with anyio.fail_after(PATIENT):
            while self.tabs.internals.bridge.tabs.documents:
                await self.tabs.internals.bridge.changed().wait()


@pytest.fixture(scope="module")
async def started(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Shared]:
    folder = tmp_path_factory.mktemp("plugins")
    # So that the extension has access to both hosts from the start.
    plugins = [write_plugin(folder / name, patterns=HOSTS) for name in ("chat", "other")]
    async with serving(*plugins) as tabs:
        yield Shared(tabs, folder)


@pytest.fixture
async def shared(started: Shared) -> Shared:
    """The chain, without a plugin and without a page."""
    await started.clear()
    return started


async def notes(page: Page) -> list[str]:
    """Return what adapters recorded in a page since it was loaded."""
    noted: list[str] = await page.evaluate("window.notes ?? []")
    return noted


async def version(tabs: OpenTabs, plugin: str = "chat") -> str:
    with anyio.fail_after(PATIENT):
        value: dict[str, str] = await tabs.call(f"{plugin}_version")
    return value["version"]


@pytest.mark.parametrize("form", [BUILT, PLAIN], ids=["built", "plain"])
async def test_a_new_version_takes_the_old_one_s_place_in_an_open_tab(
    shared: Shared, site: str, form: str
) -> None:
    plugin = await shared.write("chat", "1", form=form)
    await shared.write("other", "1", form=form)
    tabs = shared.tabs
    page = await tabs.open(f"{site}/page")
    assert await version(tabs) == "1"
    await version(tabs, "other")

    write_plugin(plugin, "2", form=form)
    changes = await tabs.reload_plugins()

    assert (changes.added, changes.removed, changes.changed) == ((), (), ("chat",))
    assert await version(tabs) == "2"
    assert await notes(page) == ["came 1", "came 1", "torn down 1", "came 2"]
    write_plugin(plugin, "3", form=form)
    await tabs.reload_plugins()
    assert await version(tabs) == "3"
    assert (await notes(page))[4:] == ["torn down 2", "came 3"]


async def test_a_reload_without_changes_touches_no_page(shared: Shared, site: str) -> None:
    await shared.write("chat")
    tabs = shared.tabs
    page = await tabs.open(f"{site}/page")
    await version(tabs)

    changes = await tabs.reload_plugins()
    await version(tabs)

    assert changes == PluginChanges()
    assert await notes(page) == ["came 1"]


async def test_a_call_under_way_ends_in_the_version_it_began_in(shared: Shared, site: str) -> None:
    plugin = await shared.write("chat", "1")
    reported = anyio.Event()
    values: list[Any] = []

    def note(_: ProgressReport) -> None:
        reported.set()

    tabs = shared.tabs
    page = await tabs.open(f"{site}/page")

    async def wait() -> None:
        values.append(await tabs.call("chat_wait", on_progress=note))

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await reported.wait()
            write_plugin(plugin, "2", tools=["version"])
            await tabs.reload_plugins()
            assert await version(tabs) == "2"
            await page.evaluate("release()")

    assert values == [{"version": "1"}]


async def test_tools_come_and_go_with_the_version(shared: Shared, site: str) -> None:
    plugin = await shared.write("chat", tools=["wait"])
    tabs = shared.tabs
    await tabs.open(f"{site}/page")

    write_plugin(plugin, tools=["version"])
    await tabs.reload_plugins()

    assert [tool.name for tool in tabs.tools] == [
        "chat_version",
        "tabs_close",
        "tabs_list",
        "tabs_open",
    ]
    assert await version(tabs) == "1"
    with pytest.raises(CallError) as caught:
        await tabs.call("chat_wait")
    assert caught.value.detail.code == "UNKNOWN_TOOL"


@pytest.mark.parametrize("form", [BUILT, PLAIN], ids=["built", "plain"])
async def test_a_plugin_whose_directory_goes_is_torn_down_and_gone(
    shared: Shared, site: str, form: str
) -> None:
    chat, _ = [await shared.write(name, form=form) for name in ("chat", "other")]
    tabs = shared.tabs
    page = await tabs.open(f"{site}/page")
    await version(tabs)
    await version(tabs, "other")

    delete_plugin(chat)
    changes = await tabs.reload_plugins()

    assert (changes.removed, changes.changed) == (("chat",), ())
    names = [tool.name for tool in tabs.tools]
    assert names == ["other_version", "other_wait", "tabs_close", "tabs_list", "tabs_open"]
    assert (await notes(page))[2:] == ["torn down 1"]
    assert await page.evaluate("Object.keys(__openTabs.adapters)") == ["other"]
    assert await version(tabs, "other") == "1"

    write_plugin(chat, "2", form=form)
    assert (await tabs.reload_plugins()).added == ("chat",)
    assert await version(tabs) == "2"
    assert (await notes(page))[2:] == ["torn down 1", "came 2"]


async def test_a_plugin_removed_while_the_worker_was_dead_is_torn_down(
    shared: Shared, site: str
) -> None:
    chat, _ = [await shared.write(name) for name in ("chat", "other")]
    tabs = shared.tabs
    page = await tabs.open(f"{site}/page")
    await version(tabs)
    await version(tabs, "other")

    cdp = await tabs.context.new_cdp_session(page)
    await cdp.send("ServiceWorker.enable")
    delete_plugin(chat)
    await cdp.send("ServiceWorker.stopAllWorkers")
    await tabs.reload_plugins()

    assert await version(tabs, "other") == "1"
    await page.wait_for_function("notes.length === 3")
    assert (await notes(page))[2:] == ["torn down 1"]


async def test_a_plugin_that_breaks_is_served_on_as_it_was_and_the_problem_is_logged_once(
    shared: Shared, site: str, caplog: pytest.LogCaptureFixture
) -> None:
    await shared.write("other", patterns=["http://localhost/*"])
    plugin = await shared.write("chat", "1")
    tabs = shared.tabs
    page = await tabs.open(f"{site}/page")
    await version(tabs)

    tools_json = (plugin / "dist" / "tools.json").read_text()
    (plugin / "dist" / "tools.json").write_text(tools_json[:40])
    (plugin / "dist" / "adapter.iife.js").write_text("half")
    changes = await tabs.reload_plugins()
    again = await tabs.reload_plugins()

    assert [each.directory for each in changes.skipped] == [plugin]
    assert (changes.changed, changes.removed, again.skipped) == ((), (), ())
    assert [each.directory for each in tabs.skipped_plugins] == [plugin]
    assert await version(tabs) == "1"
    assert await notes(page) == ["came 1"]
    told = [r for r in caplog.records if "tools.json: is not JSON" in r.getMessage()]
    assert len(told) == 1

    write_plugin(plugin, "2")
    assert (await tabs.reload_plugins()).changed == ("chat",)
    assert tabs.skipped_plugins == []
    assert await version(tabs) == "2"


async def test_a_plugin_that_was_not_built_at_the_start_is_served_once_it_is(
    tmp_path: Path, site: str
) -> None:
    plugin = write_plugin(tmp_path / "chat")
    shutil.rmtree(plugin / "dist")
    async with serving(plugin) as tabs:
        assert tabs.plugins == []
        await tabs.open(f"{site}/page")

        write_plugin(plugin)
        assert (await tabs.reload_plugins()).added == ("chat",)

        assert await version(tabs) == "1"


async def test_a_teardown_that_throws_does_not_keep_the_new_version_out(
    shared: Shared, site: str
) -> None:
    plugin = await shared.write("chat", "1", teardown="throw new Error('never')")
    tabs = shared.tabs
    page = await tabs.open(f"{site}/page")
    await version(tabs)

    write_plugin(plugin, "2")
    await tabs.reload_plugins()

    assert await version(tabs) == "2"
    assert await notes(page) == ["came 1", "torn down 1", "came 2"]


@pytest.mark.parametrize(
    "hostility",
    [
        "Object.defineProperty(window, '__openTabs', { get() { throw new Error('no'); } })",
        "Object.defineProperty(window, '__openTabs', { value: Object.freeze(__openTabs) })",
        "setTimeout(() => { for (;;); })",  # hangs
    ],
)
async def test_a_hostile_page_keeps_a_new_version_out_of_no_other_page(
    shared: Shared, site: str, hostility: str
) -> None:
    plugin = await shared.write("chat", "1", form=PLAIN, patterns=HOSTS)
    tabs = shared.tabs
    hostile = await tabs.open(f"{site.replace('127.0.0.1', 'localhost')}/page")
    await version(tabs)
    await hostile.evaluate(f"{{ {hostility} }}")
    page = await tabs.context.new_page()
    await page.goto(f"{site}/page")
    await page.wait_for_function("window.notes")

    write_plugin(plugin, "2", form=PLAIN, patterns=HOSTS)
    await tabs.reload_plugins()

    await page.wait_for_function("notes.length === 3")
    assert await notes(page) == ["came 1", "torn down 1", "came 2"]


async def test_a_site_that_the_browser_did_not_know_of_at_its_start_is_served_too(
    tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may take longer, but we wait for the reload for a new site.
    monkeypatch.setattr(plugin_sync, "SYNC_WITHIN", 0)
    plugin = write_plugin(tmp_path / "chat", "1")
    async with serving(plugin) as tabs:
        await tabs.open(f"{site}/page")
        page = await tabs.context.new_page()
        await page.goto(f"{site.replace('127.0.0.1', 'localhost')}/page")

        write_plugin(plugin, "2", patterns=["http://localhost/*"])
        await tabs.reload_plugins()

        assert await version(tabs) == "2"
        assert await page.evaluate("notes.at(-1)") == "came 2"
        assert tabs.internals.bridge.plugin_sync.problems == []


async def test_a_call_under_way_ends_before_a_new_site_is_let_in(tmp_path: Path, site: str) -> None:
    plugin = write_plugin(tmp_path / "chat", "1")
    async with serving(plugin) as tabs:
        page = await tabs.open(f"{site}/page")
        call = await tabs.start("chat_wait")
        await page.wait_for_function("window.release !== undefined")
        write_plugin(plugin, "2", patterns=HOSTS)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tabs.reload_plugins)
            await until_all_wait()
            await page.evaluate("release()")
            assert await call.result() == {"version": "1"}
        assert await version(tabs) == "2"


async def test_documents_that_open_after_a_reload_get_the_new_version(
    shared: Shared, site: str
) -> None:
    plugin = await shared.write("chat", "1")
    tabs = shared.tabs
    write_plugin(plugin, "2")
    await tabs.reload_plugins()

    page = await tabs.open(f"{site}/page")
    assert await version(tabs) == "2"
    assert await notes(page) == ["came 2"]
    with anyio.fail_after(PATIENT):
        assert (await tabs.internals.bridge.wait_ready("chat")).protected


# --- the watch ---


class Heard(logging.Handler):
    """The messages that are logged."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self._logged = anyio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(record.getMessage())
        self._logged.set()

    async def wait_for(self, text: str) -> None:
        with anyio.fail_after(PATIENT):
            while text not in self._texts:
                await self._logged.wait()
                self._logged = anyio.Event()


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Generator[Heard]:
    caplog.set_level(logging.INFO, "opentabs_py")
    handler = Heard()
    logging.getLogger("opentabs_py").addHandler(handler)
    yield handler
    logging.getLogger("opentabs_py").removeHandler(handler)


async def wait_for_tools(tabs: OpenTabs, *names: str) -> None:
    changed = anyio.Event()

    def note() -> None:
        changed.set()

    unsubscribe = tabs.internals.registry.subscribe(note)
    with anyio.fail_after(PATIENT):
        while {tool.name for tool in tabs.tools} - {*RESERVED_TOOLS} != {*names}:
            await changed.wait()
            changed = anyio.Event()
    unsubscribe()


@asynccontextmanager
async def watching(tabs: OpenTabs) -> AsyncGenerator[OpenTabs]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tabs.watch_plugins)
        yield tabs
        tasks.cancel_scope.cancel()


async def test_a_write_is_seen_and_two_in_quick_succession_end_in_the_last(
    shared: Shared, site: str
) -> None:
    plugin = await shared.write("chat", "1")
    async with watching(shared.tabs) as tabs:
        page = await tabs.open(f"{site}/page")
        await version(tabs)

        write_plugin(plugin, "2", tools=["version", "config"])
        await page.wait_for_function("notes.at(-1) === 'came 2'")
        write_plugin(plugin, "3", tools=["version", "wait"])
        write_plugin(plugin, "4", tools=["version"])
        await page.wait_for_function("notes.at(-1) === 'came 4'")
        await wait_for_tools(tabs, "chat_version")

        assert await version(tabs) == "4"


async def test_a_plugin_that_comes_to_a_watched_folder_is_served_on_its_own_site(
    tmp_path: Path, site: str
) -> None:
    folder = tmp_path / "plugins"
    write_plugin(folder / "chat", "1")
    settings = load_settings(port=0, plugins=(), plugin_folders=(folder,))
    async with (
        OpenTabs(settings=settings) as tabs,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(tabs.watch_plugins)
        await tabs.open(f"{site.replace('127.0.0.1', 'localhost')}/page")

        write_plugin(folder / "mail", "1", patterns=["http://localhost/*"], tools=["where"])
        await wait_for_tools(tabs, "chat_version", "chat_wait", "mail_where")
        assert (await tabs.call("mail_where"))["url"].endswith("/page")

        shutil.rmtree(folder / "chat")
        await wait_for_tools(tabs, "mail_where")
        tasks.cancel_scope.cancel()


async def test_a_dist_that_goes_and_comes_back_is_seen(
    shared: Shared, site: str, tmp_path: Path
) -> None:
    plugin = await shared.write("chat", "1")
    shutil.rmtree(plugin / "dist")
    async with watching(shared.tabs) as tabs:
        page = await tabs.open(f"{site}/page")

        write_plugin(plugin, "1")
        await page.wait_for_function("window.notes?.at(-1) === 'came 1'")
        for number in ("2", "3"):
            shutil.rmtree(plugin / "dist")
            write_plugin(plugin, number)
            await page.wait_for_function("number => notes.at(-1) === `came ${number}`", arg=number)

        # And what is written to the new one later, by a build that writes a temporary file and
        # renames it.
        write_plugin(tmp_path / "staged" / "chat", "4")
        for file in (tmp_path / "staged" / "chat" / "dist").iterdir():
            file.rename(plugin / "dist" / file.name)
        await page.wait_for_function("notes.at(-1) === 'came 4'")

        assert await version(tabs) == "4"


async def test_a_change_of_only_the_package_file_is_noticed_and_logged(
    shared: Shared, heard: Heard
) -> None:
    plugin = await shared.write("chat")
    async with watching(shared.tabs) as tabs:
        package = json.loads((plugin / "package.json").read_text())
        (plugin / "package.json").write_text(json.dumps({**package, "version": "9.9.9"}))
        await heard.wait_for("Reloaded chat")

        assert tabs.plugins[0].manifest.version == "9.9.9"
