"""Watching plugins' files: every change is reported, and nothing else is watched."""

import os
import shutil
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from opentabs_py.plugins import watch
from opentabs_py.plugins.folders import Sources
from opentabs_py.plugins.watch import watch_plugins
from tests.plugins.test_folders import run_without_root
from tests.plugins.test_load import build
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


class Reader:
    """Reads the adapter of each plugin when the test requests it."""

    def __init__(self, *directories: Path, folder: Path | None = None) -> None:
        self.sources = Sources(directories, () if folder is None else [folder])
        self.read: list[str] = []
        self._told = anyio.Event()

    async def __call__(self) -> None:
        adapters = [directory / "dist" / "adapter.iife.js" for directory in self.sources.plugins()]
        text = " ".join(each.read_text() if each.is_file() else "none" for each in adapters)
        self.read.append(text)
        self._told.set()
        await anyio.lowlevel.checkpoint()

    async def wait_for(self, text: str) -> None:
        with anyio.fail_after(PATIENT):
            while self.read[-1:] != [text]:
                await self._told.wait()
                self._told = anyio.Event()


@asynccontextmanager
async def watching(*directories: Path, folder: Path | None = None) -> AsyncGenerator[Reader]:
    reader = Reader(*directories, folder=folder)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_plugins, lambda: reader.sources, reader)
        with anyio.fail_after(PATIENT):
            await reader._told.wait()  # all before it is read
        yield reader
        tasks.cancel_scope.cancel()


def write(directory: Path, text: str) -> None:
    (directory / "dist" / "adapter.iife.js").write_text(text)


async def test_a_file_that_is_written_is_reported(tmp_path: Path) -> None:
    one, two = build(tmp_path / "1"), build(tmp_path / "2")
    async with watching(one, two) as reader:
        write(two, "2")
        await reader.wait_for("/* adapter */ 2")
        write(one, "1")
        await reader.wait_for("1 2")


async def test_a_directory_given_by_a_relative_path_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path / "chat")
    monkeypatch.chdir(tmp_path)
    async with watching(Path("chat")) as reader:
        write(tmp_path / "chat", "1")
        await reader.wait_for("1")


async def test_a_file_that_replaces_another_is_reported(tmp_path: Path) -> None:
    chat = build(tmp_path / "chat")
    async with watching(chat) as reader:
        for number in ("1", "2"):
            (tmp_path / "new").write_text(number)
            (tmp_path / "new").rename(chat / "dist" / "adapter.iife.js")
            await reader.wait_for(number)


async def test_a_dist_and_a_whole_directory_may_come_and_go(tmp_path: Path) -> None:
    chat = tmp_path / "deep" / "chat"
    async with watching(chat) as reader:
        assert reader.read == ["none"]
        for number in ("1", "2"):
            build(chat)
            write(chat, number)
            await reader.wait_for(number)
            shutil.rmtree(chat / "dist")
            await reader.wait_for("none")
            (chat / "dist").mkdir()
            write(chat, f"{number} again")
            await reader.wait_for(f"{number} again")
            shutil.rmtree(chat)
            await reader.wait_for("none")


async def test_plugins_that_are_added_to_a_folder_or_removed_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "plugins"
    async with watching(folder=folder) as reader:
        assert reader.read == [""]
        write(build(folder / "b"), "b")
        await reader.wait_for("b")
        write(build(folder / "a"), "a")
        await reader.wait_for("a b")
        write(folder / "b", "b again")
        await reader.wait_for("a b again")
        (tmp_path / "elsewhere").mkdir()
        (folder / "b").rename(tmp_path / "elsewhere" / "b")
        await reader.wait_for("a")
        (tmp_path / "elsewhere" / "b").rename(folder / "c")
        await reader.wait_for("a b again")
        shutil.rmtree(folder)
        await reader.wait_for("")


def test_plugins_that_cannot_be_read_come_back(tmp_path: Path) -> None:
    chat = build(tmp_path / "plugins" / "chat")
    run = run_without_root(f"""
        import anyio
        from pathlib import Path
        from opentabs_py.plugins.folders import Sources
        from opentabs_py.plugins.load import load_plugins
        from opentabs_py.plugins.watch import watch_plugins

        folder, chat = Path({str(chat.parent)!r}), Path({str(chat)!r})
        sources = Sources(folders=[folder])
        modes = iter([(chat, 0), (chat, 0o755), (folder, 0o444), (folder, 0o755), (folder, 0),
                      (folder, 0o755)])

        async def on_change():
            plugins, skipped = load_plugins(sources.plugins())
            print(*(each.manifest.name for each in plugins), *(each.reason for each in skipped))
            if (change := next(modes, None)) is None:
                tasks.cancel_scope.cancel()
            else:
                place, mode = change
                place.chmod(mode)

        async def main():
            global tasks
            async with anyio.create_task_group() as tasks:
                await watch_plugins(lambda: sources, on_change)

        anyio.run(main)
    """)
    assert run.stderr == ""
    gone = [f"Cannot read {each}: Permission denied." for each in (chat, chat.parent, chat.parent)]
    assert run.stdout.splitlines() == ["chat", gone[0], "chat", gone[1], "chat", gone[2], "chat"]


