"""Loading built plugins: a broken one does not affect the others."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from opentabs_py.core.plugins.settings import Typed
from opentabs_py.errors import ConfigError, PluginError
from opentabs_py.plugins.load import (
    future_sites,
    is_plugin,
    load_plugin,
    load_plugins,
    playground,
    refuse_unknown_plugins,
)
from opentabs_py.plugins.plugin import compare_plugins, reasons
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
    assert plugin.adapter.read() == b"/* adapter */"


@pytest.mark.parametrize("change", [Path.unlink, lambda file: file.write_bytes(b"/* adaptor */")])
def test_a_script_that_changed_since_it_was_loaded_is_refused(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    plugin = load_plugin(build(tmp_path / "chat"))
    change(tmp_path / "chat" / "dist" / "adapter.iife.js")
    with pytest.raises(PluginError, match=r"iife\.js has changed since the plugin was loaded"):
        plugin.adapter.read()


def test_a_source_map_that_changed_since_it_was_loaded_is_not_used(tmp_path: Path) -> None:
    build(tmp_path / "chat")
    file = tmp_path / "chat" / "dist" / "adapter.iife.js.map"
    file.write_bytes(b"{}")
    source_map = load_plugin(tmp_path / "chat").source_map
    assert source_map is not None
    assert source_map.read() == b"{}"
    file.write_bytes(b"{ }")
    assert source_map.read() is None


def later() -> int:
    """Return a time long after everything was written."""
    return time.time_ns() + 60_000_000_000


def test_a_plugin_whose_files_are_unchanged_is_not_read_again(tmp_path: Path) -> None:
    [first], _ = load_plugins([build(tmp_path / "chat")], now=later)
    [again], _ = load_plugins([tmp_path / "chat"], served=[first])
    assert again.parsed is first.parsed


def test_a_plugin_built_just_before_it_was_read_is_read_again(tmp_path: Path) -> None:
    [first], _ = load_plugins([build(tmp_path / "chat")])
    [again], _ = load_plugins([tmp_path / "chat"], served=[first])
    assert again.parsed is not first.parsed
    assert again == first


def test_a_plugin_whose_old_time_was_set_just_before_it_was_read_is_read_again(
    tmp_path: Path,
) -> None:
    rewrite(build(tmp_path / "chat") / "package.json", package_json("chat").encode(), at=1)
    [first], _ = load_plugins([tmp_path / "chat"])
    [again], _ = load_plugins([tmp_path / "chat"], served=[first])
    assert again.parsed is not first.parsed


def rewrite(file: Path, content: bytes, *, at: int) -> None:
    """Write a file and set its time, in seconds."""
    file.write_bytes(content)
    os.utime(file, (at, at))


def test_a_plugin_that_changed_keeping_its_size_and_time_is_read_again(tmp_path: Path) -> None:
    adapter = build(tmp_path / "chat") / "dist" / "adapter.iife.js"
    rewrite(adapter, b"/* adapter */", at=1)
    [first], _ = load_plugins([tmp_path / "chat"], now=later)
    rewrite(adapter, b"/* adaptor */", at=1)
    [again], _ = load_plugins([tmp_path / "chat"], served=[first])
    assert again.adapter.read() == b"/* adaptor */"


def test_a_plugin_that_is_not_read_again_gets_its_new_settings(tmp_path: Path) -> None:
    with_settings(build(tmp_path / "chat"), site={"type": "url"})
    [first], _ = load_plugins(
        [tmp_path / "chat"], {"chat": {"site": "https://a.example/"}}, now=later
    )
    [again], _ = load_plugins(
        [tmp_path / "chat"], {"chat": {"site": "https://b.example/"}}, served=[first]
    )
    assert again.parsed is first.parsed
    assert again.manifest.url_patterns == ("https://chat.example/*", "https://b.example/*")


@pytest.mark.parametrize(
    ("missing", "advice"),
    [
        ("package.json", "Name a plugin's directory, or create a plugin: opentabs new NAME"),
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
    with pytest.raises(PluginError, match=r"tools\.json is not a regular file"):
        load_plugin(directory)


def test_a_path_that_is_not_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="is not a directory"):
        load_plugin(tmp_path / "nowhere")


def test_an_invalid_manifest_is_reported_with_its_directory(tmp_path: Path) -> None:
    directory = build(tmp_path / "chat")
    (directory / "package.json").write_text("{")
    with pytest.raises(PluginError) as caught:
        load_plugin(directory)
    assert str(caught.value).startswith(f"{directory}: ")


@pytest.mark.parametrize(
    ("name", "reason"), [("broken", "is not a directory"), ("x" * 256, "File name too long")]
)
def test_a_broken_plugin_is_skipped_and_the_others_are_loaded(
    tmp_path: Path, name: str, reason: str
) -> None:
    good, broken = build(tmp_path / "good"), tmp_path / name
    plugins, skipped = load_plugins([broken, good])
    assert [plugin.directory for plugin in plugins] == [good]
    assert [(each.directory, reason in each.reason) for each in skipped] == [(broken, True)]


def test_an_exponential_schema_skips_its_plugin_alone(tmp_path: Path) -> None:
    defs: Json = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(34)}
    schema = {"type": "object", "$ref": "#/$defs/a0", "$defs": {**defs, "a34": {}}}
    good = build(tmp_path / "good", name="good")
    plugins, [skipped] = load_plugins(
        [build(tmp_path / "bad", a_tool("send", input_schema=schema)), good]
    )
    assert [plugin.directory for plugin in plugins] == [good]
    assert "tools[0].input_schema: would be applied 68,719,476,734 times" in skipped.reason


def test_two_plugins_of_one_name_are_both_skipped_for_one_reason(tmp_path: Path) -> None:
    one, two, other = build(tmp_path / "1"), build(tmp_path / "2"), build(tmp_path / "3", name="x")
    plugins, skipped = load_plugins([one, two, other])
    assert [plugin.directory for plugin in plugins] == [other]
    assert [each.directory for each in skipped] == [one, two]
    assert reasons(skipped) == [
        f"Several plugins are named 'chat': {one} and {two}. Load only one."
    ]


def test_a_plugin_in_service_stays_when_another_takes_its_name(tmp_path: Path) -> None:
    one, two = build(tmp_path / "2"), build(tmp_path / "1")
    before, _ = load_plugins([one])
    plugins, [skipped] = load_plugins([two, one], served=before)
    again, _ = load_plugins([two, one], served=plugins)
    assert [each.directory for each in plugins] == [each.directory for each in again] == [one]
    assert skipped.directory == two
    assert f"{two} and {one}. Load only one" in skipped.reason


def test_two_tools_of_one_name_are_both_refused_and_the_rest_is_served(tmp_path: Path) -> None:
    one = build(tmp_path / "1", a_tool("b_send"), a_tool("read"), name="a")
    two = build(tmp_path / "2", a_tool("send"), a_tool("read"), name="a-b")
    plugins, skipped = load_plugins([one, two])
    served = {p.manifest.name: [tool.name for tool in p.manifest.tools] for p in plugins}
    assert served == {"a": ["read"], "a-b": ["read"]}
    assert [each.directory for each in skipped] == [one, two]
    for each in skipped:
        assert "a_b_send" in each.reason
        assert "'b_send' of 'a'" in each.reason
        assert "'send' of 'a-b'" in each.reason


def test_a_tool_that_would_have_the_name_of_our_own_is_refused_and_the_rest_is_served(
    tmp_path: Path,
) -> None:
    directory = build(tmp_path / "1", a_tool("list"), a_tool("read"), name="tabs")
    [plugin], [skipped] = load_plugins([directory])
    assert [tool.name for tool in plugin.manifest.tools] == ["read"]
    assert "named tabs_list: 'tabs_list' of 'opentabs' and 'list' of 'tabs'" in skipped.reason


# --- pre-scripts ---


def with_pre_script(directory: Path) -> Path:
    tools = {"tools": [], "preScriptFile": "pre/script.js"}
    (directory / "dist" / "tools.json").write_text(json.dumps(tools))
    return directory


def test_a_pre_script_is_read_from_dist(tmp_path: Path) -> None:
    directory = with_pre_script(build(tmp_path / "chat"))
    (directory / "dist" / "pre").mkdir()
    (directory / "dist" / "pre" / "script.js").write_bytes(b"/* early */")
    pre_script = load_plugin(directory).pre_script
    assert pre_script is not None
    assert pre_script.read() == b"/* early */"


def test_a_missing_pre_script_is_reported_with_the_file_that_names_it(tmp_path: Path) -> None:
    directory = with_pre_script(build(tmp_path / "chat"))
    with pytest.raises(PluginError) as caught:
        load_plugin(directory)
    assert str(caught.value) == (
        f"{directory} has no dist/pre/script.js. tools.json names it as preScriptFile. Build "
        "the plugin again."
    )


# --- settings ---


def with_settings(directory: Path, **schema: Json) -> Path:
    package = json.loads((directory / "package.json").read_text())
    package["opentabs"]["configSchema"] = schema
    (directory / "package.json").write_text(json.dumps(package))
    return directory


def test_settings_come_with_the_plugin_and_a_url_adds_its_pattern(tmp_path: Path) -> None:
    chat = with_settings(
        build(tmp_path / "chat"), site={"type": "url"}, size={"type": "number", "default": 3}
    )
    other = build(tmp_path / "other", name="other")
    given = {"chat": {"site": "https://my.example/app"}}

    plugins, skipped = load_plugins([chat, other], given)

    assert skipped == []
    assert plugins[0].config == {"site": "https://my.example/app", "size": 3}
    assert plugins[0].manifest.url_patterns == ("https://chat.example/*", "https://my.example/*")
    assert plugins[1].config == {}
    assert plugins[1].manifest.url_patterns == ("https://other.example/*",)


def test_a_plugin_whose_settings_are_wrong_is_skipped_and_the_others_are_loaded(
    tmp_path: Path,
) -> None:
    chat = with_settings(build(tmp_path / "chat"), site={"type": "url", "required": True})
    other = build(tmp_path / "other", name="other")

    plugins, [skipped] = load_plugins([chat, other])

    assert [plugin.manifest.name for plugin in plugins] == ["other"]
    assert (skipped.directory, skipped.plugin) == (chat, "chat")
    assert skipped.reason.startswith(f"{chat}: The settings of the plugin 'chat' are not valid")
    assert "chat.site is missing" in skipped.reason
    assert load_plugin(chat).manifest.name == "chat"  # to read it, no settings are needed


def test_settings_of_no_plugin_are_an_error_where_they_were_typed(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    loaded = load_plugins([build(tmp_path / "chat"), broken])
    with pytest.raises(ConfigError) as caught:
        refuse_unknown_plugins({"chta": {"a": Typed("1")}, "x": {"a": Typed("1")}}, *loaded)
    assert str(caught.value) == (
        "--set names a plugin that is not loaded: 'chta' (did you mean 'chat'?), 'x'. "
        f"Loaded plugins: chat.\nSkipped: {broken} is not a directory. Name the plugin's own "
        "directory."
    )
    with pytest.raises(ConfigError, match=r"No plugins are loaded\."):
        refuse_unknown_plugins({"chta": {"a": Typed("1")}}, [], [])


def test_settings_of_no_plugin_are_warned_of_where_they_were_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = load_plugins([build(tmp_path / "chat")])
    refuse_unknown_plugins({"chta": {"a": "1"}, "chat": {}}, *loaded)
    [record] = caplog.records
    assert "plugins that are not loaded: 'chta' (did you mean 'chat'?)" in record.getMessage()


def test_a_plugin_skipped_for_its_settings_still_counts_as_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"chat": {"no_such": Typed("1")}}
    loaded = load_plugins([build(tmp_path / "chat")], given)
    assert loaded[0] == []
    refuse_unknown_plugins(given, *loaded)
    assert caplog.records == []


def test_a_plugin_whose_tool_has_an_argument_instance_cannot_have_several(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"instance": {"type": "string"}}}
    directory = build(tmp_path / "chat", a_tool("send", input_schema=schema))
    package = json.loads((directory / "package.json").read_text())
    package["opentabs"]["configSchema"] = {"site": {"type": "url"}}
    (directory / "package.json").write_text(json.dumps(package))
    urls = {"work": "https://w.example", "home": "https://h.example"}
    assert load_plugins([directory], {"chat": {"site": "https://w.example"}})[1] == []
    plugins, [skipped] = load_plugins([directory], {"chat": {"site": urls}})
    assert plugins == []
    assert "its tool 'send' has its own argument 'instance'. Set only one URL" in skipped.reason


# --- reloading ---


def test_a_plugin_that_breaks_is_served_as_it_was(tmp_path: Path) -> None:
    directory = build(tmp_path / "chat")
    before = load_plugins([directory])
    (directory / "dist" / "tools.json").write_text("{")

    after = load_plugins([directory], served=before[0])

    assert after[0] == before[0]
    assert [each.directory for each in after[1]] == [directory]
    changes = compare_plugins(before, after)
    assert (changes.added, changes.removed, changes.changed) == ((), (), ())
    assert changes.skipped == tuple(after[1])
    again = load_plugins([directory], served=after[0])
    assert compare_plugins(after, again).skipped == ()


def test_a_plugin_without_its_directory_is_removed(tmp_path: Path) -> None:
    directory = build(tmp_path / "chat")
    before = load_plugins([directory])
    shutil.rmtree(directory)
    after = load_plugins([directory], served=before[0])
    assert after[0] == []
    assert compare_plugins(before, after).removed == ("chat",)


def test_differences_between_two_loads_are_reported_by_name(tmp_path: Path) -> None:
    same, changed, renamed = (build(tmp_path / name, name=name) for name in ("a", "b", "c"))
    before = load_plugins([same, changed, renamed])
    (changed / "dist" / "adapter.iife.js").write_bytes(b"/* another */")
    (renamed / "package.json").write_text(package_json("d"))
    after = load_plugins([same, changed, renamed], served=before[0])
    changes = compare_plugins(before, after)
    assert (changes.added, changes.removed, changes.changed) == (("d",), ("c",), ("b",))
    assert changes.skipped == ()


def test_the_sites_of_plugins_that_are_not_built_are_known(tmp_path: Path) -> None:
    unbuilt = build(tmp_path / "chat")
    shutil.rmtree(unbuilt / "dist")
    _, skipped = load_plugins([unbuilt, tmp_path / "nowhere"])
    assert len(skipped) == 2
    assert future_sites(skipped, {}) == ["https://chat.example/*"]


# --- nothing but the plugin's own files ---


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A healthy plugin, to load along with a hostile one."""
    return build(tmp_path / "beside", name="beside")


