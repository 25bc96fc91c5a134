"""Loading built plugins: a broken one keeps nobody else out."""

from pathlib import Path

import pytest

from opentabs_py.errors import PluginError
from opentabs_py.plugins.load import load_plugin, load_plugins
from tests.fakes import Json, a_tool, package_json, tools_json


def build(directory: Path, *tools: Json, name: str = "chat") -> Path:
    """Write a built plugin."""
    (directory / "dist").mkdir(parents=True)
    (directory / "package.json").write_text(package_json(name))
    (directory / "dist" / "tools.json").write_text(tools_json(*(tools or [a_tool("send")])))
    (directory / "dist" / "adapter.iife.js").write_bytes(b"/* adapter */")
    return directory


def test_a_built_plugin_is_read_with_its_adapter(tmp_path: Path) -> None:
    plugin = load_plugin(build(tmp_path / "chat"))
    assert plugin.manifest.name == "chat"
    assert [tool.name for tool in plugin.manifest.tools] == ["send"]
    assert plugin.adapter == b"/* adapter */"


@pytest.mark.parametrize(
    ("missing", "advice"),
    [
        ("package.json", "Is it a plugin?"),
        ("dist/tools.json", "Build the plugin first."),
        ("dist/adapter.iife.js", "Build the plugin first."),
    ],
)
def test_a_file_that_is_missing_is_named_with_what_to_do(
    tmp_path: Path, missing: str, advice: str
) -> None:
    directory = build(tmp_path / "chat")
    (directory / missing).unlink()
    with pytest.raises(PluginError) as caught:
        load_plugin(directory)
    assert str(caught.value) == f"{directory} has no {missing}. {advice}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    directory = build(tmp_path / "chat")
    (directory / "dist" / "tools.json").unlink()
    (directory / "dist" / "tools.json").mkdir()
    with pytest.raises(PluginError, match=r"tools\.json cannot be read: Is a directory"):
        load_plugin(directory)


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="is not a directory"):
        load_plugin(tmp_path / "nowhere")


def test_a_faulty_manifest_is_told_with_its_directory(tmp_path: Path) -> None:
    directory = build(tmp_path / "chat")
    (directory / "package.json").write_text("{")
    with pytest.raises(PluginError) as caught:
        load_plugin(directory)
    assert str(caught.value).startswith(f"{directory}: ")


def test_a_broken_plugin_is_quarantined_and_the_others_are_loaded(tmp_path: Path) -> None:
    good, broken = build(tmp_path / "good"), tmp_path / "broken"
    plugins, quarantined = load_plugins([broken, good])
    assert [plugin.directory for plugin in plugins] == [good]
    assert [(each.directory, "not a directory" in each.reason) for each in quarantined] == [
        (broken, True)
    ]


def test_two_plugins_of_one_name_are_both_quarantined_and_name_each_other(tmp_path: Path) -> None:
    one, two, other = build(tmp_path / "1"), build(tmp_path / "2"), build(tmp_path / "3", name="x")
    plugins, quarantined = load_plugins([one, two, other])
    assert [plugin.directory for plugin in plugins] == [other]
    assert [each.directory for each in quarantined] == [one, two]
    assert str(two) in quarantined[0].reason
    assert str(one) in quarantined[1].reason
    assert "Load only one" in quarantined[0].reason


def test_two_tools_of_one_name_are_both_refused_and_the_rest_is_served(tmp_path: Path) -> None:
    one = build(tmp_path / "1", a_tool("b_send"), a_tool("read"), name="a")
    two = build(tmp_path / "2", a_tool("send"), a_tool("read"), name="a-b")
    plugins, quarantined = load_plugins([one, two])
    served = {p.manifest.name: [tool.name for tool in p.manifest.tools] for p in plugins}
    assert served == {"a": ["read"], "a-b": ["read"]}
    assert [each.directory for each in quarantined] == [one, two]
    for each in quarantined:
        assert "a_b_send" in each.reason
        assert "'b_send' of 'a'" in each.reason
        assert "'send' of 'a-b'" in each.reason
