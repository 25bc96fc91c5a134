"""Type checks of a plugin, with the TypeScript that is installed for it."""

import json
import sys
from pathlib import Path

import pytest

from opentabs_py.config.assets import adapter_js_dir
from opentabs_py.core.plugins.authoring import SourceProblem
from opentabs_py.plugins.package_links import link_packages
from opentabs_py.plugins.scaffold import scaffold
from opentabs_py.plugins.toolchain import find_node, find_toolchain
from opentabs_py.plugins.type_check import check_types, find_tsc

pytestmark = pytest.mark.anyio
WRONG = 'export const wrong: number = "a text";\n'


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A new plugin with TypeScript installed, in a project."""
    directory = tmp_path / "plugins" / "chat"
    scaffold("chat", directory, language="ts")
    link_packages(directory, find_toolchain(data_dir=tmp_path).packages)
    programs = tmp_path / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    (programs / "tsc").symlink_to(adapter_js_dir() / "node_modules" / "typescript" / "bin" / "tsc")
    return directory


async def problems(plugin: Path) -> list[SourceProblem]:
    tsc = find_tsc(plugin)
    assert tsc is not None
    return await check_types(plugin, tsc, find_node()[0])


async def test_a_new_plugin_has_no_problems_of_types(plugin: Path) -> None:
    assert await problems(plugin) == []


async def test_a_problem_of_types_has_its_file_and_line(plugin: Path) -> None:
    index = plugin / "src" / "index.ts"
    index.write_text(index.read_text() + WRONG)
    line = len(index.read_text().splitlines())

    [problem] = await problems(plugin)

    assert (problem.file, problem.line) == ("src/index.ts", line)
    assert problem.why == "Type 'string' is not assignable to type 'number'. (TS2322)"


async def test_a_problem_in_the_type_checkers_settings_is_reported(plugin: Path) -> None:
    settings = json.loads((plugin / "tsconfig.json").read_text())
    settings["compilerOptions"]["strickt"] = True
    (plugin / "tsconfig.json").write_text(json.dumps(settings))

    [problem] = await problems(plugin)

    assert problem.file == "tsconfig.json"
    assert "strickt" in problem.why


@pytest.mark.skipif(sys.platform == "win32", reason="tsc is a shell script here")
async def test_a_tsc_that_crashes_is_reported(plugin: Path) -> None:
    tsc = plugin / "tsc"
    tsc.write_text("#!/bin/sh\necho it broke >&2\nexit 7\n")
    tsc.chmod(0o755)

    [problem] = await check_types(plugin, tsc, find_node()[0])

    assert "it broke" in problem.why


async def test_without_typescript_or_its_settings_there_is_nothing_to_check_with(
    plugin: Path,
) -> None:
    (plugin / "tsconfig.json").rename(plugin / "other.json")
    assert find_tsc(plugin) is None
    (plugin / "other.json").rename(plugin / "tsconfig.json")
    (plugin.parent.parent / "node_modules" / ".bin" / "tsc").unlink()
    assert find_tsc(plugin) is None
