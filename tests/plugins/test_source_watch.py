"""Watching the sources of a plugin."""

import os
from pathlib import Path

import anyio
import pytest

from opentabs_py.plugins.source_watch import SourceChanges, watch_source

pytestmark = pytest.mark.anyio


async def test_changes_of_source_files_are_reported_and_others_are_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "dist").mkdir()
    with anyio.fail_after(20):
        async with watch_source(tmp_path) as changes:
            (tmp_path / "dist" / "adapter.iife.js").write_text("built")
            os.utime(tmp_path)  # the directory itself
            (tmp_path / "src" / "index.ts").write_text("written")

            assert await changes.next() == [str(Path("src", "index.ts"))]


async def test_changes_that_arrive_while_nobody_asks_are_reported_together() -> None:
    changes = SourceChanges()
    changes.add(["b"])
    changes.add(["a", "b"])

    with anyio.fail_after(5):
        assert await changes.next() == ["a", "b"]

    with anyio.move_on_after(0) as scope:
        await changes.next()
    assert scope.cancelled_caught  # reported once
