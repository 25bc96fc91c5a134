"""A fleet: a real NATS server, workers in separate processes, and endpoints."""

from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import types
from mcp.client import Client
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from e2e.chain import PROBE
from e2e.fleet.members import (
    Fleet,
    Nats,
    a_fleet,
    endpoint,
    poll,
    until,
    worker_in_this_process,
)
from e2e.waiting import PATIENT
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.settings import load_settings
from opentabs_py.core.fleet.messages import encode
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import BrowserError, CallRefusedError, ChainError, ErrorDetail
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import Received, nats_link
from opentabs_py.fleet.worker import FleetWorker
from opentabs_py.session.session import OpenTabs
from opentabs_py.tracing.otel import span_exporter
from tests.clients import hearing


async def test_calls_are_spread_over_the_workers(fleet: Fleet) -> None:
    for name in ("one", "two"):
        fleet.worker(name, "--max-calls", "5")
    async with endpoint(fleet, workers=2) as tabs:
        used: list[int] = []

        async def call() -> None:
            await tabs.call("work", {"key": "k", "seconds": 0.5})
            used.append(await tabs.call("who"))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):  # as many as both can handle
                tasks.start_soon(call)
        assert len(set(used)) == 2


async def test_reports_arrive_in_order_and_each_once(shared: Fleet) -> None:
    async with endpoint(shared, workers=1) as tabs:
        reports: list[ProgressReport] = []
        value = await tabs.call("work", {"key": "k", "reports": 2000}, on_progress=reports.append)
        assert value == "k"
        assert [report.message for report in reports] == [str(n) for n in range(2000)]


async def test_nobody_is_asked_about_a_python_tools_call_that_its_worker_would_refuse(
    shared: Fleet,
) -> None:
    settings = load_settings(port=0, permissions={"fleet_tools": "ask"})
    async with endpoint(shared, workers=1, settings=settings) as tabs:
        questions = tabs.internals.registry.gate.questions
        with (
            questions.shown(),
            anyio.fail_after(PATIENT),
            pytest.raises(CallRefusedError) as refused,
        ):
            await tabs.call("work", {"kee": "k"})
    assert refused.value.detail.code == "INVALID_ARGUMENTS"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_mcp_client_gets_progress_and_the_result(shared: Fleet, mode: Any) -> None:
    async with endpoint(shared, workers=1) as tabs, Client(tabs.mcp_url, mode=mode) as mcp:
        came: list[str | None] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            assert progress >= 0
            assert total is None
            came.append(message)

        result = await mcp.call_tool(
            "work", {"key": "k", "reports": 3, "seconds": 0.3}, progress_callback=note
        )
        assert not result.is_error
        assert came == ["0", "1", "2"]


async def test_a_result_of_many_megabytes_arrives_whole(shared: Fleet) -> None:
    async with endpoint(shared, workers=1) as tabs:
        size = 48 * 1024 * 1024
        assert await tabs.call("big", {"size": size}) == "0123456789abcdef" * (size // 16)


async def test_a_cancelled_call_is_cancelled_in_its_worker(shared: Fleet) -> None:
    async with endpoint(shared, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 60})
        await shared.until("began", "k")
        call.cancel()
        await shared.until("cancelled", "k")
        await until(tabs, lambda known: known[0].total_running == 0)


async def test_only_workers_with_all_labels_are_used(fleet: Fleet) -> None:
    fleet.worker("eu", "--label", "site=eu", "--label", "tier=gold")
    fleet.worker("us", "--label", "site=us")
    async with endpoint(fleet, workers=1, labels={"site": "eu"}) as tabs:
        assert [each.name for each in tabs.internals.fleet.directory.usable] == ["eu"]
        await tabs.call("who")


