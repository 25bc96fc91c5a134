"""A handler notices that its request's connection has dropped."""

from typing import Any

import anyio
import pytest
from starlette.requests import Request

from opentabs_py.server.mcp.drops import find_drop, offer_drop
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("when", ["while it waits", "before"])
async def test_a_handler_stops_waiting_once_its_connection_has_dropped(when: str) -> None:
    scope: dict[str, Any] = {"type": "http"}
    drop = offer_drop(scope)
    if when == "before":
        drop.handle()
    with anyio.fail_after(PATIENT), find_drop(Request(scope)).cancelling():
        if when == "while it waits":
            drop.handle()
        await anyio.sleep_forever()
