"""A call reaches the tool in the page, and its value or error comes back intact."""

import re
from collections.abc import Callable
from typing import Any

import anyio
import httpx2
import pytest
from mcp import types
from mcp.client import Client

from e2e.chain import PROBE, Tab
from e2e.waiting import PATIENT
from opentabs_py.calling.running import RunningCall
from opentabs_py.config.settings import load_settings
from opentabs_py.core.protocol import LogParams
from opentabs_py.errors import CallRefusedError, ChainError, ToolFailedError
from opentabs_py.session.session import OpenTabs


def text_of(result: types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text


async def test_a_value_comes_back_as_the_tool_gave_it(tab: Tab) -> None:
    value = {"z": [1, 2.5, None, True], "a": {"text": '☃ 😀 " \\ \n'}, "m": ""}

    assert await tab.call("echo", {"value": value}) == {"value": value}


async def test_keys_keep_their_order(tab: Tab) -> None:
    assert list(await tab.call("give", {"kind": "order"})) == ["z", "a", "m"]


async def test_undefined_is_null(tab: Tab) -> None:
    assert await tab.call("give", {"kind": "undefined"}) is None


async def test_a_map_is_an_object_and_a_set_an_array(tab: Tab) -> None:
    assert await tab.call("give", {"kind": "map"}) == {"map": {"z": 1, "a": [1, 2]}}


async def test_half_a_surrogate_pair_does_not_lose_the_result(tab: Tab) -> None:
    assert await tab.call("give", {"kind": "text"}) == 'a "quoted" text: ☃ 😀 �'


@pytest.mark.parametrize("kind", ["circular", "bigint"])
async def test_a_value_that_json_cannot_represent_is_an_error_that_says_so(
    tab: Tab, kind: str
) -> None:
    error = await tab.fail("give", {"kind": kind})

    assert isinstance(error, ToolFailedError)
    assert error.detail.code == "RESULT_NOT_SERIALIZABLE"
    assert "Return plain objects" in error.detail.message


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("response", "$.data.response is of type Response, "),
        ("promise", "$[0] is of type Promise, which JSON turns into {}; await it."),
        ("element", "$.main is of type HTMLFormElement, "),
    ],
)
async def test_an_object_that_json_would_empty_is_an_error_that_says_where_it_is(
    tab: Tab, kind: str, problem: str
) -> None:
    error = await tab.fail("give", {"kind": kind})

    assert error.detail.code == "RESULT_NOT_SERIALIZABLE"
    assert problem in error.detail.message


async def test_objects_that_may_be_empty_are_empty_objects(tab: Tab) -> None:
    assert await tab.call("give", {"kind": "empty"}) == [{}, {}, {}, {}, {}]


async def test_a_value_too_deep_to_read_ends_its_call_at_once(tab: Tab) -> None:
    error = await tab.fail("give", {"kind": "deep"})

    assert error.detail.code == "RESULT_NOT_SERIALIZABLE"


async def test_a_result_of_many_megabytes_arrives_whole(tab: Tab) -> None:
    text = (await tab.call("big", {"size": 8 * 1024 * 1024}))["text"]

    assert text == "0123456789abcdeé" * (8 * 1024 * 1024 // 16)


async def test_a_result_over_the_limit_ends_its_call_and_not_the_connection(site: str) -> None:
    settings = load_settings(port=0, message_limit=2 * 1024 * 1024)
    async with OpenTabs(plugins=[PROBE], settings=settings) as tabs:
        await tabs.open(f"{site}/small")
        with pytest.raises(ToolFailedError, match="Return less per call") as caught:
            await tabs.call("probe_big", {"size": 3 * 1024 * 1024})

        assert caught.value.detail.code == "RESULT_TOO_LARGE"
        assert await tabs.call("probe_echo", {"value": 1}) == {"value": 1}


async def test_the_status_page_shows_each_plugins_state(tab: Tab) -> None:
    async with httpx2.AsyncClient() as http:
        status = (await http.get(tab.tabs.mcp_url.replace("/mcp", "/status"))).json()

    assert status == {"extension": True, "plugins": {"probe": "ready"}, "problems": []}


async def test_an_input_of_many_megabytes_arrives_whole(tab: Tab) -> None:
    text = "0123456789abcde😀" * (3 * 1024 * 1024 // 16)

    assert await tab.call("echo", {"value": text}) == {"value": text}


async def test_tool_error_fields_arrive_whole(tab: Tab) -> None:
    detail = (await tab.fail("fail", {"kind": "tool"})).detail

    assert detail.to_json() == {
        "code": "RATE_LIMITED",
        "message": "slow down",
        "category": "rate_limit",
        "retryable": True,
        "retryAfterMs": 1500,
    }


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("plain", "something broke"),
        ("string", "just text"),
        ("trap", "a value that cannot be shown was thrown"),
    ],
)
async def test_whatever_else_is_thrown_is_an_internal_error(
    tab: Tab, kind: str, message: str
) -> None:
    detail = (await tab.fail("fail", {"kind": kind})).detail

    assert (detail.code, detail.message) == ("INTERNAL_ERROR", message)


async def test_an_mcp_client_sees_the_error_as_text_and_as_json(tab: Tab, client: Client) -> None:
    result = await client.call_tool("probe_fail", {"kind": "tool", "tabId": tab.id})

    assert result.is_error
    text = text_of(result)
    assert text.startswith(
        "[ERROR code=RATE_LIMITED category=rate_limit retryable=true retryAfterMs=1500] slow down\n"
    )
    block = re.search(r"```json\n(.*)\n```$", text, re.DOTALL)
    assert block is not None
    assert '"retryAfterMs": 1500' in block[1]