async def test_a_call_that_waits_says_its_place_and_then_runs(fleet: Fleet) -> None:
    fleet.worker("one", "--max-calls", "1")
    async with endpoint(fleet, workers=1) as tabs:
        first = await tabs.start("work", {"key": "first", "seconds": 60})
        await fleet.until("began", "first")
        said: list[str | None] = []
        waiting = anyio.Event()

        def note(report: ProgressReport) -> None:
            said.append(report.message)
            waiting.set()

        async with anyio.create_task_group() as tasks:

            async def second() -> None:
                assert await tabs.call("work", {"key": "second"}, on_progress=note) == "second"

            tasks.start_soon(second)
            with anyio.fail_after(PATIENT):
                await waiting.wait()
            assert said == ["All workers are full; this call is next."]
            assert fleet.count("began")["second"] == 0
            first.cancel()


async def test_a_call_that_waits_when_its_endpoint_stops_did_not_run(fleet: Fleet) -> None:
    fleet.worker("one", "--max-calls", "1")
    async with endpoint(fleet, workers=1) as tabs:
        ended: dict[str, ErrorDetail] = {}

        async def work(key: str) -> None:
            with pytest.raises(ChainError) as stopped:
                await tabs.call("work", {"key": key, "seconds": 60})
            ended[key] = stopped.value.detail

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, "runs")
            await fleet.until("began", "runs")
            tasks.start_soon(work, "waits")
            await poll(lambda: tabs.internals.fleet.waiting == 1)
            tabs.internals.tool_calls.running.stop()
    assert {key: (each.code, each.retryable) for key, each in ended.items()} == {
        "runs": ("SERVER_STOPPED", False),
        "waits": ("SERVER_STOPPED", True),
    }


async def test_more_calls_than_may_wait_are_refused_with_when_to_retry(fleet: Fleet) -> None:
    fleet.worker("one", "--max-calls", "1")
    async with endpoint(fleet, workers=1, queue=1) as tabs:
        calls = [await tabs.start("work", {"key": "k", "seconds": 60})]
        await fleet.until("began", "k")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tabs.start, "work", {"key": "waits"})
            await poll(lambda: tabs.internals.fleet.waiting == 1)
            with pytest.raises(ChainError) as refused:
                await tabs.call("work", {"key": "refused"})
            detail = refused.value.detail
            assert (detail.code, detail.retryable) == ("FLEET_BUSY", True)
            assert detail.retry_after is not None
            assert detail.retry_after >= 1
            calls[0].cancel()
        assert fleet.count("began")["refused"] == 0


