"""Tool streams: who may open one, and where its updates go."""

import asyncio
import gc
import threading
import weakref
from typing import Any

import anyio
import pytest

from opentabs_py import Module, ToolStream, skill
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.streams import STREAMS_META_KEY, StreamUpdate
from opentabs_py.config.settings import load_settings
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.python_tools.stream import MOST_ENDED, READABLE_FOR, Stream, Streams
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import Server
from tests.python_tools import ways
from tests.python_tools.held_clock import HeldClock
from tests.python_tools.ways import REMOTE, Way
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


async def stream_of(way: Way) -> str:
    """Open a stream that outlives its call; return its id."""
    outcome = await way.call("count_later", {"n": 3})
    assert outcome.result.meta is not None
    [stream] = outcome.result.meta["opentabs/streams"]
    assert stream["uri"] == f"stream://{stream['id']}"
    [begun, more] = outcome.texts
    assert begun == "Begun."
    assert stream["id"] in more
    stream_id: str = stream["id"]
    return stream_id


async def read_to_the_end(way: Way, stream_id: str) -> list[tuple[int, str]]:
    updates: list[tuple[int, str]] = []
    while True:
        after = updates[-1][0] if updates else 0
        asked = {"id": stream_id, "after": after, "wait_seconds": 10}
        answer = (await way.call("stream_read", asked)).result.structured_content
        assert answer is not None
        updates += [(each["n"], each["text"]) for each in answer["updates"]]
        if not answer["open"] and not answer["more"]:
            return updates


LATER = [(1, "Begun"), *((n + 1, f"Update {n} of 3") for n in (1, 2, 3))]


async def test_updates_during_the_call_are_progress_with_a_counter_of_their_stream(
    way: Way,
) -> None:
    outcome = await way.call("count_to", {"n": 25})
    assert [(number, text) for number, _, text in outcome.progress] == [
        (n, f"At {n} of 25") for n in range(1, 26)
    ]
    assert outcome.text == "Counted to 25."


async def test_each_frame_names_its_tool(way: Way) -> None:
    if way.client is None:
        pytest.skip("there are no updates")
    await way.call("count_to", {"n": 2})
    assert way.said == ["[tool:count_to] At 1 of 2", "[tool:count_to] At 2 of 2"]


async def test_an_open_stream_is_named_in_the_result_and_read_to_its_end(way: Way) -> None:
    stream_id = await stream_of(way)
    await way.call("release")
    assert await read_to_the_end(way, stream_id) == LATER


async def test_a_transcript_has_every_update_once_and_in_order_after_the_call_too(
    way: Way,
) -> None:
    if way.client is None:
        pytest.skip("there is no transcript")
    await stream_of(way)
    await way.call("release")
    await way.wait_said("[tool:count_later] Update 3 of 3")
    assert way.said == [f"[tool:count_later] {text}" for _, text in LATER]


async def test_a_stream_can_be_ended_by_its_client(way: Way) -> None:
    stream_id = await stream_of(way)
    stopped = (await way.call("stream_stop", {"id": stream_id})).result.structured_content
    assert stopped is not None
    assert (stopped["open"], stopped["ended"]) == (False, "its client ended it")
    await way.call("release")
    assert await read_to_the_end(way, stream_id) == LATER[:1]


async def test_a_second_stream_of_a_name_is_refused_with_what_to_do(way: Way) -> None:
    outcome = await way.call("twice")
    assert outcome.result.is_error
    assert "Call stop_tool('twice') first" in outcome.text


async def test_a_thread_that_no_call_is_made_in_may_open_no_stream(way: Way) -> None:
    outcome = await way.call("from_a_thread")
    assert "start_tool('from_a_thread') must be called while a tool is being called" in outcome.text
    assert outcome.progress == []


@pytest.mark.parametrize("which", REMOTE)
async def test_another_session_can_neither_read_nor_end_a_stream(which: str, http: str) -> None:
    target: Any = ways.STDIO if which.startswith("stdio") else http
    async with ways.connected(which, target) as one, ways.connected(which, target) as other:
        stream_id = await stream_of(one)
        for tool in ("stream_read", "stream_stop"):
            refused = await other.call(tool, {"id": stream_id})
            if which == "HTTP 2026":  # no sessions: anyone who knows the id may
                assert not refused.result.is_error
            else:
                assert "code=UNKNOWN_STREAM" in refused.text
        await one.call("release")
        await one.call("stream_stop", {"id": stream_id})


class Clocks(Module):
    """One stream per session, always with the same name."""

    def __init__(self) -> None:
        self.streams: list[ToolStream] = []

    @skill
    def begin(self) -> str:
        """Open it."""
        self.streams.append(self.start_tool("clock"))
        self.tool_update("clock", "begun")
        return "Begun."

    @skill
    def end(self) -> str:
        """End it."""
        self.stop_tool("clock")
        return "Ended."


