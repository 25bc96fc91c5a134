"""Everything in README.md works as shown.

The comment before each fenced block, `<!-- runs: MARK -->`, says how the block is run.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from e2e.documents import ENVIRONMENT, ROOT, Block, find_marked, read_blocks, run
from opentabs_py.core.error_kinds import from_json
from opentabs_py.demo import demo_plugin_dir
from opentabs_py.server.mcp.results import to_error_result

README = (ROOT / "README.md").read_text()
MARKS = {
    "picture",
    "make",
    "demo",
    "site",
    "call",
    "file",
    "pytest",
    "client",
    "error",
    "begin",
    "build",
    "install",
}
Outcome = Future[subprocess.CompletedProcess[str]]
DEMO_PLUGIN = "opentabs_py/demo/plugin"  # in the checkout, where README's commands are run
PORT = "8000"  # where README serves the demo chat; here it is any free port
BLOCKS = read_blocks(README)
marked = partial(find_marked, BLOCKS)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that README's reader writes."""
    directory = tmp_path_factory.mktemp("readme")
    [begin], [build] = marked("begin"), marked("build")
    assert run(["bash", "-c", begin.text], directory).returncode == 0
    for block in [*marked("file"), *marked("pytest")]:
        file = directory / block.argument
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text)
    built = run(["bash", "-c", build.text], directory)
    assert built.returncode == 0, built.stderr
    return directory


@pytest.fixture(scope="module")
def port() -> Generator[str]:
    """The port of the demo chat, served by README's command."""
    [block] = marked("site")
    command = block.text.replace(PORT, "0").split()
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as site:
        assert site.stderr is not None
        address = None
        while address is None:
            line = site.stderr.readline()
            assert line, "the site did not start"
            address = re.search(r"running on http://127\.0\.0\.1:(\d+)", line)
        yield address[1]
        site.terminate()
        site.stderr.read()  # what it logged must not block it


@pytest.fixture(scope="module")
def outcomes(workspace: Path, port: str) -> Generator[Mapping[Block, Outcome]]:
    """The result of each block that is a command; two run at a time."""
    with ThreadPoolExecutor(2) as pool:
        started: dict[Block, Outcome] = {}
        for block in marked("demo"):
            started[block] = pool.submit(run, ["opentabs", "demo"], workspace)
        for block in marked("call"):
            command, _ = block.session
            command = command.replace(PORT, port).replace(DEMO_PLUGIN, str(demo_plugin_dir()))
            started[block] = pool.submit(run, ["bash", "-c", command], workspace)
        for block in marked("pytest"):
            pytest_ = [sys.executable, "-m", "pytest", block.argument]
            started[block] = pool.submit(run, pytest_, workspace)
        yield started


def without_times(text: str) -> Any:
    return json.loads(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "a time", text))


def test_every_block_says_how_it_is_run() -> None:
    assert len(BLOCKS) * 2 == len(re.findall(r"^```", README, re.MULTILINE)) - 2  # one is nested
    assert [block for block in BLOCKS if block.mark not in MARKS] == []


def test_what_the_picture_names_is_there() -> None:
    [picture] = marked("picture")
    places = re.findall(r"\w+/\S*", picture.text)

    assert len(places) == 4
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)(#([^)]+))?\)", README)

    assert len(links) > 10
    for target, _, fragment in links:
        text = (ROOT / target).read_text()
        headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
        # As GitHub generates them.
        anchors = [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]
        assert not fragment or fragment in anchors, f"{target} has no heading for #{fragment}"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_targets_of_make_are_there() -> None:
    lines = [line for block in marked("make") for line in block.text.splitlines()]

    assert lines
    for line in lines:
        assert line.startswith("make ")
        assert run(["make", "-n", *line.split()[1:]], ROOT).returncode == 0, line


def test_the_demo_prints_what_is_shown(outcomes: Mapping[Block, Outcome]) -> None:
    [block] = marked("demo")
    shown = [re.escape(line) for line in block.text.splitlines() if line]
    # Times vary, and so does their width.
    wanted = [re.sub(r"(\\ )*\d+(\\\.\d+)", r"\\s*[\\d.]+", line) for line in shown]

    demo = outcomes[block].result()

    assert demo.returncode == 0, demo.stderr
    assert re.search(".*".join(wanted), demo.stdout, re.DOTALL), demo.stdout


@pytest.mark.parametrize("block", marked("call"), ids=lambda block: block.text.split()[3])
def test_a_call_returns_what_is_shown(block: Block, outcomes: Mapping[Block, Outcome]) -> None:
    _, output = block.session

    called = outcomes[block].result()

    assert called.returncode == 0, called.stderr
    assert without_times(called.stdout) == without_times(output)


def test_the_test_passes(outcomes: Mapping[Block, Outcome]) -> None:
    [block] = marked("pytest")

    tested = outcomes[block].result()

    assert tested.returncode == 0, tested.stdout
    assert "1 passed" in tested.stdout


async def test_an_mcp_client_so_configured_calls_the_plugin(workspace: Path, port: str) -> None:
    [block] = marked("client")
    text = block.text.replace(PORT, port).replace("/home/you/chat", str(workspace / "chat"))
    config = json.loads(text)["mcpServers"]["opentabs"]
    assert config["command"] == "/home/you/opentabs/.venv/bin/opentabs"
    command = shutil.which("opentabs", path=ENVIRONMENT["PATH"])
    assert command is not None
    server = StdioServerParameters(command=command, args=config["args"], env=ENVIRONMENT)

    async with Client(server) as client:
        result = await client.call_tool("chat_search", {"text": "Hello from nobody"})

    assert result.structured_content == {"found": []}


def test_an_error_reads_as_shown() -> None:
    [block] = marked("error")
    fields = json.loads(block.text.partition("```json\n")[2].rpartition("```")[0])

    [content] = to_error_result(from_json(fields, "tool")).content

    assert content.type == "text"
    assert content.text == block.text.rstrip("\n")
