"""The builder in Node, which the tests of a module share."""

from collections.abc import AsyncGenerator

import pytest

from opentabs_py.config.paths import data_dir
from opentabs_py.plugins.build import Builder, start_builder
from opentabs_py.plugins.toolchain import Toolchain, find_toolchain


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    return find_toolchain(data_dir=data_dir())


@pytest.fixture(scope="module")
async def builder(toolchain: Toolchain) -> AsyncGenerator[Builder]:
    async with start_builder(toolchain) as running:
        yield running
