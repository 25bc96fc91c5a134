"""The tools of a fleet's workers in an endpoint."""

from typing import Any, cast

import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.listing import Listing
from opentabs_py.core.fleet.pool import Wanted
from opentabs_py.core.limits import Limits
from opentabs_py.errors import CallRefusedError
from opentabs_py.fleet.catalog import Entry
from opentabs_py.fleet.endpoint import Fleet
from opentabs_py.fleet.own_tabs import OwnRemoteTabs
from opentabs_py.fleet.remote_tool import RemoteTool

pytestmark = pytest.mark.anyio

LISTING = Listing("chat_send", "chat", "Send", "Send a text.", {"type": "object"}, needs_tab=True)


class FakeFleet:
    """Workers that return the arguments."""

    def __init__(self) -> None:
        self.own_tabs = OwnRemoteTabs()

    async def call(self, tool: str, wanted: Wanted, call: ToolCall) -> Any:
        return tool, wanted.owner, wanted.digest, call.arguments


def a_tool(limit: int) -> RemoteTool:
    fleet = cast("Fleet", FakeFleet())
    return RemoteTool(fleet, Entry("d", LISTING, limits=None), message_limit=limit)


async def test_arguments_over_the_limit_are_sent_to_no_worker_and_those_at_it_are() -> None:
    tool = a_tool(len('{"text":"日本"}'))
    fitting = ToolCall({"text": "日本"}, Limits())
    assert await tool.prepare(fitting)() == ("chat_send", "chat", "d", {"text": "日本"})
    with pytest.raises(CallRefusedError) as caught:
        tool.prepare(ToolCall({"text": "日本語"}, Limits()))
    assert caught.value.detail.code == "INPUT_TOO_LARGE"


def test_arguments_that_are_not_json_are_refused() -> None:
    with pytest.raises(CallRefusedError, match="not serializable as JSON"):
        a_tool(1000).prepare(ToolCall({"text": "\ud800"}, Limits()))
