"""Every function of the SDK works in a real page, in a plugin that is built here."""

import logging
import re
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import LoggingLevel, LoggingMessageNotificationParams
from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.routing import Route

from e2e.waiting import PATIENT
from opentabs_py.config.paths import data_dir
from opentabs_py.config.settings import load_settings
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogParams
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import CallRefusedError, ToolFailedError
from opentabs_py.plugins.build import start_builder
from opentabs_py.plugins.toolchain import find_toolchain
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs
from opentabs_py.tracing.waterfall import report

SOURCE = Path(__file__).parents[1] / "sources" / "sdk-probe"
PAGE = """<!doctype html>
<title>A page</title>
<meta property="og:site_name" content="Probe">
<script>globalThis.pageScriptRan = true; globalThis.APP = { user: { name: "Ada" } };</script>
<h1> A heading </h1>
<ul><li>one</li><li>two</li></ul>"""
# A page that forbids compiling text as code, as many sites do.
STRICT = "script-src 'unsafe-inline'; require-trusted-types-for 'script'"


async def page(_request: Request) -> HTMLResponse:
    answer = HTMLResponse(PAGE, headers={"content-security-policy": STRICT})
    answer.set_cookie("session", "secret-one")
    return answer


async def echo(request: Request) -> JSONResponse:
    body = (await request.body()).decode()
    kind = request.headers.get("content-type", "")
    cookie = request.headers.get("cookie", "")
    return JSONResponse({"method": request.method, "type": kind, "body": body, "cookie": cookie})


