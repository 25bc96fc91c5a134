"""`opentabs tools` lists and finds tools without a browser."""

import json
import shutil
from pathlib import Path

from opentabs_py.demo import demo_plugin_dir
from tests.cli.in_process import opentabs_here


def test_a_search_lists_only_what_matches_and_the_best_first(tmp_path: Path) -> None:
    options = ["--plugin", str(demo_plugin_dir()), "--json", "--search"]
    found = opentabs_here("tools", *options, "export the messages of a channel", cwd=tmp_path)
    names = [tool["name"] for tool in json.loads(found.stdout)]
    assert names[0] == "demo_export_messages"


def test_a_search_that_finds_nothing_says_so(tmp_path: Path) -> None:
    found = opentabs_here(
        "tools", "--plugin", str(demo_plugin_dir()), "--search", "zebra", cwd=tmp_path
    )
    assert (found.returncode, found.stdout) == (0, "")
    assert "No tool matches" in found.stderr


def test_the_arguments_of_each_tool_are_listed_without_those_that_all_have(tmp_path: Path) -> None:
    listed = opentabs_here("tools", "--plugin", str(demo_plugin_dir()), cwd=tmp_path)
    rows = {line.split()[0]: line.split()[1:] for line in listed.stdout.splitlines()}
    assert rows["tabs_close"][0] == "tabId"
    assert rows["demo_send_message"][:2] == ["channelId,", "text"]
    assert "tabId" not in rows["demo_send_message"]


def test_costs_are_shown_with_the_most_expensive_tool_first_and_a_total(tmp_path: Path) -> None:
    options = ["tools", "--plugin", str(demo_plugin_dir()), "--cost"]
    document = json.loads(opentabs_here(*options, "--json", cwd=tmp_path).stdout)
    totals = [tool["tokens"]["total"] for tool in document["tools"]]
    outputs = [tool["tokens"]["output"] for tool in document["tools"]]
    assert totals == sorted(totals, reverse=True)
    assert document["tokens"]["total"] == sum(totals)
    assert document["tokens"]["withoutOutputSchemas"] == sum(totals) - sum(outputs)

    shown = opentabs_here(*options, cwd=tmp_path).stdout
    assert f"About {sum(totals):,} tokens in all" in shown
    assert shown.splitlines()[1].split() == [
        document["tools"][0]["name"],
        *(f"{document['tools'][0]['tokens'][part]:,}" for part in ("description", "input")),
        *(f"{document['tools'][0]['tokens'][part]:,}" for part in ("output", "total")),
    ]


def test_tools_that_cannot_be_served_together_are_not_listed_together(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from opentabs_py import tool\n@tool\ndef demo_send_message() -> None:\n    'Mine.'\n"
    )
    options = ["--plugin", str(demo_plugin_dir()), "--tools", "mine.py"]
    listed = opentabs_here("tools", *options, cwd=tmp_path)
    assert listed.returncode == 2
    said = " ".join(listed.stderr.split())
    assert "Two tools are named demo_send_message: one from demo, one from mine." in said


def test_a_python_tool_cannot_have_the_name_of_one_of_ours_even_without_a_plugin(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(
        "from opentabs_py import tool\n@tool\ndef tabs_list() -> None:\n    'Mine.'\n"
    )
    listed = opentabs_here("tools", "--tools", "mine.py", cwd=tmp_path)
    assert listed.returncode == 2
    said = " ".join(listed.stderr.split())
    assert "Two tools are named tabs_list: one from opentabs, one from mine." in said


def test_tools_that_are_turned_off_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.opentabs.permissions]\ndefault = "off"\ndemo = "auto"\n"demo.send_message" = "off"\n'
    )
    (tmp_path / "mine.py").write_text("from opentabs_py import tool\n@tool\ndef mine(): 'Mine.'\n")
    options = ["--plugin", str(demo_plugin_dir()), "--tools", "mine.py", "--json"]
    listed = opentabs_here("tools", *options, cwd=tmp_path)
    names = [tool["name"] for tool in json.loads(listed.stdout)]
    assert names == ["demo_export_messages", "demo_list_channels"]


def test_with_hands_their_tools_are_listed_as_a_server_lists_them(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.opentabs]\nhands = true\n")
    listed = opentabs_here("tools", "--json", cwd=tmp_path)
    names = [tool["name"] for tool in json.loads(listed.stdout)]
    assert {"page_snapshot", "page_click", "tabs_list"} < {*names}
    assert names == sorted(names)


def test_with_tools_of_pages_those_about_tabs_are_listed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.opentabs]\nwebmcp = ["https://shop.example/*"]\n'
    )
    listed = opentabs_here("tools", "--json", cwd=tmp_path)
    names = [tool["name"] for tool in json.loads(listed.stdout)]
    assert names == ["tabs_close", "tabs_list", "tabs_open"]


def test_a_permission_that_names_nothing_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.opentabs.permissions]\ndefault = "auto"\ndemo = "ask"\n"notes.add" = "off"\n'
        '"demo.send_mesage" = "off"\n"page--any" = "off"\nzebra = "off"\n'
    )
    (tmp_path / "notes.py").write_text("from opentabs_py import tool\n@tool\ndef add(): 'Add.'\n")
    options = ["--plugin", str(demo_plugin_dir()), "--tools", "notes.py", "--json"]
    listed = opentabs_here("tools", *options, cwd=tmp_path)
    assert listed.returncode == 0
    of_none = "has no effect: no plugin or tool of that name is served"
    misspelt, unlike = listed.stderr.splitlines()
    meant = "did you mean 'demo.send_message' or 'demo.export_messages'?"
    assert misspelt == f'warning: permissions."demo.send_mesage" {of_none}; {meant}'
    assert unlike == f'warning: permissions."zebra" {of_none}'


def test_two_plugins_of_one_name_are_reported_once_with_both_directories(tmp_path: Path) -> None:
    one, two = (shutil.copytree(demo_plugin_dir(), tmp_path / name) for name in ("one", "two"))

    listed = opentabs_here("tools", "--plugin", str(one), "--plugin", str(two), cwd=tmp_path)

    assert listed.stderr.count("skipped:") == 1
    assert f"{one} and {two}" in listed.stderr