@pytest.mark.parametrize("era", ["2026", "initialize"])
async def test_two_sessions_run_the_same_stream_tool_at_once_and_hear_their_own(era: str) -> None:
    async with (
        Server(tools=[module := Clocks()]) as server,
        ways.connected(f"HTTP {era}", server.mcp_url) as one,
        ways.connected(f"HTTP {era}", server.mcp_url) as other,
    ):
        ids: list[str] = []
        for way in (one, other):
            outcome = await way.call("begin")
            assert not outcome.result.is_error, outcome.text
            assert outcome.result.meta is not None
            ids.append(outcome.result.meta["opentabs/streams"][0]["id"])
        for stream, text in zip(module.streams, ("one", "other"), strict=True):
            stream.update(text)
            stream.stop()
        for way, stream_id, text in zip((one, other), ids, ("one", "other"), strict=True):
            assert await read_to_the_end(way, stream_id) == [(1, "begun"), (2, text)]


async def test_a_stream_ends_with_the_session_of_its_client_and_no_other_does() -> None:
    clocks = Clocks()
    async with Server(tools=[clocks]) as server:
        await server.call_tool("begin")
        async with ways.connected("HTTP initialize", server.mcp_url) as other:
            await other.call("begin")
            async with ways.connected("HTTP initialize", server.mcp_url) as one:
                await one.call("begin")
            ours, others, ended = clocks.streams
            with anyio.fail_after(PATIENT):
                while ended.is_open:
                    await anyio.lowlevel.checkpoint()
            assert (ours.is_open, others.is_open) == (True, True)
            assert not (await other.call("end")).result.is_error


async def test_a_name_means_the_stream_of_the_session_that_calls() -> None:
    async with (
        Server(tools=[module := Clocks()]) as server,
        ways.connected("HTTP initialize", server.mcp_url) as one,
        ways.connected("HTTP initialize", server.mcp_url) as other,
    ):
        await one.call("begin")
        await other.call("end")
        assert [stream.is_open for stream in module.streams] == [True]
        assert "is already open" in (await one.call("begin")).text
        await other.call("begin")
        await one.call("end")
        assert [stream.is_open for stream in module.streams] == [False, True]


async def test_a_name_means_the_only_stream_of_clients_without_sessions() -> None:
    async with (
        Server(tools=[module := Clocks()]) as server,
        ways.connected("HTTP 2026", server.mcp_url) as way,
    ):
        await way.call("begin")
        await way.call("end")
    assert [stream.is_open for stream in module.streams] == [False]


async def test_a_thread_that_names_one_of_two_sessions_streams_sends_to_neither(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        Server(tools=[module := Clocks()]) as server,
        ways.connected("HTTP 2026", server.mcp_url) as way,
    ):
        ids: list[str] = []
        for _ in range(2):
            meta = (await way.call("begin")).result.meta
            assert meta is not None
            ids.append(meta["opentabs/streams"][0]["id"])
        module.tool_update("clock", "for whom?")
        assert "Keep the return value of start_tool()" in caplog.text
        for stream in module.streams:
            stream.stop()
        for stream_id in ids:
            assert await read_to_the_end(way, stream_id) == [(1, "begun")]


async def test_a_second_session_waits_where_threads_name_the_stream() -> None:
    async with (
        Server(tools=[module := Clocks()]) as server,
        ways.connected("HTTP 2026", server.mcp_url) as one,
        ways.connected("HTTP 2026", server.mcp_url) as other,
    ):
        await one.call("begin")
        module.tool_update("clock", "to the only one")
        refused = await other.call("begin")
        assert "code=STREAM_OPEN" in refused.text
        assert "open for another client" in refused.text
        module.stop_tool("clock")
        assert not module.tool_is_open("clock")
        assert not (await other.call("begin")).result.is_error


async def test_start_tool_outside_of_any_call_says_where_it_belongs() -> None:
    with pytest.raises(RuntimeError, match="must be called while a tool is being called"):
        Module().start_tool("anything")


class Leftover(Module):
    """Leaves a task behind that opens a stream after its call has ended."""

    def __init__(self) -> None:
        self.returned = anyio.Event()

    @skill
    async def leave(self) -> str:
        """Return at once."""
        self.task = asyncio.create_task(self._open_later())
        return "returned"

    async def _open_later(self) -> None:
        await self.returned.wait()
        self.start_tool("late")


async def test_a_task_that_outlives_its_call_may_open_no_stream() -> None:
    server = Server(tools=[module := Leftover()])
    await server.call_tool("leave")
    module.returned.set()
    with pytest.raises(RuntimeError, match="must be called while a tool is being called"):
        await module.task


