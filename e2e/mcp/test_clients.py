"""Third-party clients work over each transport, through every hop to the page."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from e2e.chain import PROBE, wait_for_document
from e2e.clients.frameworks import autogen_reads
from e2e.mcp.drivers import (
    Call,
    Driver,
    Inspected,
    Options,
    Outcome,
    drive,
    inspect,
    serve_command,
)
from opentabs_py.session.session import OpenTabs, Server
from tests.python_tools.samples import Counter

TYPESCRIPT = ["v1", "v2", "v2-auto"]
PYTHON = ["python", "python-legacy"]
ROUNDS = 150  # of calls, each with five reports


@dataclass
class Connected:
    """A client, and a tab in which the probe is ready.

    Attributes:
        tab: The arguments that choose the tab; over stdio there is only one.
    """

    driver: Driver
    tab: dict[str, Any]

    async def call(
        self, tool: str, *, options: Options | None = None, abort: bool = False, **arguments: Any
    ) -> Outcome:
        """Call a tool of the probe."""
        [outcome] = await self.call_all(Call(tool, arguments, options or {}, abort))
        return outcome

    async def call_all(self, *calls: Call) -> list[Outcome]:
        """Call tools of the probe concurrently."""
        return await self.driver.call_all(
            [
                replace(c, name=f"probe_{c.name}", arguments={**c.arguments, **self.tab})
                for c in calls
            ]
        )


@pytest.fixture(scope="module")
async def tab_id(tabs: OpenTabs, site: str) -> AsyncGenerator[int]:
    """The tab of the clients over HTTP."""
    page = await tabs.context.new_page()
    await page.goto(f"{site}/page#clients")
    document = await wait_for_document(tabs, f"{site}/page#clients")
    yield document.tab_id
    await page.close()


@pytest.fixture(scope="module")
async def connected(
    request: pytest.FixtureRequest, tabs: OpenTabs, site: str, tab_id: int
) -> AsyncGenerator[Connected]:
    """A client of the kind, and over the transport, that the test names."""
    kind, transport = request.param
    target: str | list[str] = tabs.mcp_url
    tab = {"tabId": tab_id}
    if transport == "stdio":
        target, tab = serve_command(f"{site}/page", str(PROBE)), {}
    async with AsyncExitStack() as stack:
        driver = await stack.enter_async_context(drive(kind, target))
        yield Connected(driver, tab)


# Over stdio each client needs its own server and browser; the others cover 2026 well enough.
PAIRS = [(kind, "http") for kind in (*TYPESCRIPT, *PYTHON)]
PAIRS += [(kind, "stdio") for kind in (*TYPESCRIPT, *PYTHON) if kind != "v2-auto"]


def each(
    kinds: Sequence[str], transports: Sequence[str] = ("http", "stdio")
) -> pytest.MarkDecorator:
    """Run a test with these clients."""
    pairs = [
        (kind, transport) for kind, transport in PAIRS if kind in kinds and transport in transports
    ]
    names = ["-".join(pair) for pair in pairs]
    return pytest.mark.parametrize("connected", pairs, indirect=True, ids=names)


# --- every client ---


@each(TYPESCRIPT + PYTHON)
async def test_it_lists_the_tools(connected: Connected) -> None:
    assert {"probe_echo", "probe_run"} <= set(connected.driver.tools)


@each(TYPESCRIPT + PYTHON)
async def test_it_gets_the_value_as_text_and_structured(connected: Connected) -> None:
    outcome = await connected.call("echo", value=["☃", 1.5, None])

    assert outcome.value == {"value": ["☃", 1.5, None]}
    assert outcome.result is not None
    assert [content["text"] for content in outcome.result["content"]] == [
        '{"value":["☃",1.5,null]}'
    ]


@each(TYPESCRIPT + PYTHON)
async def test_it_gets_a_tool_s_error_as_a_result(connected: Connected) -> None:
    outcome = await connected.call("fail", kind="tool")

    assert outcome.result is not None, outcome.error
    assert outcome.result["isError"] is True
    assert outcome.result["_meta"]["opentabs/error"]["code"] == "RATE_LIMITED"


@each(TYPESCRIPT + PYTHON)
async def test_it_gets_each_report_in_order(connected: Connected) -> None:
    steps = [{"report": {"progress": n, "total": 5, "message": f"page {n}"}} for n in range(1, 6)]

    outcome = await connected.call("run", steps=steps, result="done")

    assert outcome.value["result"] == "done"
    assert [(r["progress"], r["total"], r["message"]) for r in outcome.reports] == [
        (n, 5, f"page {n}") for n in range(1, 6)
    ]


@each(TYPESCRIPT + PYTHON)
async def test_what_it_aborts_is_aborted_in_the_page(connected: Connected) -> None:
    steps = [{"report": {"progress": 1}}, {"wait": 60_000}]

    outcome = await connected.call("run", abort=True, key="aborted", steps=steps)

    assert "enough" in (outcome.error or "")
    seen = await connected.call("await", what="aborted", key="aborted")
    assert seen.value == {"seen": "the client cancelled it"}


@each(TYPESCRIPT + PYTHON)
async def test_its_own_timeout_aborts_in_the_page(connected: Connected) -> None:
    # In which the call has begun, however busy the machine is.
    outcome = await connected.call(
        "run", options={"timeout": 1500}, key="timeout", steps=[{"wait": 60_000}]
    )

    assert "timed out" in (outcome.error or "").lower()
    seen = await connected.call("await", what="aborted", key="timeout")
    assert seen.value == {"seen": "the client cancelled it"}


@each(["python"], ["stdio"])
async def test_one_that_sends_null_for_each_optional_argument_can_call(
    connected: Connected,
) -> None:
    """Like crewai, which gives a tool's arguments the default None."""
    outcome = await connected.call("run", key="nulls", steps=None, result=None, tabId=None)

    assert outcome.value == {"key": "nulls", "result": None}