async def test_an_mcp_client_gets_the_value_as_text_and_structured(
    tab: Tab, client: Client
) -> None:
    result = await client.call_tool("probe_echo", {"value": [1], "tabId": tab.id})

    assert not result.is_error
    assert result.structured_content == {"value": [1]}
    assert text_of(result) == '{"value":[1]}'


async def test_an_unknown_tool_is_refused_with_the_nearest_name(tabs: OpenTabs) -> None:
    with pytest.raises(CallRefusedError, match="did you mean 'probe_echo'") as caught:
        await tabs.call("probe_ecko")

    assert caught.value.detail.code == "UNKNOWN_TOOL"


async def test_invalid_arguments_are_refused_with_path_and_rule(tab: Tab) -> None:
    error = await tab.fail("run", {"steps": [{}, 7]})

    assert error.detail.code == "INVALID_ARGUMENTS"
    assert 'at steps[1]: 7 is not of type "object"' in error.detail.message


async def test_an_input_over_the_limit_is_refused(tab: Tab, tabs: OpenTabs) -> None:
    text = "x" * (tabs.settings.message_limit + 1)

    error = await tab.fail("echo", {"value": text})

    assert error.detail.code == "INPUT_TOO_LARGE"


async def test_a_tab_id_picks_the_tab_and_the_handler_never_sees_it(
    open_tab: Callable[..., Any],
) -> None:
    first, second = await open_tab(), await open_tab()

    await first.call("run", {"key": "here"})

    assert await first.page.evaluate("probe.runs") == {"here": 1}
    assert await second.page.evaluate("probe.runs") == {}
    assert "tabId" not in await first.page.evaluate("probe.params")


async def test_without_a_tab_id_the_active_tab_wins(
    tabs: OpenTabs, open_tab: Callable[..., Any]
) -> None:
    first, second = await open_tab(), await open_tab()
    await first.page.bring_to_front()
    with anyio.fail_after(PATIENT):
        while tabs.internals.bridge.tabs.serving("probe")[0].tab_id != first.id:
            await tabs.internals.bridge.changed().wait()

    await tabs.call("probe_run", {"key": "active"})

    assert await first.page.evaluate("probe.runs") == {"active": 1}
    assert await second.page.evaluate("probe.runs") == {}


async def test_an_agent_finds_a_tab_in_the_list_and_calls_a_tool_there(
    client: Client, open_tab: Callable[..., Any]
) -> None:
    first, second = await open_tab(), await open_tab()
    await first.page.evaluate("document.title = 'The first'")

    async def find() -> Any:
        with anyio.fail_after(PATIENT):
            while True:
                changed = first.tabs.internals.bridge.changed()
                listed = (await client.call_tool("tabs_list")).structured_content
                assert listed is not None
                for tab in listed["tabs"]:
                    if tab["title"] == "The first":
                        return tab
                await changed.wait()

    found = await find()
    assert found["url"] == first.page.url
    assert found["plugins"] == [{"name": "probe", "readiness": "ready"}]

    arguments = {"steps": [], "key": "here", "tabId": found["tabId"]}
    await client.call_tool("probe_run", arguments)
    assert await first.page.evaluate("probe.runs") == {"here": 1}
    assert await second.page.evaluate("probe.runs") == {}


async def test_a_tab_id_of_another_tab_is_refused_never_replaced(tab: Tab) -> None:
    with pytest.raises(ChainError, match=r"Tab 999 does not match .* Tabs that do: ") as caught:
        await tab.tabs.call("probe_echo", {"value": 1, "tabId": 999})

    assert caught.value.detail.code == "TAB_NOT_FOUND"


async def test_calls_at_once_do_not_mix(tab: Tab) -> None:
    answers: dict[int, Any] = {}

    async def one(number: int) -> None:
        answers[number] = (await tab.call("echo", {"value": number}))["value"]

    async with anyio.create_task_group() as group:
        for number in range(64):
            group.start_soon(one, number)

    assert answers == {number: number for number in range(64)}


async def test_a_cancelled_call_stops_the_tool(tab: Tab) -> None:
    async with anyio.create_task_group() as group:
        await tab.start(group, [{"wait": 60_000}], "cancelled")
        group.cancel_scope.cancel()

    reason = await tab.page.wait_for_function("probe.aborted.cancelled")
    assert await reason.json_value() == "the client cancelled it"


async def test_what_a_plugin_logs_reaches_the_server(
    tab: Tab, caplog: pytest.LogCaptureFixture
) -> None:
    logged = anyio.Event()
    take = tab.tabs.internals.bridge.on_log

    def note(params: LogParams) -> None:
        take(params)
        logged.set()

    tab.tabs.internals.bridge.on_log = note
    try:
        await tab.call("log", {"count": 3})
        with anyio.fail_after(PATIENT):
            await logged.wait()
    finally:
        tab.tabs.internals.bridge.on_log = take

    texts = [r.getMessage() for r in caplog.records if r.name == "opentabs_py.plugin.probe"]
    assert texts == ["probe: log 0", "probe: log 1", "probe: log 2"]


async def test_logs_posted_right_before_a_tool_returns_reach_its_caller(tab: Tab) -> None:
    for _ in range(20):
        call = RunningCall("probe_log", {"count": 3, "tabId": tab.id})
        await call.run(tab.tabs.internals.tool_calls, None)
        assert [entry.message for entry in call.logs] == ["log 0", "log 1", "log 2"]