async def test_an_update_of_what_is_not_open_is_logged_and_passes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    module = Module()
    module.tool_update("nothing", "text")
    module.tool_update("nothing", "more")
    module.stop_tool("nothing")
    assert [record.message for record in caplog.records] == [
        "No stream 'nothing' is open, so its updates are dropped, from this one on: text"
    ]


async def test_the_lost_updates_of_a_stream_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Ticker(Module):
        @skill
        def tick(self) -> None:
            """Update a stream that has ended, by its name and by itself."""
            stream = self.start_tool("tick")
            stream.stop()
            for _ in range(2):
                stream.update("late")
                self.tool_update("tick", "late")

    server = Server(tools=[Ticker])
    for _ in range(2):
        await server.call_tool("tick")
    assert [record.message for record in caplog.records] == [
        "No stream 'tick' is open, so its updates are dropped, from this one on: late"
    ] * 4


class Streamers(Module):
    """Opens streams with any name, and leaves them open."""

    stream_limits = Limits(idle=10.0, ceiling=60.0)

    def __init__(self) -> None:
        self.all_here = anyio.Event()
        self.opened = 0

    @skill
    async def open(self, name: str) -> str:
        """Open a stream while others open theirs."""
        self.opened += 1
        if self.opened == 2:
            self.all_here.set()
        await self.all_here.wait()
        self.start_tool(name)
        return name


async def test_concurrent_async_skills_do_not_mix() -> None:
    server = Server(tools=[module := Streamers()])
    seen: list[tuple[str, str]] = []
    server.on_tool_progress(lambda _tool, call, data: seen.append((call, data)))
    async with anyio.create_task_group() as tasks:
        for name in ("a", "b"):

            async def call(name: str = name) -> None:
                await server.call_tool("open", {"name": name}, call_id=f"call {name}")

            tasks.start_soon(call)
    for name in ("a", "b"):
        module.tool_update(name, f"of {name}")
    with anyio.fail_after(PATIENT):
        while len(seen) < 2:
            await anyio.lowlevel.checkpoint()
    assert seen == [("call a", "of a"), ("call b", "of b")]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([9.0, 9.0, 10.0], "it was silent for too long"),
        ([9.0] * 6 + [6.0], "it was open for too long"),
    ],
)
async def test_a_silence_and_a_total_end_a_stream_that_is_left_open(
    steps: list[float], why: str
) -> None:
    clock, module = HeldClock(), Streamers()
    async with Server(tools=[module], _seams=Seams(clock)) as server:
        module.all_here.set()
        await server.call_tool("open", {"name": "a"})
        [stream] = server._python.tools.host.streams._by_id.values()  # type: ignore[union-attr]
        for step in steps[:-1]:
            clock.move(step)
            module.tool_update("a", "alive")
            await until_all_wait()
            assert stream.is_open
        clock.move(steps[-1])
        await until_all_wait()
    assert stream.ended == why


class Nobody:
    """Opens streams that nobody follows."""

    client = None
    stream_session = None

    def handle_update(self, update: StreamUpdate) -> None: ...


async def test_of_streams_that_have_ended_no_more_stay_in_memory_than_can_be_read() -> None:
    streams = Streams(AlarmClock(HeldClock()))

    def open_and_end() -> weakref.ref[Stream]:
        stream = streams.open("s", Nobody(), Limits(), asyncio.get_running_loop())
        stream.end("done")
        return weakref.ref(stream)

    opened = [open_and_end() for _ in range(MOST_ENDED + 10)]
    gc.collect()
    kept = [each() for each in opened]
    assert kept[:10] == [None] * 10
    assert None not in kept[10:]


async def test_a_stream_that_was_forgotten_stays_forgotten_when_its_thread_is_heard_late(
    caplog: pytest.LogCaptureFixture,
) -> None:
    held = HeldClock()
    clock = AlarmClock(held)
    streams, loop = Streams(clock), asyncio.get_running_loop()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        await until_all_wait()
        first = streams.open("first", Nobody(), Limits(), loop)
        thread = threading.Thread(target=first.update, args=["heard late"])
        thread.start()
        thread.join()
        first.end("done")
        for _ in range(MOST_ENDED):
            streams.open("s", Nobody(), Limits(), loop).end("done")
        await until_all_wait()
        held.move(READABLE_FOR)
        await until_all_wait()
        tasks.cancel_scope.cancel()
    assert not streams._by_id
    assert not caplog.records


async def test_changes_are_notified_of_again_after_nobody_listened_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.python_tools.stream.NOTIFY_EVERY", 0.0)
    streams, loop = Streams(AlarmClock(HeldClock())), asyncio.get_running_loop()
    stream = streams.open("s", Nobody(), Limits(), loop)
    heard: list[str] = []
    unsubscribe = streams.subscribe(heard.append)
    stream.update("at once")
    stream.update("later")
    unsubscribe()
    later = asyncio.Event()
    loop.call_later(0.0, later.set)
    await later.wait()
    streams.subscribe(heard.append)
    stream.update("again")
    assert heard == [stream.uri, stream.uri]


