"""What is known about clients: whether they read links, and how long they wait."""

import logging
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.client import Client

from opentabs_py.server.mcp.clients import reads_links
from opentabs_py.server.mcp.server import create_mcp_server
from tests.fakes import FakeBridge
from tests.served import Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio
BOTH_ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time


async def give_up(name: str, waited: float, *, mode: str = "auto") -> None:
    """Cancel a call as a client with this name, after this long on the server's clock."""
    clock, bridge = Clock(), FakeBridge()
    bridge.hangs = True
    server = create_mcp_server(Served(bridge).tool_calls, now=clock.now)
    info = types.Implementation(name=name, version="1")
    async with Client(server, mode=mode, client_info=info) as client:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "chat_send", {})
                await bridge.called.wait()
                clock.time += waited
                tasks.cancel_scope.cancel()
            await bridge.cancelled.wait()


@BOTH_ERAS
@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("mcp", "read_timeout_seconds of its session to 310"),
        ("claude-code", "MCP_TOOL_TIMEOUT=310000"),
        ("codex-mcp-client", "tool_timeout_sec = 310"),
        ("gemini-cli-mcp-client-opentabs", "timeout: 310000"),
        ("mcp-inspector-web", "Request Timeout to 310000"),
        ("anything else", "its tool call timeout to 310 s"),
    ],
)
async def test_the_log_names_the_setting_of_a_client_that_gives_up_at_a_round_time(
    mode: str, name: str, setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    await give_up(name, 5.02, mode=mode)
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert f"The client {name} gave up on chat_send after 5.0 s" in record.message
    assert setting in record.message


@pytest.mark.parametrize("waited", [0.0, 4.7, 7.3, 12.0, 61.0, 500.0])
async def test_a_client_that_cancels_at_another_time_is_not_logged(
    waited: float, caplog: pytest.LogCaptureFixture
) -> None:
    await give_up("mcp", waited)
    assert "gave up" not in caplog.text


async def test_a_client_s_name_does_nothing_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    await give_up("evil\n\x1b[31m" + "x" * 1000, 60.0)
    [record] = [each for each in caplog.records if "gave up" in each.message]
    assert record.message.isprintable()
    assert len(record.message) < 300


@dataclass
class Request:
    """The part of a request that says who makes it."""

    protocol_version: str
    client_params: types.InitializeRequestParams

    @property
    def session(self) -> "Request":
        return self


@pytest.mark.parametrize(
    ("name", "revision", "reads"),
    [
        ("Claude-Code", "2025-06-18", True),
        ("claude-code", "2025-03-26", False),  # which has no links
        ("some framework", "2025-11-25", False),
    ],
)
def test_links_are_only_for_clients_that_are_known_to_read_them(
    name: str, revision: str, reads: bool
) -> None:
    info = types.Implementation(name=name, version="1")
    params = types.InitializeRequestParams(
        protocol_version=revision, capabilities=types.ClientCapabilities(), client_info=info
    )
    request: Any = Request(revision, params)
    assert reads_links(request) is reads