FILES = ["package.json", "dist/tools.json", "dist/adapter.iife.js", "dist/pre/script.js"]


def with_all_files(directory: Path) -> Path:
    with_pre_script(build(directory))
    (directory / "dist" / "pre").mkdir()
    (directory / "dist" / "pre" / "script.js").write_bytes(b"")
    return directory


@pytest.mark.parametrize("name", [*FILES, "dist/adapter.iife.js.map"])
@pytest.mark.parametrize("kind", ["link out", "link to a device", "fifo", "directory", "circle"])
def test_what_is_not_a_file_of_the_plugins_skips_it_alone(
    tmp_path: Path, beside: Path, name: str, kind: str
) -> None:
    directory = with_all_files(tmp_path / "hostile")
    secret = tmp_path / "id_rsa"
    secret.write_bytes((directory / name).read_bytes() if (directory / name).exists() else b"")
    (directory / name).unlink(missing_ok=True)
    match kind:
        case "link out":
            (directory / name).symlink_to(secret)
        case "link to a device":
            (directory / name).symlink_to("/dev/zero")
        case "fifo":
            os.mkfifo(directory / name)
        case "directory":
            (directory / name).mkdir()
        case "circle":
            (directory / name).symlink_to(directory / name)
    plugins, skipped = load_plugins([directory, beside])
    assert [plugin.directory for plugin in plugins] == [beside]
    [reason] = [each.reason for each in skipped]
    assert name in reason
    assert is_plugin(directory) == (name != "package.json")


