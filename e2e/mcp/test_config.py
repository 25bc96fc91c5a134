"""What `opentabs config` prints runs unchanged in third-party clients."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.documents import ROOT, read_blocks
from e2e.mcp.node import CLIENTS, node_command
from opentabs_py.cli.clients import ClientName
from tests.cli.test_authoring import opentabs
from tests.python_tools import samples

TOOLS = str(Path(samples.__file__))
CALL = """
const result = await call("export", { query: "q" });
console.error(JSON.stringify({ said: result.structuredContent.query, timeout: patience.timeout }));
await client.close();
"""


DOCUMENT = (ROOT / "docs" / "mcp.md").read_text()


def printed(client: str, *options: str, cwd: Path) -> str:
    done = opentabs("config", "--client", client, "--tools", TOOLS, *options, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_node(
    *arguments: str, program: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    node = node_command("mcp-inspector")[0]
    done = subprocess.run(
        [node, *arguments],
        input=program,
        cwd=CLIENTS,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_documentation_shows_what_is_printed(tmp_path: Path) -> None:
    (tmp_path / "my_tools.py").touch()
    [block] = [block for block in read_blocks(DOCUMENT) if block.mark == "config"]
    command, shown = block.session

    done = opentabs(*shlex.split(command.removeprefix("opentabs")), cwd=tmp_path)

    home = shown.replace("/home/you/opentabs/.venv/bin", str(Path(sys.executable).parent))
    assert done.stdout == home.replace("/home/you", str(tmp_path))


def test_the_documentation_says_how_long_each_client_waits() -> None:
    rows = [row for row in DOCUMENT.splitlines() if row.startswith("|")]
    assert [name for name in ClientName if not any(f"`{name}`" in row for row in rows)] == []


@pytest.mark.parametrize("client", ["typescript-sdk", "typescript-sdk-1"])
def test_a_program_for_a_typescript_sdk_calls_a_tool_and_waits_as_long_as_one_may_take(
    tmp_path: Path, client: str
) -> None:
    program = printed(client, "--ceiling", "600", cwd=tmp_path) + CALL

    done = run_node("--input-type=module", program=program)

    # On a busy machine, the server may also warn that its audit was not written in time.
    [said] = [line for line in done.stderr.splitlines() if line.startswith("{")]
    assert json.loads(said) == {"said": "q", "timeout": 610_000}
    assert "page 3" in done.stdout


def test_the_inspector_takes_its_block_as_a_file(tmp_path: Path) -> None:
    block = tmp_path / "servers.json"
    block.write_text(printed("inspector", cwd=tmp_path))
    inspector = node_command("mcp-inspector")[1]

    done = run_node(
        *(inspector, "--cli", "--config", str(block), "--server", "opentabs"),
        *("--format", "json", "--method", "tools/list"),
        MCP_STORAGE_DIR=str(tmp_path),
    )

    assert "export" in [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]]
