"""The conftest.py of the inner runs: the demo's plugin and the probe."""

from pathlib import Path

import pytest

from e2e.chain import PROBE
from opentabs_py.demo import demo_plugin_dir


@pytest.fixture(scope="session")
def opentabs_plugins() -> list[Path]:
    return [demo_plugin_dir(), PROBE]