async def test_an_endpoint_waits_for_the_first_worker_to_answer(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.endpoint.KNOWN_WITHIN", PATIENT)
    options = FleetOptions(fleet.nats.url, fleet.name)
    async with nats_link(options) as link, anyio.create_task_group() as tasks:

        async def answer() -> None:
            await anyio.sleep(1)  # as on a busy machine
            slow = Identity("slow", 1).announce("serving", ["0"])
            link.publish(link.subjects.workers, encode(slow))

        def handle(_who: Received) -> None:
            tasks.start_soon(answer)

        await link.subscribe(link.subjects.who, handle)
        async with OpenTabs(nats=options, settings=load_settings(port=0)) as tabs:
            assert [each.name for each in tabs.internals.fleet.directory.usable] == ["slow"]


async def test_a_browser_over_its_call_limit_is_replaced_once_idle(fleet: Fleet, site: str) -> None:
    page = f"{site}/page"
    options = ["--plugin", str(PROBE), "--open", page, "--browsers", "2", "--recycle-after", "3"]
    worker = fleet.worker("one", *options)
    async with endpoint(fleet, workers=1, ready="probe") as tabs:
        await until(tabs, lambda known: known[0].total_ready["probe"] == 2)
        steps = [{"wait": 60000}]
        first, second = [
            await tabs.start("probe_run", {"key": key, "steps": steps}) for key in ("a", "b")
        ]  # one in each browser
        for number in range(8):
            assert await tabs.call("probe_echo", {"value": number}) == {"value": number}
        assert not first.ended
        assert not second.ended
        first.cancel()
        await until(
            tabs, lambda known: known[0].restarts == 1 and known[0].total_ready["probe"] == 2
        )
        assert not second.ended
        second.cancel()
        await until(
            tabs, lambda known: known[0].restarts == 2 and known[0].total_ready["probe"] == 2
        )
    log = worker.log.read_text()
    assert log.count("Replacing the browser") == 2
    assert "exited" not in log


async def test_a_tab_that_was_opened_without_a_session_keeps_no_browser_from_being_replaced(
    fleet: Fleet, site: str
) -> None:
    fleet.worker("one", "--plugin", str(PROBE), "--recycle-after", "1")
    async with endpoint(fleet, workers=1) as tabs:
        async with Client(tabs.mcp_url) as client:
            opened = await client.call_tool("tabs_open", {"url": f"{site}/page"})
            assert opened.structured_content is not None
            tab = opened.structured_content["tabId"]
            await client.call_tool("probe_echo", {"tabId": tab, "value": 1})
        await until(tabs, lambda known: known[0].restarts == 1)


async def test_a_worker_offers_nothing_that_acts_on_any_page_whatever_its_settings_say(
    nats: Nats, tmp_path: Path
) -> None:
    # Endpoints know the tools of plugins, but not those that come and go with pages.
    with a_fleet(nats, tmp_path) as fleet:
        async with anyio.create_task_group() as tasks:
            offered: list[str] = []
            began = anyio.Event()

            async def look(tabs: OpenTabs, _worker: FleetWorker) -> None:
                assert not tabs.internals.launches_browser  # because there is nothing for it to do
                offered.extend(tool.name for tool in tabs.tools)
                began.set()

            pages_too = {"hands": True, "webmcp": ["http://127.0.0.1/*"]}
            tasks.start_soon(worker_in_this_process(fleet, look, **pages_too))
            with anyio.fail_after(PATIENT):
                await began.wait()
            tasks.cancel_scope.cancel()
    assert "double" in offered
    assert [name for name in offered if name.startswith("page_")] == []


async def test_the_opentelemetry_context_crosses_the_fleet(nats: Nats, tmp_path: Path) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))

    with a_fleet(nats, tmp_path) as fleet:

        async def observe(tabs: OpenTabs, _worker: FleetWorker) -> None:
            tabs.observe(span_exporter(tracer_provider=provider))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker_in_this_process(fleet, observe))
            async with endpoint(fleet, workers=1) as tabs:
                with provider.get_tracer("test").start_as_current_span("the caller"):
                    assert await tabs.call("double", {"value": 2}) == 4
            tasks.cancel_scope.cancel()
    call, caller = (
        next(span for span in spans.get_finished_spans() if span.name == name)
        for name in ("opentabs.call double", "the caller")
    )
    assert call.parent is not None
    assert call.context is not None
    assert caller.context is not None
    assert call.context.trace_id == caller.context.trace_id
    assert call.parent.span_id == caller.context.span_id


async def test_clients_are_notified_when_a_worker_brings_other_tools(
    fleet: Fleet, tmp_path: Path
) -> None:
    fleet.worker("one")
    (tmp_path / "others.py").write_text("def other() -> int:\n    return 7\n")
    async with endpoint(fleet, workers=1) as tabs, hearing(tabs.mcp_url, "legacy") as client:
        assert "other" not in await client.tools()
        fleet.worker("two", "--tools", "others.py:other")
        while "other" not in await client.tools():
            await client.wait_for_change()
        assert await tabs.call("other") == 7


async def test_a_call_goes_to_a_worker_that_serves_the_build_that_clients_see(
    fleet: Fleet, tmp_path: Path
) -> None:
    for build, parameter in (("old", "amount"), ("new", "total")):
        (tmp_path / build).mkdir()
        code = f"def pay({parameter}: int) -> str:\n    return '{build}'\n"
        (tmp_path / build / "shop.py").write_text(code)
        fleet.worker(build, "--tools", f"{build}/shop.py:pay")
    async with endpoint(fleet, workers=2) as tabs:
        await poll(lambda: bool(tabs.tools) and tabs.internals.fleet.catalog.is_read)
        (pay,) = (tool for tool in tabs.tools if tool.name == "pay")
        ((parameter, _),) = pay.input_schema["properties"].items()
        answers = [await tabs.call("pay", {parameter: 3}) for _ in range(4)]
    assert answers == [{"amount": "old", "total": "new"}[parameter]] * 4


