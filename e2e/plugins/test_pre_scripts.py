"""A plugin's pre-script runs before the page's own scripts, and the plugin gets its values."""

from pathlib import Path
from typing import Any

import anyio
from playwright.async_api import Page, Route

from e2e.on_disk import PLAIN, write_plugin
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.core.protocol import LogParams
from opentabs_py.session.session import OpenTabs

# A short form of what the ecosystem's build generates for `definePreScript`. It records what the
# page's first script has done so far: nothing.
PRE_SCRIPT = """
(() => {
  const registry = (globalThis.__openTabs ??= {});
  const values = ((registry.preScript ??= {})["chat"] ??= {});
  values.version = "VERSION";
  values.sawPage = "pageWasHere" in window;
})();
"""
PAGE = """<!doctype html><title>x</title><script>
  window.pageWasHere = true;
  window.pageSaw = globalThis.__openTabs?.preScript?.chat?.version ?? null;
</script><body>"""


def pre_script(version: str) -> str:
    return PRE_SCRIPT.replace("VERSION", version)


def chain(*plugins: Path) -> OpenTabs:
    return OpenTabs(plugins=plugins, settings=load_settings(port=0, profile=None, headed=False))


async def open_page(tabs: OpenTabs, path: str = "page") -> Page:
    await tabs.context.route("http://127.0.0.1/**", lambda route: route.fulfill(
        body=PAGE, content_type="text/html"))  # fmt: skip
    return await tabs.open(f"http://127.0.0.1/{path}")


async def values(page: Page) -> Any:
    return await page.evaluate("globalThis.__openTabs?.preScript?.chat ?? null")


async def test_it_runs_before_the_page_and_its_values_stay_for_the_adapter(tmp_path: Path) -> None:
    chat = write_plugin(tmp_path / "chat", pre_script=pre_script("1"))
    others = [write_plugin(tmp_path / name) for name in ("a", "z")]  # whose files freeze things
    async with chain(chat, *others) as tabs:
        page = await open_page(tabs)
        for name in ("chat", "a", "z"):
            assert await tabs.call(f"{name}_version") == {"version": "1"}

        assert await values(page) == {"version": "1", "sawPage": False}
        assert await page.evaluate("pageSaw") == "1"


async def test_it_runs_in_frames_of_the_site_too_and_in_no_others(tmp_path: Path) -> None:
    chat = write_plugin(tmp_path / "chat", pre_script=pre_script("1"))
    sources = ["src='/inner'", "srcdoc='<p>x'", "src='about:blank'", "src='http://localhost/'"]
    frames = "".join(f"<iframe {source}></iframe>" for source in sources)
    async with chain(chat) as tabs:
        await tabs.context.route("**/*", lambda route: route.fulfill(
            body=frames if route.request.url.endswith("/outer") else PAGE,
            content_type="text/html"))  # fmt: skip
        page = await tabs.open("http://127.0.0.1/outer")
        ran = [await frame.evaluate("globalThis.__openTabs?.preScript?.chat?.version ?? null")
               for frame in page.frames]  # fmt: skip

        assert ran == ["1", "1", "1", "1", None]
        assert await tabs.call("chat_version") == {"version": "1"}


async def test_it_keeps_out_of_pages_that_the_plugin_excludes(tmp_path: Path) -> None:
    excluded = ["http://127.0.0.1/out/*"]
    chat = write_plugin(tmp_path / "chat", excluded=excluded, pre_script=pre_script("1"))
    other = write_plugin(tmp_path / "other")
    async with chain(chat, other) as tabs:
        page = await open_page(tabs, "out/page")
        assert await tabs.call("other_version") == {"version": "1"}

        assert await values(page) is None
        assert await page.evaluate("pageSaw") is None


async def test_it_follows_the_plugin_s_versions_from_the_next_document_on(tmp_path: Path) -> None:
    chat = write_plugin(tmp_path / "chat", form=PLAIN, pre_script=pre_script("1"))
    other = write_plugin(tmp_path / "other", "1", form=PLAIN)
    async with chain(chat, other) as tabs:
        page = await open_page(tabs)

        # A change of another plugin leaves it registered.
        write_plugin(other, "2", form=PLAIN, patterns=["http://127.0.0.1/page*"])
        await tabs.reload_plugins()
        await page.reload()
        assert await page.evaluate("pageSaw") == "1"

        write_plugin(chat, form=PLAIN, pre_script=pre_script("2"))
        await tabs.reload_plugins()
        assert await values(page) == {"version": "1", "sawPage": False}  # not run late
        await page.reload()
        assert await page.evaluate("pageSaw") == "2"

        write_plugin(chat, form=PLAIN)
        await tabs.reload_plugins()
        await page.reload()
        assert await page.evaluate("pageSaw") is None
        assert await tabs.call("chat_version") == {"version": "1"}


async def test_a_document_that_was_open_before_has_the_plugin_and_not_its_pre_script(
    tmp_path: Path,
) -> None:
    chat = write_plugin(tmp_path / "chat")
    (chat / "dist" / "adapter.iife.js").rename(tmp_path / "adapter.js")
    async with chain(chat) as tabs:
        page = await open_page(tabs)

        write_plugin(chat, pre_script=pre_script("1"))
        await tabs.reload_plugins()
        with anyio.fail_after(PATIENT):
            assert await tabs.call("chat_version") == {"version": "1"}

        assert await values(page) is None
        await page.reload()
        assert await page.evaluate("pageSaw") == "1"


LOGS = """
window.postMessage({ type: "opentabs:plugin-logs", plugin: "chat", nonce: __openTabs._logNonce,
  entries: [{ level: "error", message: "too early", data: [], ts: Date.now() }] }, "*");
window.addEventListener("message", ({ data }) => { window.sawLogs = data.plugin === "chat"; });
"""
SLOW = "<!doctype html><title>x</title><script src='/slow.js' defer></script><body>"


async def test_what_it_logs_while_the_page_loads_arrives_once_the_page_has_the_plugin(
    tmp_path: Path,
) -> None:
    chat = write_plugin(tmp_path / "chat", pre_script=LOGS)
    logged: list[LogParams] = []
    release = anyio.Event()

    async def answer(route: Route) -> None:
        if route.request.url.endswith("slow.js"):
            await release.wait()
            await route.fulfill(body="", content_type="text/javascript")
        else:
            await route.fulfill(body=SLOW, content_type="text/html")

    async with chain(chat) as tabs:
        tabs.internals.bridge.on_log = logged.append
        await tabs.context.route("http://127.0.0.1/**", answer)
        page = await tabs.context.new_page()
        await page.goto("http://127.0.0.1/slow", wait_until="commit")
        await page.wait_for_function("window.sawLogs")
        release.set()
        await tabs.call("chat_version")

    assert [(params.plugin, params.entries[0].message) for params in logged] == [
        ("chat", "too early")
    ]
