"""Hosts that break what scripts rely on: tools work there, or a clear error says why not."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from e2e.chain import Tab, wait_for_document
from e2e.waiting import PATIENT

FROZEN = """
for (const each of [Object, Array, Function, String, Promise, Map, Set, Error, EventTarget, Event,
  CustomEvent, MessagePort, RegExp, Number, JSON, Reflect, Math]) {
  if (each.prototype) { Object.freeze(each.prototype); }
  Object.freeze(each);
}
Object.freeze(document);
"""
PATCHED = """
JSON.stringify = () => "garbage";
JSON.parse = () => ({ garbage: true });
Array.prototype.push = function () { return 0; };
Map.prototype.get = Map.prototype.set = () => undefined;
String.prototype.slice = String.prototype.split = () => "garbage";
Object.keys = () => [];
EventTarget.prototype.dispatchEvent = () => true;
EventTarget.prototype.addEventListener = () => {};
globalThis.CustomEvent = class {};
globalThis.crypto.getRandomValues = (array) => array.fill(7);
"""
NO_STORAGE = """
delete globalThis.localStorage;
delete Window.prototype.localStorage;
Object.defineProperty(globalThis, "localStorage", {
  get() { throw new DOMException("denied", "SecurityError"); },
});
Object.defineProperty(globalThis, "sessionStorage", { value: undefined });
"""
SILENT = """
for (const type of
  ["readystatechange", "DOMContentLoaded", "load", "message", "pagehide", "pageshow"]) {
  addEventListener(type, (event) => event.stopImmediatePropagation(), true);
}
"""
STOPPED = """
document.documentElement.append(document.createElement("body"));
stop();
"""
NO_PLACE = """
Object.defineProperty(globalThis, "__openTabs", { value: Object.freeze({}), writable: false });
"""


@pytest.fixture
def host(open_tab: Callable[..., Any], site: str) -> Callable[..., Any]:
    """Opens a page whose first script is the given one."""

    async def open_host(script: str, readiness: str = "ready") -> Tab:
        tab: Tab = await open_tab("page")
        html = f"<!doctype html><script>{script}</script><title>host</title><body>a host"

        async def answer(route: Any) -> None:
            await route.fulfill(body=html, content_type="text/html")

        await tab.page.route(f"{site}/host**", answer)
        url = f"{site}/host#{id(tab)}"
        await tab.page.goto(url, wait_until="commit")
        await wait_for_document(tab.tabs, url, readiness)
        return tab

    return open_host


@pytest.mark.parametrize(
    "script",
    [FROZEN, NO_STORAGE, SILENT, STOPPED],
    ids=["frozen", "no storage", "events stopped", "loading stopped"],
)
async def test_tools_work_and_report_on_a_host_with(host: Callable[..., Any], script: str) -> None:
    tab: Tab = await host(script)
    reports: list[float | None] = []

    value = await tab.call(
        "run",
        {"key": "a", "steps": [{"report": {"progress": 1}}, {"wait": 5}], "result": {"deep": [1]}},
        on_progress=lambda report: reports.append(report.progress),
    )

    assert value == {"key": "a", "result": {"deep": [1]}}
    assert reports == [1]


async def test_results_and_errors_are_those_of_the_tool_on_a_host_with_patched_builtins(
    host: Callable[..., Any],
) -> None:
    tab: Tab = await host(PATCHED)

    assert await tab.call("echo", {"value": {"a": [1, "two", None]}}) == {
        "value": {"a": [1, "two", None]}
    }
    error = await tab.fail("fail", {"kind": "tool"})
    assert (error.detail.code, error.detail.message) == ("RATE_LIMITED", "slow down")


async def test_a_host_where_adapters_cannot_register_runs_none_and_says_why(
    host: Callable[..., Any],
) -> None:
    tab: Tab = await host(NO_PLACE, "missing")
    error = await tab.refuse("echo", {"value": 1})

    assert (error.detail.code, error.detail.retryable) == ("PLUGIN_NOT_LOADED", False)
    assert "probe" in error.detail.message


async def test_a_host_that_floods_the_page_with_events_and_messages_holds_up_no_call(
    host: Callable[..., Any],
) -> None:
    tab: Tab = await host("")
    await tab.page.evaluate(
        """() => {
          const name = () => Array.from(crypto.getRandomValues(new Uint8Array(16)),
            (byte) => byte.toString(16).padStart(2, "0")).join("");
          globalThis.flooded = 0;
          globalThis.flood = setInterval(() => {
            for (let i = 0; i < 200; i++) {
              flooded++;
              const detail = `tool.result ${name()}"x"`;
              document.dispatchEvent(new CustomEvent(name(), { detail }));
              const entries = [{ level: "error", message: "forged", data: [], ts: 0 }];
              const forged = { plugin: "probe", entries, nonce: name() };
              postMessage({ type: "opentabs:plugin-logs", ...forged });
              postMessage({ type: "opentabs:readiness-changed", ...forged });
            }
          }, 1);
        }"""
    )
    for number in range(20):
        with anyio.fail_after(PATIENT):
            assert await tab.call("echo", {"value": number}) == {"value": number}
    assert await tab.page.evaluate("clearInterval(flood), flooded") > 1000