async def test_a_buffer_that_overflows_says_how_many_updates_it_dropped() -> None:
    server = Server(tools=[module := Streamers()])
    module.all_here.set()
    result = await server.call_tool("open", {"name": "a"})
    for number in range(10_050):
        module.tool_update("a", str(number))
    assert result.meta is not None
    stream_id = result.meta["opentabs/streams"][0]["id"]
    answer = (await server.call_tool("stream_read", {"id": stream_id})).structured_content
    assert answer is not None
    assert (answer["dropped"], answer["updates"][0]["n"], answer["more"]) == (50, 51, True)


async def test_an_answer_has_only_as_many_updates_as_a_result_may_be_long() -> None:
    class Printer(Module):
        @skill
        def start(self) -> None:
            stream = self.start_tool("pages")
            for page in range(20):
                stream.update(f"{page}" + "\0" * 99)

    limit = 4096
    async with (
        Server(
            tools=[printer := Printer()], settings=load_settings(port=0, message_limit=limit)
        ) as server,
        ways.connected("HTTP initialize", server.mcp_url) as way,
    ):
        outcome = await way.call("start")
        printer.stop()
        updates = await read_to_the_end(way, (outcome.result.meta or {})[STREAMS_META_KEY][0]["id"])
    assert [number for number, _ in updates] == [*range(1, 21)]


async def test_any_number_can_be_read_after() -> None:
    streams = Streams(AlarmClock(HeldClock()), read_limit=0)
    stream = streams.open("s", Nobody(), Limits(), asyncio.get_running_loop())
    stream.update("one")
    stream.update("two")
    assert [each.text for each in stream.since(1)] == ["two"]
    assert not stream.since(10**30)
    first = streams.read(stream.id, -1, None)
    assert (first["updates"], first["more"]) == ([{"n": 1, "text": "one"}], True)


async def test_stopping_the_server_ends_what_is_open() -> None:
    module = Streamers()
    async with Server(tools=[module]) as server:
        module.all_here.set()
        await server.call_tool("open", {"name": "a"})
        assert module.tool_is_open("a")
    assert not module.tool_is_open("a")


async def test_alarms_ring_in_order_and_not_when_they_were_cancelled() -> None:
    held = HeldClock()
    clock = AlarmClock(held)
    rung: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        await until_all_wait()
        clock.set_alarm(5, lambda: rung.append(5))
        clock.set_alarm(3, lambda: rung.append(3))
        clock.set_alarm(4, lambda: rung.append(4)).cancel()
        await until_all_wait()
        held.move(3)
        await until_all_wait()
        assert rung == [3]
        held.move(3)
        await until_all_wait()
        tasks.cancel_scope.cancel()
    assert rung == [3, 5]


class Crowd(Module):
    """Fifty streams, each from its own thread."""

    @skill
    def crowd(self, streams: int, updates: int) -> str:
        """Open them all, and wait until their threads have sent everything."""
        threads = [
            threading.Thread(target=self._tell, args=(f"s{number}", updates))
            for number in range(streams)
        ]
        for number in range(streams):
            self.start_tool(f"s{number}")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "done"

    def _tell(self, name: str, updates: int) -> None:
        for number in range(updates):
            self.tool_update(name, f"{name} {number}")
        self.stop_tool(name)


async def test_fifty_streams_from_fifty_threads_arrive_whole_and_in_order() -> None:
    server = Server(tools=[Crowd])
    told: dict[str, list[tuple[float | None, str]]] = {}

    def take(report: ProgressReport) -> None:
        name, text = str(report.message).split()
        told.setdefault(name, []).append((report.progress, text))

    await server.call_tool("crowd", {"streams": 50, "updates": 1_000}, on_progress=take)
    assert told == {f"s{n}": [(i + 1, str(i)) for i in range(1_000)] for n in range(50)}


@pytest.mark.parametrize("era", ["2026", "initialize"])
async def test_fifty_streams_at_once_reach_a_client_whole_and_in_order(era: str) -> None:
    async with (
        Server(tools=[Crowd]) as server,
        ways.connected(f"HTTP {era}", server.mcp_url) as way,
    ):
        await way.call("crowd", {"streams": 50, "updates": 40})
        told: dict[str, list[str]] = {}
        for line in way.said:
            stream, text = line.split("] ")[1].split()
            told.setdefault(stream, []).append(text)
        assert told == {f"s{n}": [str(each) for each in range(40)] for n in range(50)}
