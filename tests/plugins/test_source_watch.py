"""Watching the sources of a plugin."""

import json
import os
import shutil
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from opentabs_py.plugins import source_watch
from opentabs_py.plugins.source_watch import (
    SourceChanges,
    changed_text,
    is_source,
    next_source,
    python_changes,
    watch_source,
)
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


async def test_changes_of_source_files_are_reported_and_others_are_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "dist").mkdir()
    with anyio.fail_after(PATIENT):
        async with watch_source(tmp_path) as changes:
            (tmp_path / "dist" / "adapter.iife.js").write_text("built")
            os.utime(tmp_path)  # the directory itself
            for temporary in ("index.ts~", "index.ts.swp", ".#index.ts"):
                (tmp_path / "src" / temporary).write_text("an editor's")
            (tmp_path / "src" / "index.ts").write_text("written")

            assert await changes.next() == [str(Path("src", "index.ts"))]


def write_map(plugin: Path, *sources: str) -> None:
    (plugin / "dist").mkdir(parents=True, exist_ok=True)
    (plugin / "dist" / "adapter.iife.js.map").write_text(json.dumps({"sources": sources}))


async def test_a_file_outside_the_directory_counts_once_the_build_was_made_of_it(
    tmp_path: Path,
) -> None:
    plugin, shared = tmp_path / "plugin", tmp_path / "shared.js"
    shared.write_text("1")
    os.utime(shared, (1, 1))
    write_map(plugin, "zod/v4/core/core.js", "opentabs:adapter")
    with anyio.fail_after(PATIENT):
        async with watch_source(plugin) as changes:
            write_map(plugin, "../../shared.js", "../lib/who.js")
            while not changes.inputs:
                await anyio.lowlevel.checkpoint()
            assert changes.inputs == {str(Path("..", "shared.js")), str(Path("lib", "who.js"))}
            os.utime(shared, (2, 2))
            assert await next_source(changes) == [str(Path("..", "shared.js"))]
            shared.unlink()
            assert await next_source(changes) == [str(Path("..", "shared.js"))]


async def test_a_file_that_changed_during_the_build_that_first_read_it_counts(
    tmp_path: Path,
) -> None:
    plugin, shared = tmp_path / "plugin", tmp_path / "shared.js"
    shared.write_text("1")
    write_map(plugin, "../../shared.js")
    os.utime(plugin / "dist", (1, 1))
    with anyio.fail_after(PATIENT):
        async with watch_source(plugin) as changes:
            assert await next_source(changes) == [str(Path("..", "shared.js"))]


@pytest.mark.parametrize("how", ["deleted", "moved", "one file"])
async def test_a_build_that_is_removed_is_reported_as_a_change_of_dist(
    tmp_path: Path, how: str
) -> None:
    plugin = tmp_path / "plugin"
    dist = plugin / "dist"
    dist.mkdir(parents=True)
    for name in ("adapter.iife.js", "adapter.iife.js.map", "tools.json"):
        (dist / name).write_text("built")
    with anyio.fail_after(PATIENT):
        async with watch_source(plugin) as changes:
            if how == "deleted":
                shutil.rmtree(dist)
            elif how == "moved":
                dist.rename(tmp_path / "elsewhere")
            else:
                (dist / "tools.json").unlink()

            assert await changes.next() == ["dist"]


async def test_a_name_that_is_not_utf_8_does_not_end_the_watch(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENT):
        async with watch_source(tmp_path) as changes:
            os.close(os.open(os.fsencode(tmp_path) + b"/na\xefve", os.O_CREAT))
            (tmp_path / "index.ts").write_text("written")

            assert "index.ts" in await changes.next()


async def test_a_build_that_is_written_again_is_not_a_change(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    (dist / "tools.json").write_text("built")
    with anyio.fail_after(PATIENT):
        async with watch_source(tmp_path) as changes:
            (dist / ".tools.json.1").write_text("again")
            (dist / ".tools.json.1").replace(dist / "tools.json")
            (dist / "pre-script.iife.js").write_text("old")
            (dist / "pre-script.iife.js").unlink()
            (tmp_path / "index.ts").write_text("written")

            assert await changes.next() == ["index.ts"]


@pytest.mark.parametrize("how", ["deleted", "moved", "moved with its parent"])
async def test_a_directory_that_is_removed_and_created_again_is_still_watched(
    tmp_path: Path, how: str
) -> None:
    plugin = tmp_path / "parent" / "plugin"
    (plugin / "src").mkdir(parents=True)
    with anyio.fail_after(PATIENT):
        async with watch_source(plugin) as changes:
            if how == "deleted":
                shutil.rmtree(plugin)
            elif how == "moved":
                plugin.rename(tmp_path / "elsewhere")
            else:
                plugin.parent.rename(tmp_path / "elsewhere")
            (plugin / "src").mkdir(parents=True)
            (plugin / "package.json").write_text("created")
            while "package.json" not in await changes.next():
                pass
            (plugin / "src" / "index.ts").write_text("written")
            while str(Path("src", "index.ts")) not in await changes.next():
                pass


async def test_python_files_are_still_watched_in_a_directory_that_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = tmp_path / "parent"
    tools = parent / "tools"
    tools.mkdir(parents=True)
    seen: list[str] = []
    was_unreadable = anyio.Event()

    def look(directory: Path) -> tuple[int, int]:
        try:
            return identity(directory)
        except NotADirectoryError:
            was_unreadable.set()
            raise

    identity = source_watch._identity
    monkeypatch.setattr(source_watch, "_identity", look)

    async def watch() -> None:
        async for names in python_changes([tools]):
            seen.extend(names)

    async def write_until_seen(name: str) -> None:
        while name not in seen:  # when the watch begins cannot be known from outside
            (tools / name).write_text("")
            await anyio.sleep(0.05)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        with anyio.fail_after(PATIENT):
            await write_until_seen("first.py")
            tools.rename(tmp_path / "elsewhere")
            tools.mkdir()
            (tools / "there.py").write_text("")
            await write_until_seen("later.py")
            assert "there.py" in seen
            parent.rename(tmp_path / "elsewhere, too")
            parent.write_text("a file")
            await was_unreadable.wait()
            parent.unlink()
            tools.mkdir(parents=True)
            await write_until_seen("last.py")
        tasks.cancel_scope.cancel()


async def test_changes_that_arrive_while_nobody_asks_are_reported_together() -> None:
    changes = SourceChanges()
    changes.add(["b"])
    changes.add(["a", "b"])

    with anyio.fail_after(PATIENT):
        assert await changes.next() == ["a", "b"]

    with anyio.move_on_after(0) as scope:
        await changes.next()
    assert scope.cancelled_caught  # reported once


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("src/tools/hello.ts", True),
        ("src/icon.svg", True),
        ("tests/site.har", True),
        ("playground/index.html", True),
        ("package.json", True),
        ("conftest.py", True),
        ("junit.xml", False),
        ("trace.zip", False),
        ("kept/test-it/trace.zip", False),
    ],
)
def test_files_that_tests_depend_on_are_sources_and_their_output_is_not(
    file: str, counts: bool
) -> None:
    assert is_source(file) is counts


def test_of_many_changed_files_the_first_are_named() -> None:
    assert changed_text(["a"]) == "a changed"
    assert changed_text(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more changed"
