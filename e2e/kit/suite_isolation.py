"""What one test leaves behind, and whether the next finds it; run by test_kit_isolation.py.

The tests run in this order; each `..._then_...` follows what it is about.
"""

import json
import os
import signal
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, StorageState

from e2e.processes import descendants, is_alive, is_browser
from opentabs_py.testing import SyncOpenTabs, chain, expect

SITE = "http://127.0.0.1:9"
CHAT = '<meta name="opentabs-demo"><title>chat</title>'
LEAVE = """async () => {
  document.cookie = "left=1; max-age=9999";
  localStorage.left = sessionStorage.left = "1";
  await (await caches.open("left")).put("/x", new Response("x"));
  await new Promise((resolve, reject) => {
    const request = indexedDB.open("left", 1);
    request.onsuccess = () => resolve(request.result.close());
    request.onerror = reject;
  });
}"""
FIND = """async () => ({
  cookie: document.cookie,
  local: {...localStorage},
  session: {...sessionStorage},
  caches: await caches.keys(),
  databases: await indexedDB.databases(),
  permission: (await navigator.permissions.query({name: "geolocation"})).state,
  marked: globalThis.marked ?? null,
})"""
NOTHING: dict[str, Any] = {
    "cookie": "", "local": {}, "session": {}, "caches": [], "databases": [],
    "permission": "prompt", "marked": None,
}  # fmt: skip
STATE: StorageState = {
    "cookies": [
        {
            "name": "demo_session", "value": "s3", "domain": "127.0.0.1", "path": "/",
            "expires": -1, "httpOnly": True, "secure": False, "sameSite": "Lax",
        }
    ],
    "origins": [{"origin": SITE, "localStorage": [{"name": "theme", "value": "dark"}]}],
}  # fmt: skip
heard: list[str] = []
seen: dict[str, Any] = {}


class Numbering(BaseHTTPRequestHandler):
    """Answers with how often it was asked, and allows browsers to keep the answer."""

    asked = 0

    def do_GET(self) -> None:
        Numbering.asked += self.path == "/number"
        body = str(Numbering.asked).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None: ...