def test_a_dist_that_is_a_link_out_of_the_plugin_is_refused(tmp_path: Path) -> None:
    directory, other = with_all_files(tmp_path / "one"), with_all_files(tmp_path / "other")
    shutil.rmtree(directory / "dist")
    (directory / "dist").symlink_to(other / "dist")
    with pytest.raises(PluginError, match=r"tools\.json is a link out of the plugin, to .*dist"):
        load_plugin(directory)


def test_links_within_a_plugin_and_to_it_are_followed(tmp_path: Path) -> None:
    directory = with_all_files(tmp_path / "real")
    (directory / "dist").rename(directory / "build")
    (directory / "dist").symlink_to("build")
    (tmp_path / "linked").symlink_to(directory)
    assert load_plugin(tmp_path / "linked").manifest.name == "chat"


def test_a_file_over_the_limit_is_refused_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = build(tmp_path / "chat")
    monkeypatch.setattr("opentabs_py.plugins.load.LONGEST_SCRIPT", 10)
    with pytest.raises(PluginError, match=r"adapter\.iife\.js is larger than the limit of 10"):
        load_plugin(directory)


def test_a_playground_that_is_a_link_out_of_the_plugin_is_not_served(tmp_path: Path) -> None:
    directory = build(tmp_path / "chat")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "index.html").write_text("secret")
    (directory / "playground").symlink_to(tmp_path / "private")
    assert playground(directory) is None
