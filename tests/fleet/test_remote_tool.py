"""The tools of a fleet's workers in an endpoint."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.changes import Changes
from opentabs_py.calling.listing import Listing
from opentabs_py.core.fleet.messages import Announcement, encode
from opentabs_py.core.fleet.pool import Wanted
from opentabs_py.core.limits import Limits
from opentabs_py.core.questions import NOWHERE, Place
from opentabs_py.core.trace.recorder import CallRecorder, Instant
from opentabs_py.errors import CallError, CallRefusedError
from opentabs_py.fleet.catalog import Entry
from opentabs_py.fleet.directory import Directory
from opentabs_py.fleet.endpoint import Fleet
from opentabs_py.fleet.holdings import ClientHoldings
from opentabs_py.fleet.remote_tool import RemoteTool
from tests.core.fleet.test_pool import worker
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio

LISTING = Listing("chat_send", "chat", "Send", "Send a text.", {"type": "object"}, needs_tab=True)


A, B = worker("a", 10), worker("b", 20, state="draining")


class FakeFleet:
    """Workers that return the arguments, or if one is named, its name."""

    def __init__(self) -> None:
        self.holdings = ClientHoldings()
        self.directory = Directory({}, lambda _: None)
        for each in (A, B):
            self.directory.handle(encode(each), 0.0)
        self.holds: Announcement | None = A
        self.changes = Changes()

    def holder(self, _tab_id: int) -> Announcement | None:
        return self.holds

    def changed(self) -> anyio.Event:
        return self.changes.next()

    async def call_in(self, worker: Announcement, _tool: str, _call: ToolCall) -> Any:
        return worker.name

    async def call(self, tool: str, wanted: Wanted, call: ToolCall) -> Any:
        return tool, wanted.owner, wanted.digest, call.arguments


class AnOwnTool:
    """A Python tool of the endpoint, which returns `own`."""

    limits: Limits | None = None

    def __init__(self, name: str, owner: str) -> None:
        self.listing = Listing(name, owner, "", "", {})

    def prepare(self, _call: ToolCall, /) -> Callable[[], Awaitable[Any]]:
        return self._run

    async def _run(self) -> str:
        return "own"


def a_tool(limit: int) -> RemoteTool:
    fleet = cast("Fleet", FakeFleet())
    return RemoteTool(fleet, Entry("d", LISTING, limits=None), message_limit=limit)


def a_stream_tool(owner: str) -> RemoteTool:
    listing = Listing("stream_read", owner, "", "", {})
    fleet = cast("Fleet", FakeFleet())
    return RemoteTool(fleet, Entry("d", listing, limits=None), message_limit=1000)


async def test_arguments_over_the_limit_are_sent_to_no_worker_and_those_at_it_are() -> None:
    tool = a_tool(len('{"text":"日本"}'))
    fitting = ToolCall({"text": "日本"}, Limits())
    assert await tool.prepare(fitting)() == ("chat_send", "chat", "d", {"text": "日本"})
    with pytest.raises(CallRefusedError) as caught:
        tool.prepare(ToolCall({"text": "日本語"}, Limits()))
    assert caught.value.detail.code == "INPUT_TOO_LARGE"


@pytest.mark.parametrize("given", [f"{A.instance}{'0' * 32}", f"stream://{A.instance}{'0' * 32}"])
async def test_a_stream_is_read_in_the_worker_with_whose_run_its_id_begins(given: str) -> None:
    assert await a_stream_tool("opentabs").prepare(ToolCall({"id": given}, Limits()))() == "a"


@pytest.mark.parametrize("has_it", [worker("gone"), B], ids=["has gone", "drains"])
async def test_a_stream_in_a_worker_that_is_not_used_is_unknown(has_it: Announcement) -> None:
    stream = f"{has_it.instance}{'0' * 32}"
    with pytest.raises(CallRefusedError) as caught:
        await a_stream_tool("opentabs").prepare(ToolCall({"id": stream}, Limits()))()
    assert caught.value.detail.code == "UNKNOWN_STREAM"


@pytest.mark.parametrize(("owner", "given"), [("opentabs", 1), ("mine", A.instance)])
async def test_other_calls_go_to_any_worker(owner: str, given: object) -> None:
    tool = a_stream_tool(owner)
    called = await tool.prepare(ToolCall({"id": given}, Limits()))()
    assert called == ("stream_read", owner, "d", {"id": given})


def test_the_record_of_a_call_names_its_tab_before_its_worker_does() -> None:
    now = Instant(1.0, 1.0, 1.0)
    recorder = CallRecorder(call_id="1", name="chat_send", limits=Limits(), now=now)
    a_tool(1000).prepare(ToolCall({"text": "a", "tabId": 7}, Limits(), recorder=recorder))
    assert recorder.so_far(now).tab_id == 7


def test_arguments_that_are_not_json_are_refused() -> None:
    with pytest.raises(CallRefusedError, match="not serializable as JSON"):
        a_tool(1000).prepare(ToolCall({"text": "\ud800"}, Limits()))


async def test_an_endpoint_reads_its_own_streams_and_those_of_its_workers() -> None:
    own = AnOwnTool("stream_read", "opentabs")
    tool = a_stream_tool("opentabs").beside(own)
    assert tool.listing is own.listing
    assert await tool.prepare(ToolCall({"id": f"{A.instance}{'0' * 32}"}, Limits()))() == "a"
    for given in ("0" * 32, 1):
        assert await tool.prepare(ToolCall({"id": given}, Limits()))() == "own"


@pytest.mark.parametrize(("name", "owner"), [("stream_read", "mine"), ("tabs_list", "opentabs")])
def test_another_tool_of_an_endpoint_hides_that_of_its_workers(name: str, owner: str) -> None:
    own = AnOwnTool(name, owner)
    remote = Entry("d", Listing(name, "opentabs", "", "", {}), limits=None)
    assert RemoteTool(cast("Fleet", FakeFleet()), remote, message_limit=9).beside(own) is own


async def test_a_question_about_a_tab_ends_when_its_worker_is_gone() -> None:
    fleet = FakeFleet()
    tool = RemoteTool(cast("Fleet", fleet), Entry("d", LISTING, limits=None), message_limit=9)
    gone: list[CallError] = []

    async def wait() -> None:
        gone.append(await tool.wait_gone(Place(tab_id=7)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await until_all_wait()
        assert not gone
        fleet.holds = None
        fleet.changes.notify()
    assert gone[0].detail.code == "NOT_DELIVERED"


async def test_a_tool_that_needs_no_tab_runs_in_no_place() -> None:
    assert await a_stream_tool("mine").find_place(ToolCall({}, Limits())) == NOWHERE


@pytest.mark.parametrize(
    ("tool", "own_name"), [(a_tool(9), "send"), (a_stream_tool("stream"), "stream_read")]
)
def test_a_call_that_no_worker_answers_is_recorded_as_one_of_the_tool_within_its_plugin(
    tool: RemoteTool, own_name: str
) -> None:
    now = Instant(1.0, 1.0, 1.0)
    recorder = CallRecorder(call_id="c", name=tool.listing.name, limits=Limits(), now=now)
    tool.prepare(ToolCall({}, Limits(), recorder=recorder))
    record = recorder.so_far(now)
    assert (record.plugin, record.tool) == (tool.listing.owner, own_name)