async def test_a_settings_file_that_is_written_changes_what_is_watched(tmp_path: Path) -> None:
    chat, file = build(tmp_path / "chat"), tmp_path / "config" / "opentabs.toml"

    class Follower(Reader):
        async def __call__(self) -> None:
            self.sources = Sources([chat] if file.is_file() else [], files=[file])
            await super().__call__()

    reader = Follower()
    reader.sources = Sources(files=[file])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_plugins, lambda: reader.sources, reader)
        await reader.wait_for("")
        file.parent.mkdir()
        file.write_text("")
        await reader.wait_for("/* adapter */")
        write(chat, "1")
        await reader.wait_for("1")
        file.unlink()
        await reader.wait_for("")
        tasks.cancel_scope.cancel()


async def test_a_write_while_the_last_is_being_read_is_reported(tmp_path: Path) -> None:
    chat = build(tmp_path / "chat")

    class SlowReader(Reader):
        async def __call__(self) -> None:
            await super().__call__()
            if self.read[-1] == "1":
                write(chat, "2")

    reader = SlowReader(chat)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_plugins, lambda: Sources([chat]), reader)
        with anyio.fail_after(PATIENT):
            await reader._told.wait()
        write(chat, "1")
        await reader.wait_for("2")
        tasks.cancel_scope.cancel()
    assert reader.read[:2] == ["/* adapter */", "1"]


async def test_a_change_without_a_notification_is_found_by_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoWatch:
        def __init__(self, *_args: object, **_options: object) -> None:
            self.aclose = anyio.lowlevel.checkpoint

        def __aiter__(self) -> "NoWatch":
            return self

        async def __anext__(self) -> set[object]:
            raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watch, "awatch", NoWatch)
    chat = build(tmp_path / "chat")
    async with watching(chat) as reader:
        write(chat, "1, and longer than before")
        await reader.wait_for("1, and longer than before")


async def test_changes_outside_the_plugin_s_output_are_not_reported(tmp_path: Path) -> None:
    chat = build(tmp_path / "chat")
    (chat / "src").mkdir()
    async with watching(chat) as reader:
        (chat / "src" / "index.ts").write_text("x")
        (chat / "README.md").write_text("x")
        write(chat, "1")
        await reader.wait_for("1")
    assert set(reader.read) == {"/* adapter */", "1"}
    assert len(reader.read) <= 3  # a write may be noticed in two parts


async def test_a_name_that_is_not_utf_8_does_not_end_the_watch(tmp_path: Path) -> None:
    plugin = build(tmp_path / "chat")
    async with watching(plugin) as reader:
        for number in range(3):
            os.close(os.open(os.fsencode(plugin) + b"/na\xefve-%d" % number, os.O_CREAT))
            write(plugin, str(number))
            await reader.wait_for(str(number))


async def test_a_plugin_in_a_directory_whose_name_is_not_utf_8_is_watched(tmp_path: Path) -> None:
    plugin = build(Path(os.fsdecode(os.fsencode(tmp_path) + b"/na\xefve")))
    async with watching(plugin) as reader:
        write(plugin, "1")
        await reader.wait_for("1")


async def test_a_build_that_removes_directories_does_not_end_the_watch(tmp_path: Path) -> None:
    plugin = build(tmp_path / "chat")
    chunks, ended = plugin / "dist" / "chunks", threading.Event()

    def rebuild() -> None:
        while not ended.is_set():
            for number in range(30):
                (chunks / str(number) / "deep").mkdir(parents=True)
            shutil.rmtree(chunks)

    async with watching(plugin) as reader, anyio.create_task_group() as builds:
        builds.start_soon(anyio.to_thread.run_sync, rebuild)
        try:
            for _ in range(200):
                await anyio.to_thread.run_sync(watch._state, lambda: reader.sources)
        finally:
            ended.set()
        write(plugin, "1")
        await reader.wait_for("1")


async def test_a_lack_of_open_files_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = build(tmp_path / "chat")
    monkeypatch.setattr(watch, "can_read", lambda _: False)  # not even the root
    async with watching(chat) as reader:
        write(chat, "1")
        await reader.wait_for("1")
