"""Where plugins are looked for."""

from pathlib import Path

from opentabs_py.plugins.sources import Sources
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
