"""The MCP servers are loaded when the first client connects; the chain does not wait for it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENT

SESSION = """
import sys, anyio, httpx2
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs

async def main():
    async with OpenTabs(browser="none", settings=load_settings(port=0)) as server:
        async with httpx2.AsyncClient(timeout=60) as client:
            status = await client.get(server.mcp_url.replace("/mcp", "/status"))
            print(status.status_code, "mcp" in sys.modules)
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            async def ask(path):
                accept = {"Accept": "application/json, text/event-stream"}
                answer = await client.post(server.mcp_url + path, json=ping, headers=accept)
                print(answer.status_code, "mcp" in sys.modules)
            async with anyio.create_task_group() as tasks:  # of two at once, both are answered
                tasks.start_soon(ask, "")
                tasks.start_soon(ask, "/gateway")
anyio.run(main)
"""

# If the interpreter exits while a thread imports a C++ module, it aborts.
LOADED_SOON = """
from opentabs_py.server.mcp.sdk_loading import load_sdk_soon
load_sdk_soon("slow")
"""
SLOW = """
import time
time.sleep(0.2)
print("loaded")
"""


# Switch threads as often as possible, also in the middle of an import.
CLIENT_WHILE_LOADING = """
import sys
sys.setswitchinterval(1e-5)
import anyio
from opentabs_py.cli.call_over_mcp import CLIENT_MODULES, call_over_mcp
from opentabs_py.errors import ChainError
from opentabs_py.server.mcp.sdk_loading import load_sdk_soon

async def main():
    load_sdk_soon(*CLIENT_MODULES)
    try:
        await call_over_mcp("http://127.0.0.1:1/mcp", "tool", {}, print)
    except ChainError as error:
        print(error)

anyio.run(main)
"""


def test_a_client_waits_for_the_sdk_that_a_thread_is_loading() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CLIENT_WHILE_LOADING],
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * PATIENT,
    )
    assert "All connection attempts failed" in ran.stdout, ran.stderr


def test_a_process_exits_only_when_what_it_loads_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    ran = subprocess.run(
        [sys.executable, "-c", LOADED_SOON],
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * PATIENT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert ran.stdout == "loaded\n", ran.stderr


def test_the_sdk_is_loaded_by_the_first_client_and_not_before(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SESSION],
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * PATIENT,
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},  # the extension is staged there
    )
    assert ran.stdout.splitlines() == ["200 False", "400 True", "400 True"], ran.stderr
