"""What `opentabs new` writes: a plugin that builds, and whose tests pass."""

import os
import sys
from pathlib import Path
from subprocess import run
from typing import Literal

import anyio
import pytest

from opentabs_py.config.paths import data_dir
from opentabs_py.errors import ConfigError
from opentabs_py.plugins.build import start_builder
from opentabs_py.plugins.scaffold import scaffold
from opentabs_py.plugins.toolchain import Toolchain, find_toolchain

ROOT = Path(__file__).resolve().parent.parent.parent
Language = Literal["ts", "js"]


@pytest.fixture
def toolchain() -> Toolchain:
    return find_toolchain(data_dir=data_dir())


@pytest.mark.parametrize("language", ["ts", "js"])
async def test_a_new_plugin_builds_without_problems_and_its_unit_test_passes(
    toolchain: Toolchain, tmp_path: Path, language: Language
) -> None:
    scaffold("my-chat", tmp_path / "x", language=language)

    async with start_builder(toolchain) as builder:
        built = await builder.build(tmp_path / "x")
    command = [str(toolchain.node), "--test", f"tests/hello.test.{language}"]
    tested = await anyio.run_process(command, cwd=tmp_path / "x", check=False)

    assert (built.problems, built.warnings) == ((), ())
    assert (built.name, built.tools) == ("my-chat", ("hello",))
    assert tested.returncode == 0, tested.stdout
    assert b"pass 1" in tested.stdout


async def test_a_new_plugin_has_the_types_that_its_source_says(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    scaffold("x", tmp_path / "x", language="ts")
    async with start_builder(toolchain) as builder:
        await builder.build(tmp_path / "x")
    tsc = ROOT / "adapter_js" / "node_modules" / "typescript" / "bin" / "tsc"
    command = [str(toolchain.node), str(tsc), "--project", "."]

    sound = await anyio.run_process(command, cwd=tmp_path / "x", check=False)
    tool = tmp_path / "x" / "src" / "tools" / "hello.ts"
    tool.write_text(tool.read_text().replace("`Hello, ${name}!`", "name.length"))
    wrong = await anyio.run_process(command, cwd=tmp_path / "x", check=False)

    assert sound.returncode == 0, sound.stdout
    assert b"Type 'number' is not assignable to type 'string'" in wrong.stdout


def test_the_files_of_a_new_plugin_are_named_after_it(tmp_path: Path) -> None:
    files = scaffold("my-chat", tmp_path / "x", language="ts")

    assert [file.as_posix() for file in files] == [
        ".github/workflows/test.yml",
        ".gitignore",
        "README.md",
        "package.json",
        "playground/index.html",
        "src/index.ts",
        "src/tools/hello.ts",
        "tests/hello.test.ts",
        "tests/test_my_chat.py",
        "tsconfig.json",
    ]
    for file in files:
        assert "{{" not in (tmp_path / "x" / file).read_text()
    assert "class MyChatPlugin" in (tmp_path / "x" / "src" / "index.ts").read_text()


def test_files_are_in_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from opentabs_py.plugins.scaffold import scaffold; "
        r"texts = {'README.md': '\u0438\u043c\u044f'}; "
        "scaffold('x', Path(sys.argv[1]), language='ts', files=texts)"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", program, str(tmp_path / "x")]
    done = run(command, env=environment, capture_output=True, text=True, check=False)

    assert not done.returncode, done.stderr
    assert (tmp_path / "x" / "README.md").read_text("utf-8") == "\u0438\u043c\u044f"


@pytest.mark.parametrize("name", ["", "My", "a_b", "1a", "mcp", "a--b", "../x"])
def test_a_name_that_is_not_valid_for_a_plugin_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        scaffold(name, tmp_path / "x", language="ts")

    assert not (tmp_path / "x").exists()


def test_a_directory_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")

    with pytest.raises(ConfigError, match="is not empty"):
        scaffold("x", tmp_path, language="ts")

    assert [file.name for file in tmp_path.iterdir()] == ["mine"]


def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")

    with pytest.raises(ConfigError, match="Cannot write"):
        scaffold("x", tmp_path / "file" / "x", language="ts")


@pytest.mark.parametrize("exists", [True, False])
def test_what_was_written_before_a_failure_is_removed(exists: bool, tmp_path: Path) -> None:
    into = tmp_path / "x"
    if exists:
        into.mkdir()

    with pytest.raises(ConfigError, match="Cannot write"):
        scaffold("x", into, language="ts", files={"package.json/no-directory": "text"})

    assert into.exists() == exists
    assert [*tmp_path.rglob("x/*")] == []
