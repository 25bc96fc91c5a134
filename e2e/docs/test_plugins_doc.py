"""Everything in docs/plugins.md works as shown, in the order shown."""

import json
import re
import tomllib
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.documents import ROOT, Block, find_marked, read_blocks, run
from opentabs_py.config.paths import data_dir
from opentabs_py.config.settings import load_settings
from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.plugins.settings import resolve_values, url_setting_patterns
from opentabs_py.errors import ToolFailedError
from opentabs_py.plugins.build import start_builder
from opentabs_py.plugins.toolchain import find_toolchain
from opentabs_py.session.session import OpenTabs

BLOCKS = read_blocks((ROOT / "docs" / "plugins.md").read_text())
marked = partial(find_marked, BLOCKS)
MARKS = {"install", "console", "file", "invalid", "problems", "settings", "instances", "tool"}
# What differs from run to run: sizes, times, and the output of other programs.
VARYING = [(r"adapter \d+ kB", "adapter kB"), (r" \(\d+\.\d+ m?s\)", ""), (r"\s+", " ")]


def plain(text: str) -> str:
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    return text.strip()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("docs")


@pytest.fixture(scope="module")
def told(workspace: Path) -> list[tuple[Block, int, str]]:
    """The result of each command, run once the files before it are written."""
    came: list[tuple[Block, int, str]] = []
    for block in BLOCKS:
        if block.mark == "file":
            file = workspace / block.argument
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.mark == "console":
            command, _ = block.session
            done = run(["bash", "-c", command], workspace / block.argument)
            # The rest of a call's output is for people to watch.
            besides = "" if command.startswith("opentabs call") else done.stderr
            came.append((block, done.returncode, done.stdout + besides))
    return came


def test_every_block_says_how_it_is_run() -> None:
    assert len(BLOCKS) > 20
    assert [block for block in BLOCKS if block.mark not in MARKS] == []


def test_every_command_prints_what_is_shown(told: list[tuple[Block, int, str]]) -> None:
    assert len(told) == len(marked("console"))
    for block, code, output in told:
        command, shown = block.session
        assert code == 0, output
        if command.startswith("opentabs call"):
            assert json.loads(output) == json.loads(shown), command
            continue
        for line in shown.splitlines():
            assert plain(line) in plain(output), command


def test_each_instance_of_a_setting_adds_its_page() -> None:
    [declared], [given] = marked("settings"), marked("instances")
    schema = json.loads(declared.text)
    values = resolve_values("chat", schema, tomllib.loads(given.text)["plugin_settings"]["chat"])
    assert url_setting_patterns(schema, values) == (
        "https://chat.work.example/*",
        "https://chat.home.example/*",
    )


@pytest.fixture(scope="module")
async def tools(told: list[tuple[Block, int, str]], workspace: Path) -> AsyncGenerator[OpenTabs]:
    """The document's plugin with the tools of all examples, in a page."""
    chat = workspace / "chat"
    assert told
    names: list[str] = []
    for number, block in enumerate(marked("tool")):
        (chat / "src" / "tools" / f"example{number}.ts").write_text(block.text)
        found = re.search(r"export const (\w+) = ", block.text)
        assert found is not None
        names.append(found[1])
    index = (chat / "src" / "index.ts").read_text()
    imports = "".join(
        f'import {{ {name} }} from "./tools/example{number}.ts";\n'
        for number, name in enumerate(names)
    )
    index = index.replace("tools = [", f"tools = [{', '.join(names)}, ")
    (chat / "src" / "index.ts").write_text(imports + index)
    package = json.loads((chat / "package.json").read_text())
    [settings] = marked("settings")
    package["opentabs"]["configSchema"] = json.loads(settings.text)
    (chat / "package.json").write_text(json.dumps(package))
    async with start_builder(find_toolchain(data_dir=data_dir())) as builder:
        built = await builder.build(chat)
    assert built.problems == ()
    given = load_settings(port=0, plugin_settings={"chat": {"sort": "oldest"}})
    async with OpenTabs(plugins=[chat], settings=given) as running:
        await running.open_start_page("chat")
        yield running


@pytest.mark.parametrize("block", marked("tool"), ids=lambda block: block.argument)
async def test_the_tool_of_an_example_does_what_is_shown(tools: OpenTabs, block: Block) -> None:
    arguments, wanted = expected(block.argument)
    found = re.search(r'name: "(\w+)"', block.text)
    assert found is not None
    name = mcp_name("chat", found[1])

    if isinstance(wanted, str):
        with pytest.raises(ToolFailedError) as caught:
            await tools.call(name, arguments)
        assert caught.value.detail.code == wanted
    else:
        assert await tools.call(name, arguments) == wanted


def expected(argument: str) -> tuple[dict[str, Any], Any]:
    """Return a tool's arguments, and its value or the code of its error."""
    for word, read in ((" gives ", json.loads), (" fails ", str)):
        arguments, found, wanted = argument.partition(word)
        if found:
            return json.loads(arguments), read(wanted)
    raise AssertionError(argument)


async def test_the_problems_of_the_invalid_example_are_those_that_are_shown(
    told: list[tuple[Block, int, str]], workspace: Path
) -> None:
    chat = workspace / "invalid"
    run(["opentabs", "new", "chat", "--into", str(chat)], workspace)
    [source], [shown] = marked("invalid"), marked("problems")
    (chat / "src" / "tools" / "remind.ts").write_text(source.text)
    index = (chat / "src" / "index.ts").read_text().replace("[hello]", "[hello, remind]")
    (chat / "src" / "index.ts").write_text(
        f'import {{ remind }} from "./tools/remind.ts";\n{index}'
    )

    built = run(["opentabs", "build", str(chat)], workspace)

    assert told
    assert built.returncode == 1
    assert plain(built.stderr) == plain(shown.text)