@pytest.fixture(scope="module")
def numbering() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Numbering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def open_site(page: Page, html: str = CHAT) -> None:
    page.route(f"{SITE}/", lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto(f"{SITE}/")


def test_first_much_is_left_behind(
    opentabs: SyncOpenTabs, context: BrowserContext, page: Page
) -> None:
    def hear(message: ConsoleMessage) -> None:
        if not message.text.startswith("OpenTabs:"):  # which the runtime writes
            heard.append(message.text)

    context.route("**/left", lambda route: route.fulfill(body="left"))
    context.grant_permissions(["geolocation"])
    elsewhere = {"name": "left", "value": "1", "domain": "example.org", "path": "/"}
    context.add_cookies([elsewhere])  # type: ignore[list-item]
    context.on("console", hear)
    open_site(page)
    page.evaluate(LEAVE)
    page.evaluate("console.log('first')")
    open_site(context.new_page())
    seen["call"] = opentabs.start("probe_run", key="k", steps=[{"wait": 60_000}])
    seen["url"] = opentabs.mcp_url

    assert heard == ["first"]
    assert page.evaluate(FIND) != NOTHING


def test_then_nothing_of_it_is_there(
    opentabs: SyncOpenTabs, context: BrowserContext, page: Page
) -> None:
    open_site(page)

    assert opentabs.mcp_url == seen["url"], "the browser was not shared"
    assert page.evaluate(FIND) == NOTHING
    assert context.cookies() == []
    assert page.evaluate("fetch('/left').then(() => 'there', () => 'gone')") == "gone"
    assert [each.url for each in context.pages] == ["about:blank", f"{SITE}/"]
    assert seen["call"].cancelled
    assert heard == ["first"]
    assert opentabs.logs == ()


def test_first_what_cannot_be_undone_is_done(
    opentabs: SyncOpenTabs, context: BrowserContext, page: Page
) -> None:
    context.add_init_script("globalThis.marked = 1")
    open_site(page)

    assert opentabs.mcp_url == seen["url"]
    assert page.evaluate("marked") == 1


def test_then_another_browser_is_there(opentabs: SyncOpenTabs, page: Page) -> None:
    open_site(page)

    assert opentabs.mcp_url != seen["url"]
    assert page.evaluate(FIND) == NOTHING
    seen["url"] = opentabs.mcp_url


def test_first_a_passkey_is_created(opentabs: SyncOpenTabs, context: BrowserContext) -> None:
    context.credentials.create("127.0.0.1")

    assert opentabs.mcp_url == seen["url"]


def test_then_another_browser_without_it_is_there(
    opentabs: SyncOpenTabs, context: BrowserContext
) -> None:
    assert opentabs.mcp_url != seen["url"]
    assert context.credentials.get() == []
    seen["url"] = opentabs.mcp_url


@pytest.mark.opentabs(fresh_profile=True)
def test_who_asks_for_it_has_a_browser_of_his_own(opentabs: SyncOpenTabs, page: Page) -> None:
    open_site(page)

    assert opentabs.mcp_url != seen["url"]
    expect(opentabs.start("probe_echo", value=1)).to_return({"value": 1})


def test_then_the_shared_one_is_still_there(opentabs: SyncOpenTabs) -> None:
    assert opentabs.mcp_url == seen["url"]


def test_first_the_browser_is_closed(opentabs: SyncOpenTabs, context: BrowserContext) -> None:
    context.close()

    expect(opentabs.start("probe_echo", value=1)).to_fail()


def test_then_there_is_one_again(opentabs: SyncOpenTabs, page: Page) -> None:
    open_site(page)

    expect(opentabs.start("probe_echo", value=1)).to_succeed()


def hang_browser(opentabs: SyncOpenTabs) -> None:
    open_site(opentabs.page)
    (browser,) = (each for each in descendants(os.getpid()) if is_browser(each))
    seen["browser"], seen["patience"] = browser, chain.CLEAN_WITHIN
    chain.CLEAN_WITHIN = 1.0
    os.kill(browser, signal.SIGSTOP)


def check_another(opentabs: SyncOpenTabs, page: Page) -> None:
    """Check that the browser of `hang_browser` was killed and replaced."""
    chain.CLEAN_WITHIN = seen["patience"]
    open_site(page)

    assert not is_alive(seen["browser"])
    expect(opentabs.start("probe_echo", value=1)).to_succeed()


def test_first_the_browser_hangs(opentabs: SyncOpenTabs) -> None:
    hang_browser(opentabs)


def test_then_it_was_killed_and_there_is_another(opentabs: SyncOpenTabs, page: Page) -> None:
    check_another(opentabs, page)


def test_first_a_page_hangs_whose_messages_have_a_fault(opentabs: SyncOpenTabs, page: Page) -> None:
    seen["url"] = opentabs.mcp_url
    open_site(page)
    opentabs.faults.delay("port", 0.01, optional=True)
    page.evaluate("setTimeout(() => { while (true) {} })")
    opentabs.faults.delay("event", 0.01, optional=True)


def test_then_the_same_browser_is_there(opentabs: SyncOpenTabs, page: Page) -> None:
    open_site(page)

    assert opentabs.mcp_url == seen["url"]
    expect(opentabs.start("probe_echo", value=1)).to_succeed()


def test_first_the_browser_hangs_after_a_fault(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.delay("port", 0.01, optional=True)
    hang_browser(opentabs)


def test_then_it_was_killed_too(opentabs: SyncOpenTabs, page: Page) -> None:
    check_another(opentabs, page)


def test_first_a_session_is_loaded(opentabs: SyncOpenTabs, context: BrowserContext) -> None:
    context.set_storage_state(STATE)
    seen["url"] = opentabs.mcp_url


def test_then_the_site_that_was_not_opened_is_signed_out(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    open_site(page)

    assert opentabs.mcp_url == seen["url"]
    assert page.evaluate(FIND) == NOTHING


# --- what a tool fetches ---


def test_a_route_answers_the_fetch_of_a_tool(opentabs: SyncOpenTabs, page: Page) -> None:
    open_site(page)
    page.route("**/api/channels", lambda route: route.fulfill(json={"channels": []}))

    expect(opentabs.start("demo_list_channels")).to_return({"channels": []})


def test_a_route_fails_the_fetch_of_a_tool(opentabs: SyncOpenTabs, page: Page) -> None:
    open_site(page)
    page.route("**/api/channels", lambda route: route.fulfill(status=429, json={}))

    expect(opentabs.start("demo_list_channels")).to_fail(code="RATE_LIMITED", retryable=True)


def test_a_recorded_site_answers_the_fetch_of_a_tool(
    opentabs: SyncOpenTabs, page: Page, tmp_path: Path
) -> None:
    har = tmp_path / "site.har"
    har.write_text(json.dumps(recording({"/": CHAT, "/api/channels": '{"channels": []}'})))
    page.route_from_har(har)
    page.goto(f"{SITE}/")

    expect(opentabs.start("demo_list_channels")).to_return({"channels": []})


@pytest.mark.browser_context_args(storage_state=STATE, locale="de-DE")
def test_a_saved_session_goes_along_with_the_fetch_of_a_tool(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    cookies: list[str] = []

    def answer(route: Any) -> None:
        cookies.append(route.request.all_headers()["cookie"])
        route.fulfill(json={"channels": []})

    open_site(page)
    page.route("**/api/channels", answer)

    expect(opentabs.start("demo_list_channels")).to_succeed()
    assert cookies == ["demo_session=s3"]
    assert page.evaluate("[localStorage.theme, navigator.language]") == ["dark", "de-DE"]


def recording(pages: dict[str, str]) -> dict[str, Any]:
    """A recorded site, in the HTTP Archive format."""
    entries = [
        {
            "startedDateTime": "2026-01-01T00:00:00.000Z",
            "time": 1,
            "request": {
                "method": "GET", "url": f"{SITE}{path}", "httpVersion": "HTTP/1.1",
                "cookies": [], "headers": [], "queryString": [], "headersSize": -1, "bodySize": 0,
            },
            "response": {
                "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [],
                "headers": [{"name": "content-type", "value": "text/html"}],
                "content": {"size": len(body), "mimeType": "text/html", "text": body},
                "redirectURL": "", "headersSize": -1, "bodySize": len(body),
            },
            "cache": {},
            "timings": {"send": 0, "wait": 1, "receive": 0},
        }
        for path, body in pages.items()
    ]  # fmt: skip
    creator = {"name": "by hand", "version": "1"}
    return {"log": {"version": "1.2", "creator": creator, "entries": entries}}


def number(page: Page, site: str) -> str:
    page.goto(site)
    return str(page.evaluate("fetch('/number').then((response) => response.text())"))


@pytest.mark.usefixtures("opentabs")
def test_first_a_response_is_kept(page: Page, numbering: str) -> None:
    assert [number(page, numbering), number(page, numbering)] == ["1", "1"]


@pytest.mark.usefixtures("opentabs")
def test_then_it_is_not_kept(page: Page, numbering: str) -> None:
    assert number(page, numbering) == "2"
