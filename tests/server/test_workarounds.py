"""The specification, where the MCP SDK does otherwise by itself."""

from collections.abc import Callable
from typing import Any

import pytest
from mcp.client import Client

from opentabs_py.session import Server
from tests.fakes import Json
from tests.served import Served
from tests.tools.samples import Counter

pytestmark = pytest.mark.anyio
BOTH_ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
ALL: Json = {
    "tools_list_changed": True,
    "prompts_list_changed": True,
    "resources_list_changed": True,
    "resource_subscriptions": ["stream://ff", "https://example.com/"],
}


@BOTH_ERAS
async def test_a_server_declares_no_changes_that_it_never_sends(mode: str) -> None:
    async with Server(tools=[Counter]) as server, Client(server.mcp_server, mode=mode) as client:
        capabilities = client.server_capabilities
    assert capabilities.tools is not None
    assert capabilities.resources is not None
    assert capabilities.tools.list_changed is True
    assert not capabilities.resources.list_changed


@BOTH_ERAS
async def test_a_gateway_whose_two_tools_stay_declares_no_changes(mode: str) -> None:
    async with Client(Served().gateway, mode=mode) as client:
        assert client.server_capabilities.tools is not None
        assert not client.server_capabilities.tools.list_changed


@pytest.mark.parametrize(
    ("server", "honored"),
    [
        (lambda: Served().server, {"tools_list_changed": True}),
        (lambda: Served().gateway, {}),
        (
            lambda: Server(tools=[Counter]),
            {"tools_list_changed": True, "resource_subscriptions": ["stream://ff"]},
        ),
    ],
    ids=["pages", "gateway", "streams"],
)
async def test_the_acknowledgement_of_a_listener_names_what_it_will_be_sent_and_no_more(
    server: Callable[[], Any], honored: Json
) -> None:
    served = server()
    if isinstance(served, Server):
        async with served, Client(served.mcp_server) as client, client.listen(**ALL) as changes:
            assert changes.honored.model_dump(exclude_none=True) == honored
        return
    async with Client(served) as client, client.listen(**ALL) as changes:
        assert changes.honored.model_dump(exclude_none=True) == honored
