"""A call over a bridge, and a plugin of it."""

import anyio

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.call import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.tabs.selection import Target
from opentabs_py.errors import CallError
from tests.fakes import FakeSocket, Json, about_call
from tests.waiting import PATIENT

TARGET = Target("chat", ("https://chat.example/*",))
CALL = ToolCall({"text": "hi"}, Limits())


class Caller:
    """A call in the background: its outcome is available once `done` is set."""

    def __init__(self) -> None:
        self.value: object = None
        self.error: Exception | None = None
        self.done = anyio.Event()

    async def __call__(self, bridge: Bridge, call: ToolCall) -> None:
        try:
            self.value = await bridge.call(TARGET, "send", call)
        except CallError as error:
            self.error = error
        self.done.set()

    async def outcome(self) -> object:
        with anyio.fail_after(PATIENT):
            await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.value


async def call_and_answer(
    bridge: Bridge, socket: FakeSocket, call: ToolCall, *said: Json
) -> object:
    """Make a call, send these messages about it, and return its value."""

    async def answer() -> None:
        params = (await socket.hear("tool.dispatch"))["params"]
        for message in said:
            params_said = {"documentId": params["documentId"], **message["params"]}
            params_said["callId"] = params["callId"]
            socket.say({**message, "params": params_said})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        with anyio.fail_after(PATIENT):
            return await bridge.call(TARGET, "send", call)
    raise AssertionError


RESULT = about_call("tool.result", "", seq=0, value={"sent": True})


def a_spec(name: str) -> PluginSpec:
    return PluginSpec(
        name=name, version="1", matches=["https://chat.example/*"], exclude_matches=[],
        file=f"adapters/{name}.js", config={},
    )  # fmt: skip
