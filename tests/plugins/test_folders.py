"""Where to look for plugins."""

from pathlib import Path

from opentabs_py.plugins.folders import Sources
from opentabs_py.plugins.load import load_plugins
from tests.plugins.test_load import build


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


def test_a_built_plugin_with_a_broken_package_json_is_reported(tmp_path: Path) -> None:
    plugin = build(tmp_path / "plugins" / "a")
    (plugin / "package.json").write_text("{")
    sources = Sources(folders=[tmp_path / "plugins"])

    _, [skipped] = load_plugins(sources.plugins())

    assert skipped.directory == plugin
    assert "package.json: is not JSON" in skipped.reason
