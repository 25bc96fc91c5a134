"""`opentabs tools` lists and finds tools without a browser."""

import json
from pathlib import Path

from opentabs_py.demo import demo_plugin_dir
from tests.cli.test_authoring import opentabs


def test_a_search_lists_only_what_matches_and_the_best_first(tmp_path: Path) -> None:
    options = ["--plugin", str(demo_plugin_dir()), "--json", "--search"]
    found = opentabs("tools", *options, "export the messages of a channel", cwd=tmp_path)
    names = [tool["name"] for tool in json.loads(found.stdout)]
    assert names[0] == "demo_export_messages"


def test_a_search_that_finds_nothing_says_so(tmp_path: Path) -> None:
    found = opentabs("tools", "--plugin", str(demo_plugin_dir()), "--search", "zebra", cwd=tmp_path)
    assert (found.returncode, found.stdout) == (0, "")
    assert "No tool matches" in found.stderr
