"""Plugins that a later run finds in the cache: no file is read, and every change is noticed."""

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from opentabs_py.core.plugins.manifest import PluginManifest
from opentabs_py.errors import PluginError
from opentabs_py.plugins.load import load_plugins
from opentabs_py.plugins.manifest_cache import ManifestCache
from opentabs_py.plugins.plugin import Plugin
from tests.fakes import a_tool, package_json, tools_json

ADAPTER, PRE_SCRIPT = "dist/adapter.iife.js", "dist/pre/script.js"
SOURCE_MAP = f"{ADAPTER}.map"
FILES = ["package.json", "dist/tools.json", ADAPTER, SOURCE_MAP, PRE_SCRIPT]


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin with every file that one can have."""
    directory = tmp_path / "chat"
    (directory / "dist" / "pre").mkdir(parents=True)
    (directory / "package.json").write_text(package_json("chat"))
    tools = {**json.loads(tools_json(a_tool("send"))), "preScriptFile": "pre/script.js"}
    (directory / "dist" / "tools.json").write_text(json.dumps(tools))
    (directory / ADAPTER).write_text("/* adapter */")
    (directory / SOURCE_MAP).write_text("{}")
    (directory / PRE_SCRIPT).write_text("/* early */")
    for name in FILES:
        os.utime(directory / name, (1, 1))
    return directory


def later() -> int:
    """Return a time long after everything was written."""
    return time.time_ns() + 60_000_000_000


class Run(ManifestCache):
    """The cache of one run; it records whether a plugin's files were read.

    Attributes:
        has_read: Whether their content was requested.
    """

    has_read = False

    def find(self, package_json: bytes, tools_json: bytes) -> PluginManifest | None:
        self.has_read = True
        return super().find(package_json, tools_json)


def load(
    directory: Path, *, version: str = "1", now: Callable[[], int] = later
) -> tuple[Plugin, bool]:
    """Load a plugin as a new process does; also return whether its files were read."""
    cache = Run(directory.parent / "cache.sqlite", version=version)
    plugins, skipped = load_plugins([directory], cache=cache, now=now)
    for each in skipped:
        raise PluginError(each.reason)
    return plugins[0], cache.has_read


def test_a_plugin_that_has_not_changed_is_found_without_reading_its_files(plugin: Path) -> None:
    first, _ = load(plugin)
    assert load(plugin) == (first, False)


def test_a_plugin_found_in_the_cache_has_its_scripts_and_its_source_map(plugin: Path) -> None:
    load(plugin)
    found, _ = load(plugin)
    assert found.pre_script is not None
    assert found.source_map is not None
    assert found.adapter.read() == b"/* adapter */"
    assert found.pre_script.read() == b"/* early */"
    assert found.source_map.read() == b"{}"


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_written_again_with_its_size_and_time_is_read(
    plugin: Path, name: str
) -> None:
    load(plugin)
    content = (plugin / name).read_bytes()
    (plugin / name).write_bytes(content)
    os.utime(plugin / name, (1, 1))
    assert load(plugin)[1]


def test_a_tool_that_changed_keeping_its_files_size_and_time_is_noticed(plugin: Path) -> None:
    load(plugin)
    file = plugin / "dist" / "tools.json"
    file.write_text(file.read_text().replace('"send"', '"sent"'))
    os.utime(file, (1, 1))
    assert [tool.name for tool in load(plugin)[0].manifest.tools] == ["sent"]


def test_a_script_that_changes_after_it_was_found_in_the_cache_is_refused(plugin: Path) -> None:
    load(plugin)
    found, _ = load(plugin)
    (plugin / ADAPTER).write_text("/* adaptor */")
    with pytest.raises(PluginError, match="has changed since the plugin was loaded"):
        found.adapter.read()


@pytest.mark.parametrize("name", ["package.json", "dist/tools.json", ADAPTER])
def test_a_file_that_is_gone_is_missed(plugin: Path, name: str) -> None:
    load(plugin)
    (plugin / name).unlink()
    with pytest.raises(PluginError, match=f"has no {name}"):
        load(plugin)


def test_a_source_map_that_came_later_is_found(plugin: Path) -> None:
    (plugin / SOURCE_MAP).unlink()
    assert load(plugin)[0].source_map is None
    (plugin / SOURCE_MAP).write_text("{}")
    assert load(plugin)[0].source_map is not None


@pytest.mark.parametrize("name", ["dist", *FILES])
def test_a_file_that_was_moved_out_of_the_plugin_and_linked_is_refused(
    plugin: Path, name: str
) -> None:
    load(plugin)
    outside = plugin.parent / "outside"
    (plugin / name).rename(outside)  # a folder's files then keep their timestamps
    (plugin / name).symlink_to(outside)
    with pytest.raises(PluginError, match="is a link out of the plugin"):
        load(plugin)


def test_another_plugin_in_the_same_place_is_read(plugin: Path) -> None:
    load(plugin)
    shutil.move(plugin, plugin.parent / "before")
    shutil.copytree(plugin.parent / "before", plugin)
    (plugin / "package.json").write_text(package_json("other"))
    assert load(plugin)[0].manifest.name == "other"


def test_a_plugin_written_just_before_it_was_read_is_read_by_the_next_run(plugin: Path) -> None:
    load(plugin, now=time.time_ns)
    assert load(plugin)[1]


def test_another_version_of_this_package_reads_the_plugin_again(plugin: Path) -> None:
    load(plugin)
    assert load(plugin, version="2")[1]


def change(file: Path, statement: str, of: str) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        assert db.execute(f"{statement} WHERE instr(content, ?)", (of,)).rowcount == 1


def forget_the_manifest(file: Path) -> None:
    change(file, "DELETE FROM entries", of="url_patterns")


def change_the_stamps(file: Path) -> None:
    change(file, "UPDATE entries SET content = replace(content, 'dist/', 'disk/')", of="stamps")


def cut_in_half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.parametrize("spoil", [forget_the_manifest, change_the_stamps, cut_in_half])
def test_a_broken_cache_only_means_that_the_files_are_read(
    plugin: Path, spoil: Callable[[Path], None]
) -> None:
    first, _ = load(plugin)
    spoil(plugin.parent / "cache.sqlite")
    assert load(plugin) == (first, True)