async def test_a_tool_that_two_modules_have_is_listed_once_and_moves_with_its_workers(
    fleet: Fleet, tmp_path: Path
) -> None:
    for name in ("before", "later"):
        (tmp_path / f"{name}.py").write_text(f"def pay() -> str:\n    return '{name}'\n")
    before = fleet.worker("one", "--tools", "before.py:pay")
    fleet.worker("two", "--tools", "later.py:pay")
    async with endpoint(fleet, workers=2) as tabs:
        async with hearing(tabs.mcp_url, "legacy") as client:
            assert (await client.tools()).count("pay") == 1
        assert await tabs.call("pay") == "before"
        before.kill()
        await until(tabs, lambda known: len(known) == 1)
        await poll(lambda: tabs.internals.registry.find("pay").listing.owner == "later")
        assert await tabs.call("pay") == "later"


async def test_what_a_tool_yielded_before_it_failed_arrives(fleet: Fleet, tmp_path: Path) -> None:
    code = "def parts():\n    yield 'a part'\n    raise ValueError\n"
    (tmp_path / "broken.py").write_text(code)
    fleet.worker("one", "--tools", "broken.py:parts")
    async with endpoint(fleet, workers=1) as tabs, Client(tabs.mcp_url) as mcp:
        result = await mcp.call_tool("parts", {})
        assert result.is_error
        assert result.content[-1] == types.TextContent(text="a part")


async def test_the_handlers_of_a_program_receive_what_python_tools_of_workers_report(
    shared: Fleet,
) -> None:
    seen: list[tuple[str, Any]] = []
    async with endpoint(shared, workers=1) as tabs:
        tabs.on_tool_progress = lambda tool, _call, data: seen.append((tool, data))
        await tabs.call_tool("work", {"key": "handlers", "reports": 2})
    assert seen == [("work", {"message": "0"}), ("work", {"message": "1"})]


async def test_an_endpoint_says_that_it_has_no_browser_and_no_plugins(shared: Fleet) -> None:
    async with endpoint(shared, workers=1) as tabs:
        with pytest.raises(LookupError, match="its workers have them"):
            tabs.plugin()
        with pytest.raises(LookupError, match="its workers have them"):
            await tabs.open_start_page("chat")
        assert not tabs.browsers
        with pytest.raises(BrowserError, match="its workers have them"):
            await tabs.open("http://127.0.0.1:1")
        # So has no worker, and there is nothing for the tools about tabs to do.
        assert [tool.name for tool in tabs.tools] == ["big", "who", "work"]


async def test_a_worker_that_would_have_to_ask_says_where_to_allow_the_call(fleet: Fleet) -> None:
    fleet.worker("one", "--permission", "fleet_tools.who=ask")
    async with endpoint(fleet, workers=1) as tabs:
        with pytest.raises(CallRefusedError, match=r"fleet_tools\.who=auto") as refused:
            await tabs.call("who")
        assert refused.value.detail.code == "CONSENT_NEEDED"
        with pytest.raises(CallRefusedError, match="do not match its schema"):
            await tabs.call("work")


OPENER = """
from opentabs_py import Progress, tool


@tool
async def open_page(url: str, progress: Progress) -> int:
    return (await progress.call("tabs_open", {"url": url}))["tabId"]
"""


async def test_a_tab_that_a_python_tool_opens_for_a_client_is_closed_when_the_client_goes(
    fleet: Fleet, site: str, tmp_path: Path
) -> None:
    (tmp_path / "opener.py").write_text(OPENER)
    fleet.worker("one", "--plugin", str(PROBE), "--tools", "opener.py")
    async with endpoint(fleet, workers=1) as tabs:
        async with Client(tabs.mcp_url, mode="legacy") as client:
            await client.call_tool("open_page", {"url": f"{site}/page"})
            await until(tabs, lambda known: known[0].total_ready["probe"] == 1)
        await until(tabs, lambda known: known[0].total_ready["probe"] == 0)
