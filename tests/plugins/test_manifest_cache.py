"""Manifests are cached between runs; a damaged cache is only a miss."""

import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from opentabs_py.core.plugins.manifest import PluginManifest
from opentabs_py.core.plugins.manifest_files import parse_plugin
from opentabs_py.plugins import manifest_cache
from opentabs_py.plugins.manifest_cache import ManifestCache
from tests.fakes import a_tool, package_json, tools_json
from tests.waiting import PATIENT

PACKAGE, TOOLS = package_json().encode(), tools_json(a_tool("send"), a_tool("read")).encode()
DAY = 24 * 3600.0
MANIFEST = parse_plugin(PACKAGE, TOOLS)


def at(file: Path, *, day: int = 0, version: str = "1", **options: int) -> ManifestCache:
    return ManifestCache(file, version=version, now=lambda: day * DAY, **options)


def filled(file: Path) -> Path:
    with at(file) as cache:
        cache.add(PACKAGE, TOOLS, MANIFEST)
    return file


def found(file: Path) -> PluginManifest | None:
    with at(file) as cache:
        return cache.find(PACKAGE, TOOLS)


def test_what_was_added_is_found_by_a_later_run(tmp_path: Path) -> None:
    assert found(filled(tmp_path / "cache" / "manifests.sqlite")) == MANIFEST


@pytest.mark.parametrize(
    ("package", "tools"), [(PACKAGE + b" ", TOOLS), (PACKAGE, TOOLS + b" "), (TOOLS, PACKAGE)]
)
def test_files_with_another_content_are_not_found(
    tmp_path: Path, package: bytes, tools: bytes
) -> None:
    with at(filled(tmp_path / "manifests.sqlite")) as cache:
        assert cache.find(package, tools) is None


def write_garbage(file: Path) -> None:
    file.write_bytes(b"garbage" * 1000)


def cut_in_half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def change_a_manifest(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE entries SET content = replace(content, 'send', 'sent')")


def store_something_else(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DROP TABLE entries")
        db.execute("CREATE TABLE entries (key BLOB)")


def replace_by_a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        write_garbage,
        cut_in_half,
        change_a_manifest,
        store_something_else,
        replace_by_a_directory,
    ],
)
def test_a_broken_cache_is_a_miss(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    file = filled(tmp_path / "manifests.sqlite")
    spoil(file)
    assert found(file) is None


@pytest.mark.parametrize("spoil", [write_garbage, cut_in_half, change_a_manifest])
def test_a_broken_cache_is_usable_again_after_a_run(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    file = filled(tmp_path / "manifests.sqlite")
    spoil(file)
    found(file)
    assert found(filled(file)) == MANIFEST


def test_a_directory_that_cannot_be_created_is_a_miss(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert found(filled(tmp_path / "file" / "manifests.sqlite")) is None


def test_the_least_recently_used_manifests_make_room(tmp_path: Path) -> None:
    file = tmp_path / "manifests.sqlite"
    packages = [package_json(name).encode() for name in ("one", "two", "six", "ten")]
    manifests = [parse_plugin(package, TOOLS) for package in packages]
    for day in range(3):
        with at(file, day=day) as cache:
            cache.add(packages[day], TOOLS, manifests[day])
    with at(file, day=4) as cache:
        assert cache.find(packages[0], TOOLS) is not None
    with closing(sqlite3.connect(file)) as db:
        [size] = db.execute("SELECT max(length(content)) FROM entries").fetchone()
    with at(file, day=5, most_bytes=3 * size) as cache:
        cache.add(packages[3], TOOLS, manifests[3])
    with at(file) as cache:
        kept = [cache.find(package, TOOLS) is not None for package in packages]
    assert kept == [True, False, True, True]


def test_another_version_of_this_package_does_not_use_it(tmp_path: Path) -> None:
    with at(filled(tmp_path / "manifests.sqlite"), version="2") as cache:
        assert cache.find(PACKAGE, TOOLS) is None


def add_many(file: Path, first: int) -> None:
    with patch.object(manifest_cache, "_WAIT", PATIENT):  # on a busy machine, others write longer
        for number in range(first, first + 10):
            with at(file) as cache:
                package = package_json(f"n{number}").encode()
                cache.add(package, TOOLS, parse_plugin(package, TOOLS))


def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "manifests.sqlite"
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=add_many, args=(file, 10 * n)) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    with at(file) as cache:
        missing = [
            n for n in range(20) if cache.find(package_json(f"n{n}").encode(), TOOLS) is None
        ]
    assert missing == []
