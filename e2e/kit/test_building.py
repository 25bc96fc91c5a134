"""The plugin under test: found beside its tests, and built when it is older than its source."""

import json
from pathlib import Path

import pytest

from e2e.kit.runs import INI, run
from opentabs_py.plugins.scaffold import scaffold


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """A new plugin, not yet built, inside a project."""
    (tmp_path / "pytest.ini").write_text(INI)
    scaffold("chat", tmp_path / "plugins" / "chat", language="js")
    return tmp_path / "plugins" / "chat"


def test_a_new_plugin_is_built_and_passes_its_test_and_is_rebuilt_when_it_changes(
    chat: Path,
) -> None:
    project = chat.parent.parent
    (project / "pyproject.toml").write_text('[tool.opentabs]\nplugins = ["plugins/chat"]\n')
    (project / "test_it.py").write_text(
        "def test_named(opentabs):\n    assert 'chat_hello' in [t.name for t in opentabs.tools]\n"
    )
    first = run(project)
    tool = chat / "src" / "tools" / "hello.js"
    tool.write_text(tool.read_text().replace("Hello, ", "Good morning, "))
    plugin = chat / "src" / "index.js"
    hook = "\n  onActivate() {\n    throw new Error('not today');\n  }\n\n  async isReady"
    plugin.write_text(plugin.read_text().replace("  async isReady", hook))
    second = run(chat)

    assert first.outcomes == {
        "test_hello_reads_every_heading_and_reports_each": "passed",  # found beside its tests
        "test_named": "passed",  # found in the project's settings
    }, first.output
    assert set(second.outcomes.values()) == {"failed"}, second.output
    assert '+  "greeting": "Good morning, Ada!"' in second.output
    line = plugin.read_text().splitlines().index("    throw new Error('not today');") + 1
    logged = second.output.partition("plugin logs:")[2]  # the hook's error with its place
    assert f"onActivate (src/index.js:{line}:11)" in logged


def test_a_plugin_that_cannot_be_built_fails_its_tests_with_all_its_problems(chat: Path) -> None:
    package = json.loads((chat / "package.json").read_text())
    package["opentabs"]["urlPatterns"] = ["nowhere"]
    (chat / "package.json").write_text(json.dumps(package))
    tool = chat / "src" / "tools" / "hello.js"
    tool.write_text(tool.read_text().replace('icon: "hand"', 'icon: "handd"'))

    done = run(chat.parent.parent)

    assert set(done.outcomes.values()) == {"error"}, done.output
    assert "src/tools/hello.js:4 hello icon\n    'handd' is not a Lucide icon" in done.output
    assert "urlPatterns" in done.output
    assert "Traceback" not in done.output


def test_tests_that_belong_to_no_plugin_say_how_to_name_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.opentabs]\nplugins = ['chat']\n")
    below = tmp_path / "tests"
    below.mkdir()
    (below / "test_it.py").write_text("def test_it(opentabs): ...")

    done = run(below)

    assert "No plugin to test" in done["test_it"].text
    assert f"[tool.opentabs] in {below / 'pyproject.toml'} (" in done["test_it"].text


def test_settings_that_are_not_valid_fail_a_test_with_their_problem_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.opentabs]\nidel = 2\n")
    (tmp_path / "test_it.py").write_text(
        "def test_plugin(opentabs): ...\ndef test_settings(opentabs_settings): ...\n"
    )

    done = run(tmp_path)

    for name in ("test_plugin", "test_settings"):
        assert "idel: there is no such setting" in done[name].text
        assert "ConfigError" not in done[name].text


def test_a_fixture_that_returns_one_directory_instead_of_a_list_is_explained(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def opentabs_plugins(): return 'chat'\n"
        "def test_it(opentabs): ...\n"
    )

    done = run(tmp_path)

    assert (
        "The value of the fixture opentabs_plugins must be a list: ['chat']."
        in done["test_it"].text
    )
