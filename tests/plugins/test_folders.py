"""Where to look for plugins."""

import os
import subprocess
import sys
from errno import EIO, ENOTCONN, ESTALE
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from opentabs_py.plugins.folders import Sources
from opentabs_py.plugins.load import load_plugins
from tests.plugins.test_load import build
from tests.waiting import PATIENT


def run_without_root(script: str) -> "subprocess.CompletedProcess[str]":
    """Run Python; if we are root, without its right to read everything."""
    restrict = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    return subprocess.run(
        [*(restrict if os.geteuid() == 0 else []), sys.executable, "-c", dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENT,
    )


def test_each_subfolder_of_a_folder_that_is_a_plugin_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    b, a = build(folder / "b"), build(folder / "a")
    (folder / "notes").mkdir()
    (folder / "c.txt").write_text("")
    build(folder / ".hidden")
    named, missing = build(tmp_path / "named"), tmp_path / "missing"
    sources = Sources([named, missing], [folder, tmp_path / "no such folder"])
    assert sources.plugins() == [named, missing, a, b]
    assert sources.candidates() == [named, missing, a, b, folder / "notes"]


def test_a_folder_or_plugin_that_cannot_be_read_is_skipped_with_the_reason(tmp_path: Path) -> None:
    chat = build(tmp_path / "plugins" / "chat")
    build(tmp_path / "plugins" / "notes", name="notes")
    (tmp_path / "plugins" / "a.txt").write_text("")
    script = f"""
        import os
        from pathlib import Path
        from opentabs_py.plugins.folders import Sources
        from opentabs_py.plugins.load import load_plugins

        folder, chat = Path({str(chat.parent)!r}), Path({str(chat)!r})
        package = chat / "package.json"
        for place, mode in [
            (chat, 0), (chat, 0o444), (folder, 0o444), (folder, 0o111), (package, 0)
        ]:
            place.chmod(mode)
            plugins, skipped = load_plugins(Sources(folders=[folder]).plugins())
            print([each.manifest.name for each in plugins], *(each.reason for each in skipped))
            place.chmod(0o755)
    """
    run = run_without_root(script)
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        *[f"['notes'] Cannot read {chat}: Permission denied."] * 2,
        *[f"[] Cannot read {chat.parent}: Permission denied."] * 2,
        f"['notes'] Cannot read {chat / 'package.json'}: Permission denied.",
    ]


@pytest.mark.parametrize("error", [EIO, ESTALE, ENOTCONN])
def test_a_dead_mount_is_skipped_with_the_reason(
    error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = build(tmp_path / "plugins" / "chat")
    dead = tmp_path / "plugins" / "dead"
    dead.mkdir()

    def refuse(real: Any, path: Any, *arguments: Any, **options: Any) -> Any:
        if str(path).startswith(str(dead)):
            raise OSError(error, os.strerror(error), str(path))
        return real(path, *arguments, **options)

    for name in ("stat", "open", "scandir"):
        monkeypatch.setattr(os, name, partial(refuse, getattr(os, name)))

    sources = Sources(folders=[dead.parent])
    plugins, [skipped] = load_plugins(sources.plugins())
    assert [each.directory for each in plugins] == [chat]
    assert skipped.reason == f"Cannot read {dead}: {os.strerror(error)}."
    assert sources.candidates() == [chat, dead]


def test_a_built_plugin_with_a_broken_package_json_is_reported(tmp_path: Path) -> None:
    plugin = build(tmp_path / "plugins" / "a")
    (plugin / "package.json").write_text("{")
    sources = Sources(folders=[tmp_path / "plugins"])

    _, [skipped] = load_plugins(sources.plugins())

    assert skipped.directory == plugin
    assert "package.json: is not JSON" in skipped.reason