# --- TypeScript clients ---


@each(TYPESCRIPT)
async def test_reports_extend_its_timeout_if_configured_but_never_its_maximum(
    connected: Connected,
) -> None:
    # The client's timers are real: a report may be a second late on a busy machine.
    steps = [{"wait": 600}, {"report": {"progress": 1}}] * 4
    moved: Options = {"timeout": 1700, "resetTimeoutOnProgress": True}

    patient, impatient, limited = await connected.call_all(
        Call("run", {"steps": steps}, moved),
        Call("run", {"steps": steps}, {"timeout": 1700}),
        Call("run", {"steps": steps}, {**moved, "maxTotalTimeout": 1900}),
    )

    assert patient.error is None
    assert "timed out" in (impatient.error or "")
    assert "Maximum total timeout exceeded" in (limited.error or "")


@each(TYPESCRIPT, ["stdio"])
async def test_none_of_750_reports_is_lost(connected: Connected) -> None:
    steps = [{"report": {"progress": n}} for n in range(1, 6)]

    counts = [len((await connected.call("run", steps=steps)).reports) for _ in range(ROUNDS)]

    assert counts == [5] * ROUNDS


# --- agent frameworks ---


@pytest.mark.parametrize("kind", PYTHON)
async def test_autogen_reads_the_whole_result_of_a_tool_whose_stream_continues(kind: str) -> None:
    async with Server(tools=[Counter]) as server, drive(kind, server.mcp_url) as driver:
        [outcome] = await driver.call_all([Call("count_later", {"n": 3})])

    assert outcome.result is not None, outcome.error
    [stream] = outcome.result["_meta"]["opentabs/streams"]
    failed, [value, how_to_read] = autogen_reads(outcome.result)
    assert (failed, value) == (False, "Begun.")
    assert stream["id"] in how_to_read


# --- the Inspector ---


@pytest.fixture
def inspector(
    request: pytest.FixtureRequest, tabs: OpenTabs, site: str, tab_id: int, tmp_path: Path
) -> Callable[..., Awaitable[Inspected]]:
    """Runs the Inspector on a server with the probe in a tab."""

    where: str = request.param

    async def run(*options: str, **arguments: Any) -> Inspected:
        target: str | list[str] = serve_command(f"{site}/page", str(PROBE))
        if where != "stdio":
            target = tabs.mcp_url
            options = ("--protocol-era", where.removeprefix("http-"), *options)
            arguments = {**arguments, "tabId": tab_id}
        if "--tool-name" in options:
            options = (*options, "--tool-args-json", json.dumps(arguments))
        return await inspect(target, *options, storage=tmp_path)

    return run


@pytest.mark.parametrize("inspector", ["http-legacy", "http-modern", "stdio"], indirect=True)
async def test_the_inspector_finds_no_error_in_the_tools(
    inspector: Callable[..., Awaitable[Inspected]],
) -> None:
    listed = await inspector("--method", "tools/list", "--strict")

    assert listed.code == 0, listed.stderr
    assert "0 errors" in listed.stderr
    assert "probe_echo" in {tool["name"] for tool in listed.result["tools"]}


@pytest.mark.parametrize("inspector", ["http-legacy", "http-modern"], indirect=True)
async def test_the_inspector_gets_a_value(inspector: Callable[..., Awaitable[Inspected]]) -> None:
    called = await inspector("--method", "tools/call", "--tool-name", "probe_echo", value=1)

    assert called.code == 0, called.stderr
    assert called.result["structuredContent"] == {"value": 1}


@pytest.mark.parametrize("inspector", ["http-legacy", "http-modern"], indirect=True)
async def test_the_inspector_exits_5_when_a_tool_fails(
    inspector: Callable[..., Awaitable[Inspected]],
) -> None:
    called = await inspector("--method", "tools/call", "--tool-name", "probe_fail", kind="tool")

    assert called.code == 5, called.stderr
    assert called.result["_meta"]["opentabs/error"]["code"] == "RATE_LIMITED"
