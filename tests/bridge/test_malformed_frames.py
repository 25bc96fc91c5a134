"""Any malformed frame on the extension's socket is refused with a reason, and changes nothing."""

import asyncio
import copy
import json
import os
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.call import ToolCall
from opentabs_py.core.chunks import Assembler
from opentabs_py.core.limits import Limits
from opentabs_py.core.tabs.selection import Target
from opentabs_py.core.wire import InvalidHello, parse_from_extension
from opentabs_py.errors import ProtocolError
from tests.fakes import (
    FakeSocket,
    Json,
    a_bridge,
    a_document,
    about_call,
    greeted,
    hello,
    running,
    tabs_changed,
)

CALL = "c" * 32
FRAMES = 20  # per example
EXAMPLES, PARTS = (500, 10) if "SOAK" in os.environ else (40, 1)  # `make soak`: 100,000 frames

valid: list[Json] = [
    hello(a_document(CALL)),
    tabs_changed(a_document(CALL), a_document(plugin="other")),
    about_call("tool.progress", CALL, reports=[{"seq": 0, "progress": 1}]),
    about_call("tool.result", CALL, seq=1, value={"a": [1, 2]}),
    about_call("tool.error", CALL, seq=1, error={"code": "X", "message": "no"}),
    {"method": "tool.lost", "params": {"callId": CALL, "reason": "navigated"}},
    {"method": "pong", "params": {"time": 1, "pingTime": 2}},
    {"id": 1, "result": {}},
    {"id": 1, "error": {"code": 1, "message": "no"}},
]
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@st.composite
def spoilt_messages(draw: st.DrawFn) -> str:
    """A message of the protocol with one member removed, replaced or added, or truncated."""
    message: Any = {"jsonrpc": "2.0", **copy.deepcopy(draw(st.sampled_from(valid)))}
    part = message
    while True:
        inner = [key for key in part if isinstance(part[key], dict)]
        if not inner or draw(st.booleans()):
            break
        part = part[draw(st.sampled_from(inner))]
    match draw(st.sampled_from(["remove", "replace", "add", "cut"])):
        case "remove" if part:
            del part[draw(st.sampled_from(sorted(part)))]
        case "replace" if part:
            part[draw(st.sampled_from(sorted(part)))] = draw(junk)
        case "add":
            part[draw(st.text(max_size=10))] = draw(junk)
        case _:
            text = json.dumps(message)
            return text[: draw(st.integers(0, len(text) - 1))]
    return json.dumps(message)


frames = st.one_of(spoilt_messages(), junk.map(json.dumps), st.text(max_size=200))


def is_malformed(frame: str) -> bool:
    try:
        text = Assembler(limit=10_000).feed(frame)
        if text is not None:
            return isinstance(parse_from_extension(text), InvalidHello)
    except ProtocolError:
        return True
    return False


def state_of(bridge: Bridge) -> object:
    return repr((bridge.connected, bridge.tabs.documents, bridge.calls.dispatch.pending))


class Fuzzed:
    """A bridge with a call running in a page."""

    bridge: Bridge
    socket: FakeSocket
    value: object = None

    async def run(self) -> None:
        self.value = await self.bridge.call(Target("chat"), "send", ToolCall({}, Limits()))


async def feed(batch: list[str]) -> None:
    fuzzed = Fuzzed()
    fuzzed.bridge = a_bridge()
    context: AbstractAsyncContextManager[Any] = running(fuzzed.bridge)
    async with context as connect, anyio.create_task_group() as tasks:
        socket = fuzzed.socket = await greeted(connect, a_document())
        tasks.start_soon(fuzzed.run)
        call_id = (await socket.hear("tool.dispatch"))["params"]["callId"]
        before = state_of(fuzzed.bridge)
        for frame in batch:
            socket.say(frame)
            refusal = await socket.hear("error")
            assert refusal["error"]["message"], frame
            assert state_of(fuzzed.bridge) == before, frame
        socket.say(about_call("tool.result", call_id, seq=0, value="in spite of all"))
        await socket.hear("tool.settled")
    assert fuzzed.value == "in spite of all"


@pytest.mark.parametrize("part", range(PARTS))
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(batch=st.lists(frames.filter(is_malformed), min_size=FRAMES, max_size=FRAMES))
def test_malformed_frames_each_get_a_reason_and_change_nothing(
    part: int,  # noqa: ARG001 (each draws others, and says when it is done)
    batch: list[str],
) -> None:
    asyncio.run(feed(batch))


@pytest.mark.parametrize("message", valid)
def test_what_is_corrupted_here_is_valid_before(message: Json) -> None:
    assert not is_malformed(json.dumps({"jsonrpc": "2.0", **message}))
