"""The ways to call the tools of `samples.py`, each created once."""

from collections.abc import AsyncGenerator

import pytest

from opentabs_py.config.settings import load_settings
from opentabs_py.python_tools.load import load_tools
from opentabs_py.session.session import Server
from tests.python_tools import ways
from tests.python_tools.ways import ALL, SAMPLES, STDIO, Way


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """For the servers, which many tests share."""
    return "asyncio"


def a_server() -> Server:
    return Server(tools=load_tools([str(SAMPLES)]), settings=load_settings(port=0))


@pytest.fixture(scope="session")
async def http() -> AsyncGenerator[str]:
    async with a_server() as server:
        yield server.mcp_url


@pytest.fixture(scope="session")
async def stdio_2026() -> AsyncGenerator[Way]:
    async with ways.connected("stdio 2026", STDIO) as way:
        yield way


@pytest.fixture(scope="session")
async def stdio_initialize() -> AsyncGenerator[Way]:
    async with ways.connected("stdio initialize", STDIO) as way:
        yield way


@pytest.fixture(params=ALL)
async def way(
    request: pytest.FixtureRequest, http: str, stdio_2026: Way, stdio_initialize: Way
) -> AsyncGenerator[Way]:
    """Each way in turn."""
    match request.param:
        case "in process":
            yield Way("in process", server=a_server())
        case "stdio 2026":
            stdio_2026.said.clear()
            yield stdio_2026
        case "stdio initialize":
            stdio_initialize.said.clear()
            yield stdio_initialize
        case name:
            async with ways.connected(name, http) as way:
                yield way
