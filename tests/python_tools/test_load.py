"""Which tools `--tools` finds."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import opentabs_py
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.config.settings_file import set_permission
from opentabs_py.core.consent import parse_rules
from opentabs_py.errors import ConfigError
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.load import load_tools, reload_tools
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.session.session import Server

SOURCE = """
from opentabs_py import Module, skill, tool
from functools import partial

print("loaded")

@tool
def one() -> str:
    '''Give one.'''
    return "one"

def two() -> str:
    return "two"

class Base(Module):
    @skill
    def three(self) -> str:
        return "three"

class Derived(Base):
    @skill
    def four(self) -> str:
        return "four"

class Made(Module):
    def __init__(self, name):
        self.name = name

    @skill
    def five(self) -> str:
        return self.name

made = Made("five")
again = one
six = tool(partial(two), name="six")
"""


@pytest.fixture
def source(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    file = tmp_path / f"{request.node.name.replace('[', '_').replace(']', '_')}.py"
    file.write_text(SOURCE)
    return str(file)


def names(*sources: str) -> set[str]:
    server = Server(tools=load_tools(sources))
    assert server._python.tools is not None
    found = {tool.listing.name for tool in server._python.tools.tools}
    return found - {"stream_read", "stream_stop"}


def test_a_file_provides_each_of_its_tools_and_modules_once(source: str) -> None:
    assert names(source) == {"one", "three", "four", "five", "six"}


def test_a_name_behind_the_file_gives_that_alone_marked_or_not(source: str) -> None:
    assert names(f"{source}:two") == {"two"}
    assert names(f"{source}:Derived") == {"three", "four"}
    assert names(f"{source}:made.five") == {"five"}


def test_a_file_named_like_a_loaded_module_is_executed_once(tmp_path: Path) -> None:
    file = tmp_path / "calendar.py"  # Python has one, too
    file.write_text("def a(): ...\n")
    one = load_tools([f"{file}:a"])
    assert load_tools([f"{file}:a"]) == one


def test_a_module_is_found_by_its_name() -> None:
    assert "export" in names("tests.python_tools.samples")
    assert names("tests.python_tools.samples:export") == {"export"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x = 1", "has no tools. Mark functions with @tool"),
        (
            "x = 1\nimport nothing_there",
            r"ModuleNotFoundError: No module named 'nothing_there' \(.*/broken\d+\.py, line 2\)\.$",
        ),
        ("x = 1\nimport json.nothing_there", r"\(.*/broken\d+\.py, line 2\)\.$"),
        (
            "from opentabs_py import tool\n@tool(idle=-1)\ndef f() -> None: ...",
            r"ValueError: idle is -1; .* \(.*/broken\d+\.py, line 2\)\.$",
        ),
        ("x = 1\nimport json; json.loads('x')", r"\(.*/broken\d+\.py, line 2\)\.$"),
        ("def f(:", r"SyntaxError: invalid syntax \(broken\d+\.py, line 1\)\.$"),
        ("raise SystemExit(3)", r"SystemExit: 3 \(.*/broken\d+\.py, line 1\)\.$"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / f"broken{abs(hash(text))}.py"
    file.write_text(text)
    with pytest.raises(ConfigError, match=what):
        load_tools([str(file)])


def test_only_the_place_of_a_syntax_error_is_named_not_that_of_its_import(tmp_path: Path) -> None:
    (tmp_path / "broken_neighbour.py").write_text("x = 1\ndef f(:")
    (tmp_path / "importing.py").write_text("import broken_neighbour")
    said = r"SyntaxError: invalid syntax \(broken_neighbour\.py, line 2\)\.$"
    with pytest.raises(ConfigError, match=said):
        load_tools([str(tmp_path / "importing.py")])


def test_a_module_that_does_not_exist_says_so() -> None:
    with pytest.raises(ConfigError, match=r"No module named 'nothing_there'\.$"):
        load_tools(["nothing_there"])


@pytest.mark.parametrize("source", ["", ".", "./tools", "tools/", "a..b"])
def test_what_is_neither_a_file_nor_a_module_says_so(source: str) -> None:
    said = f"{source!r} names neither a file (FILE.py) nor a module (package.module) of tools."
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}$"):
        load_tools([source])


def test_what_is_not_there_says_so(source: str) -> None:
    with pytest.raises(ConfigError, match="There is no file"):
        load_tools(["/nowhere/tools.py"])
    with pytest.raises(ConfigError, match="has no three"):
        load_tools([f"{source}:three"])


def test_tools_are_loaded_again_without_the_libraries_in_their_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = tmp_path / ".venv" / "lib" / "python3" / "site-packages"
    libraries.mkdir(parents=True)
    (libraries / "installed_beside.py").touch()
    monkeypatch.syspath_prepend(str(libraries))
    neighbour = tmp_path / "neighbour_of_tools.py"
    neighbour.write_text("VALUE = 'before'")
    file = tmp_path / "tools_in_project.py"
    file.write_text(
        "import installed_beside, json, neighbour_of_tools, opentabs_py\n"
        "@opentabs_py.tool\n"
        "def get(): return neighbour_of_tools.VALUE, installed_beside, json, opentabs_py.tool\n"
    )
    [tool] = load_tools([str(file)])
    before, *libraries_before = tool()
    neighbour.write_text("VALUE = 'and after'")
    # As if the checkout, or the user's own Python, were in the directory too.
    package, python = Path(opentabs_py.__file__).parent, Path(sysconfig.get_path("stdlib"))
    [tool] = reload_tools([str(file)], [tmp_path, package, python])
    after, *libraries_after = tool()
    assert (before, after) == ("before", "and after")
    assert libraries_after == libraries_before


def test_the_main_program_stays_when_tools_beside_it_are_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__main__")
    main.__file__ = str(tmp_path / ".venv" / "bin" / "opentabs")
    monkeypatch.setitem(sys.modules, "__main__", main)
    file = tmp_path / "tools_beside_main.py"
    file.write_text("import opentabs_py\n@opentabs_py.tool\ndef get(): ...\n")
    reload_tools([str(file)], [tmp_path])
    assert sys.modules.get("__main__") is main


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opentabs_py", *arguments]
    # A launched browser would not be found.
    environment = {**os.environ, "OPENTABS_CHROMIUM": "/nowhere/chromium"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=50, check=False, env=environment
    )


def test_the_command_lists_and_calls_them_without_a_browser(source: str) -> None:
    listed = run("tools", "--tools", f"{source}:one", "--json")
    [tool] = json.loads(listed.stdout.removeprefix("loaded\n"))
    assert (tool["name"], tool["description"]) == ("one", "Give one.")
    called = run("call", "one", "--tools", source, "--json")
    assert called.returncode == 0
    outcome = json.loads(called.stdout.removeprefix("loaded\n"))
    assert outcome["content"] == [{"type": "text", "text": "one"}]


@pytest.mark.parametrize("name", ["__version__", "tool"])
def test_importing_the_package_loads_no_more_than_is_asked_for(name: str) -> None:
    code = (
        f"import sys, opentabs_py; opentabs_py.{name}; "
        "print(*({'mcp', 'playwright', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    assert done.stdout.split() == []


async def test_a_permission_can_be_given_to_a_tool_of_a_file_of_any_name(tmp_path: Path) -> None:
    file = tmp_path / "my tools=old.py"
    file.write_text("from opentabs_py import tool\n\n@tool(name='get-it')\ndef get(): ...\n")
    [tool] = PythonTools(load_tools([str(file)]), ToolHost(AlarmClock())).tools
    rule = tool.listing.gated("named").rule
    assert rule == "my_tools_old.get-it"
    settings = tmp_path / "config.toml"
    set_permission(rule, "ask", file=settings)
    assert parse_rules(tomllib.loads(settings.read_text())["permissions"]) == {rule: "ask"}
