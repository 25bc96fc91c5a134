"""What is loaded before the first client connects."""

import subprocess
import sys

FIRST_CLIENT = """
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit
import anyio
from opentabs_py import OpenTabs, tool
from opentabs_py.server.mcp.sdk_loading import load_sdk

@tool
def echo(text: str) -> str:
    return text

def connect(url):
    parts = urlsplit(url)
    client = HTTPConnection(parts.hostname, parts.port, timeout=30)
    client.request("GET", parts.path, headers={"Accept": "text/event-stream"})
    client.getresponse()
    client.close()

async def main():
    async with OpenTabs(tools=[echo]) as tabs:
        await load_sdk()
        before = {*sys.modules}
        await anyio.to_thread.run_sync(connect, tabs.mcp_url)
        print(*(each for each in sys.modules if each not in before))

anyio.run(main)
"""


def test_the_first_client_needs_nothing_that_an_update_may_have_replaced() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CLIENT], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = [each for each in done.stdout.split() if each.startswith(("opentabs_py.", "mcp."))]
    assert loaded == []