async def text(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("plain")


@pytest.fixture(scope="module")
async def sdk_site() -> AsyncGenerator[str]:
    listener = bind("127.0.0.1", 0)
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    routes = [
        Route("/api/echo", echo, methods=methods),
        Route("/api/text", text),
        Route("/{path:path}", page),
    ]
    async with serve_http(Starlette(routes=routes), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture(scope="module")
async def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plugins") / "sdk-probe"
    shutil.copytree(SOURCE, directory)
    async with start_builder(find_toolchain(data_dir=data_dir())) as builder:
        built = await builder.build(directory)
    assert built.problems == ()
    return directory


@pytest.fixture(scope="module")
async def running(plugin: Path) -> AsyncGenerator[OpenTabs]:
    settings = load_settings(port=0, plugin_settings={"sdk-probe": {"colour": "green"}})
    async with OpenTabs(plugins=[plugin], settings=settings) as tabs:
        assert tabs.skipped_plugins == []
        yield tabs


@pytest.fixture(scope="module", autouse=True)
async def open_page(running: OpenTabs, sdk_site: str) -> Page:
    opened = await running.open(f"{sdk_site}/")
    with anyio.fail_after(PATIENT):
        await running.internals.bridge.wait_ready("sdk-probe")
    return opened


def answered(method: str, kind: str, body: str) -> dict[str, str]:
    return {"method": method, "type": kind, "body": body, "cookie": "session=secret-one"}


USES: dict[str, Any] = {
    "fetchFromPage": 200,
    "fetchJSON": "session=secret-one",
    "fetchText": "plain",
    "postJSON": answered("POST", "application/json", '{"a":1}'),
    "putJSON": answered("PUT", "application/json", '{"a":2}'),
    "patchJSON": answered("PATCH", "application/json", '{"a":3}'),
    "deleteJSON": answered("DELETE", "", ""),
    "postForm": answered(
        "POST", "application/x-www-form-urlencoded;charset=UTF-8", "a=b+c&list=1&list=2"
    ),
    "postFormData": "multipart/form-data",
    "httpStatusToToolError": {"code": "INTERNAL_ERROR", "retryable": True},
    "parseRetryAfterMs": 2000,
    "parseRateLimitHeader": 7,
    "buildQueryString": "q=a+b&tag=x&tag=y",
    "stripUndefined": ["a"],
    "waitForSelector": "late-one",
    "waitForSelectorRemoval": None,
    "querySelectorAll": ["one", "two"],
    "getTextContent": "A heading",
    "getMetaContent": "Probe",
    "observeDOM": 1,
    "getPageGlobal": ["Ada", None],
    "getCurrentUrl": "/",
    "getPageTitle": "A page",
    "setLocalStorage": True,
    "getLocalStorage": "1",
    "findLocalStorageEntry": {"key": "probe", "value": "1"},
    "removeLocalStorage": None,
    "setSessionStorage": True,
    "getSessionStorage": "2",
    "removeSessionStorage": None,
    "getCookie": "secret-one",
    "setAuthCache": None,
    "getAuthCache": {"token": "t"},
    "clearAuthCache": None,
    "sleep": None,
    "retry": 3,
    "waitUntil": 3,
    "getConfig": "green",
    "getPreScriptValue": True,
    "defineTool": True,
    "definePreScript": "function",
    "OpenTabsPlugin": "function",
}
OTHERS = {"ToolError", "log", "notifyReadinessChanged"}  # each has a test of its own


async def test_every_export_of_the_sdk_is_used_in_a_page(running: OpenTabs) -> None:
    exported = await running.call("sdk_probe_names")

    assert set(exported["names"]) == USES.keys() | OTHERS


async def test_every_function_returns_what_it_promises(running: OpenTabs) -> None:
    # In this order: some read what an earlier one stores.
    values = {
        what: (await running.call("sdk_probe_attempt", {"what": what}))["value"] for what in USES
    }

    assert values == USES


async def test_the_fields_of_a_tool_error_arrive_whole(running: OpenTabs) -> None:
    with pytest.raises(ToolFailedError) as caught:
        await running.call("sdk_probe_attempt", {"what": "ToolError"})

    assert caught.value.detail.to_json() == {
        "code": "RATE_LIMITED",
        "message": "slow down",
        "category": "rate_limit",
        "retryable": True,
        "retryAfterMs": 1500,
    }


@pytest.mark.parametrize("part", ["URL", "method", "header"])
async def test_a_request_that_cannot_be_sent_is_not_worth_repeating(
    running: OpenTabs, part: str
) -> None:
    with pytest.raises(ToolFailedError, match="cannot be sent: Failed to execute") as caught:
        await running.call("sdk_probe_attempt", {"what": f"an invalid {part}"})

    assert (caught.value.detail.code, caught.value.detail.retryable) == ("INTERNAL_ERROR", False)


async def test_logs_arrive_in_order_with_their_levels_and_before_the_result(
    running: OpenTabs,
) -> None:
    got: list[tuple[str, str]] = []

    def note(params: LogParams) -> None:
        got.extend((entry.level, entry.message[:14]) for entry in params.entries)

    before, running.internals.bridge.on_log = running.internals.bridge.on_log, note
    try:
        await running.call("sdk_probe_attempt", {"what": "log"})
    finally:
        running.internals.bridge.on_log = before

    assert [entry for entry in got if entry[1].startswith(("a ", "an "))] == [
        ("debug", "a debug line ["),  # and the log messages with it
        ("info", "an info line"),
        ("warning", "a warning line"),
        ("error", "an error line"),
    ]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("level", "wanted"),
    [("debug", ["debug", "info", "warning", "error"]), ("warning", ["warning", "error"])],
)
async def test_a_client_receives_what_a_plugin_logs_during_its_call_at_the_requested_level(
    running: OpenTabs, mode: Literal["auto", "legacy"], level: LoggingLevel, wanted: list[str]
) -> None:
    got: list[tuple[str, str | None]] = []

    async def note(params: LoggingMessageNotificationParams) -> None:
        if str(params.data).startswith("a"):
            got.append((params.level, params.logger))

    asked = level if mode == "auto" else None  # the older era asks by a separate request
    async with Client(running.mcp_url, mode=mode, logging_callback=note, log_level=asked) as client:
        if mode == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.set_logging_level(level)  # type: ignore[deprecated]
        await client.call_tool("sdk_probe_attempt", {"what": "log"})
        with anyio.fail_after(PATIENT):
            while len(got) < len(wanted):
                await anyio.lowlevel.checkpoint()

    assert got == [(each, "sdk-probe") for each in wanted]


async def test_a_client_of_the_newer_era_that_asked_for_no_logs_gets_none(
    running: OpenTabs,
) -> None:
    got: list[LoggingMessageNotificationParams] = []

    async def note(params: LoggingMessageNotificationParams) -> None:
        got.append(params)

    async with Client(running.mcp_url, logging_callback=note) as client:
        await client.call_tool("sdk_probe_attempt", {"what": "log"})

    assert got == []


async def test_arguments_are_what_zod_makes_of_them(running: OpenTabs) -> None:
    reports: list[ProgressReport] = []

    value = await running.call("sdk_probe_sum", {"numbers": [1, 2]}, on_progress=reports.append)

    assert value == {"sum": 103}
    assert [(report.progress, report.total) for report in reports] == [(1, 2), (2, 2)]


async def test_a_misspelled_argument_is_refused_and_the_near_name_given(running: OpenTabs) -> None:
    with pytest.raises(CallRefusedError, match=r"at numbrs: .* \(did you mean 'numbers'\?\)"):
        await running.call("sdk_probe_sum", {"numbers": [1, 2], "numbrs": [3]})


async def test_what_only_zod_can_refuse_is_refused_in_the_page(running: OpenTabs) -> None:
    with pytest.raises(ToolFailedError) as caught:
        await running.call("sdk_probe_sum", {"numbers": [13]})

    assert caught.value.detail.code == "VALIDATION_ERROR"
    assert "numbers" in caught.value.detail.message
    assert "no thirteen, please" in caught.value.detail.message


async def test_hooks_are_called_in_their_order_though_they_throw(
    running: OpenTabs, open_page: Page
) -> None:
    await open_page.evaluate("globalThis.probed = []")
    await running.call("sdk_probe_sum", {"numbers": [1]})
    with pytest.raises(ToolFailedError):
        await running.call("sdk_probe_sum", {"numbers": [13]})
    await open_page.evaluate("location.hash = 'there'")
    await open_page.evaluate("history.pushState({}, '', '#further')")
    await open_page.wait_for_function("probed.includes('navigate #further')")
    await open_page.evaluate("__openTabs.adapters['sdk-probe'].teardown()")
    await open_page.evaluate("__openTabs.adapters['sdk-probe'].teardown()")
    await open_page.evaluate("history.pushState({}, '', '#gone')")

    assert await open_page.evaluate("probed") == [
        "start sum",
        "end sum true true",
        "start sum",
        "end sum false true",
        "navigate #there",
        "navigate #further",
        "deactivate",
        "teardown",
    ]


async def test_a_plugin_that_reports_a_change_is_asked_again_whether_it_is_ready(
    running: OpenTabs, sdk_site: str
) -> None:
    page = await running.open(f"{sdk_site}/another")
    with anyio.fail_after(PATIENT):
        while not (
            mine := [d for d in running.internals.bridge.tabs.documents if d.url == page.url]
        ) or (mine[0].plugins["sdk-probe"].readiness != "ready"):
            await running.internals.bridge.changed().wait()
    tab = mine[0].tab_id

    await running.call("sdk_probe_attempt", {"what": "notifyReadinessChanged", "tabId": tab})

    with anyio.fail_after(PATIENT):  # otherwise, it would only be asked after 30 s
        while [
            d.plugins["sdk-probe"].readiness
            for d in running.internals.bridge.tabs.documents
            if d.tab_id == tab
        ] != ["unavailable"]:
            await running.internals.bridge.changed().wait()
    await page.close()


STACK = [
    r"TypeError: Cannot read properties of null \(reading 'textContent'\)",
    r"    at textOf \(src/tools\.ts:\d+:\d+\)",
    r"    at (Object\.)?handle \(src/tools\.ts:\d+:\d+\)",
    r"> \d+ \|   return element\.textContent",  # a minifier would merge the line and the constant
    r"      \| +\^",
]


async def test_an_exception_of_a_tool_has_its_stack_in_lines_of_typescript(
    running: OpenTabs, caplog: pytest.LogCaptureFixture
) -> None:
    records: list[CallRecord] = []
    ignore = running.internals.tool_calls.records.observe(records.append)
    with pytest.raises(ToolFailedError) as caught:
        await running.call("sdk_probe_broken")
    ignore()

    stack = caught.value.detail.stack
    assert stack is not None
    [logged] = [r.getMessage() for r in caplog.records if "threw" in r.getMessage()]
    shown = report(records[0])
    for line in STACK:
        assert re.search(line, stack), f"{line}\n{stack}"
        assert re.search(line, logged), f"{line}\n{logged}"
        assert re.search(line, shown), f"{line}\n{shown}"
    assert "runtime.js" not in stack


async def test_an_error_that_is_logged_has_its_stack_in_lines_of_typescript(
    running: OpenTabs, caplog: pytest.LogCaptureFixture
) -> None:
    texts: list[str] = []
    logged = anyio.Event()

    def note(record: logging.LogRecord) -> bool:
        if "onToolInvocationStart() failed" in record.getMessage():
            texts.append(record.getMessage())
            logged.set()
        return True

    caplog.handler.addFilter(note)
    await running.call("sdk_probe_sum", {"numbers": [1]})
    with anyio.fail_after(PATIENT):
        await logged.wait()
    caplog.handler.removeFilter(note)

    assert re.match(
        r"sdk-probe: onToolInvocationStart\(\) failed\nError: a hook that throws\n"
        r"    at SdkProbe\.onToolInvocationStart \(src/index\.ts:\d+:\d+\)\n",
        texts[0],
    ), texts


async def test_the_stack_of_an_exception_includes_its_cause(running: OpenTabs) -> None:
    with pytest.raises(ToolFailedError) as caught:
        await running.call("sdk_probe_wrapped")

    assert caught.value.detail.message == "There is no text."
    assert re.search(
        r"^\w+: There is no text\.\n    at .*src/tools\.ts:.*\n"
        r"(.*\n)*\[cause\]: TypeError: Cannot read properties of null .*\n"
        r"    at textOf \(src/tools\.ts:\d+:\d+\)\n",
        caught.value.detail.stack or "",
    )


@pytest.mark.parametrize("debug", [False, True])
async def test_mcp_clients_are_sent_a_stack_only_where_the_server_was_asked_to(
    running: OpenTabs, debug: bool
) -> None:
    running.internals.tool_calls.debug = debug
    try:
        async with Client(running.mcp_url) as client:
            result = await client.call_tool("sdk_probe_broken", {})
    finally:
        running.internals.tool_calls.debug = False

    assert ("src/tools.ts" in result.model_dump_json()) is debug
