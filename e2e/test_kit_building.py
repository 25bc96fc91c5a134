"""The plugin under test: found beside its tests, and built when it is older than its source."""

import json
from pathlib import Path

import pytest

from e2e.kit.runs import run
from opentabs_py.plugins.scaffold import scaffold


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A new plugin, not built, somewhere in a project."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ntimeout = 50\n")
    scaffold("chat", tmp_path / "plugins" / "chat", language="js")
    return tmp_path / "plugins" / "chat"


def test_a_new_plugin_is_built_and_passes_its_test_and_is_built_anew_when_it_changes(
    chat: Path,
) -> None:
    first = run(chat.parent.parent)
    tool = chat / "src" / "tools" / "hello.js"
    tool.write_text(tool.read_text().replace("Hello, ", "Good morning, "))
    second = run(chat.parent.parent)

    assert set(first.outcomes.values()) == {"passed"}, first.output
    assert set(second.outcomes.values()) == {"failed"}, second.output
    assert '+  "greeting": "Good morning, Ada!"' in second.output


def test_a_plugin_that_cannot_be_built_fails_its_tests_with_all_its_faults(chat: Path) -> None:
    package = json.loads((chat / "package.json").read_text())
    package["opentabs"]["urlPatterns"] = ["nowhere"]
    (chat / "package.json").write_text(json.dumps(package))
    tool = chat / "src" / "tools" / "hello.js"
    tool.write_text(tool.read_text().replace('icon: "hand"', 'icon: "handd"'))

    done = run(chat.parent.parent)

    assert set(done.outcomes.values()) == {"error"}, done.output
    assert "src/tools/hello.js:4 hello icon\n    'handd' is not an icon of Lucide" in done.output
    assert "urlPatterns" in done.output
    assert "Traceback" not in done.output


def test_tests_that_belong_to_no_plugin_say_how_to_name_one(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(opentabs): ...")

    done = run(tmp_path)

    assert "No plugin to test" in done["test_it"].text
    assert "[tool.opentabs]" in done["test_it"].text


def test_a_project_names_its_plugins_in_its_settings(tmp_path: Path, chat: Path) -> None:
    plugins = json.dumps([str(chat)])
    (tmp_path / "pyproject.toml").write_text(f"[tool.opentabs]\nplugins = {plugins}\n")
    (tmp_path / "test_it.py").write_text(
        "def test_it(opentabs):\n    assert [t.name for t in opentabs.tools] == ['chat_hello']\n"
    )

    done = run(tmp_path, "test_it.py")

    assert done.outcomes == {"test_it": "passed"}, done.output
