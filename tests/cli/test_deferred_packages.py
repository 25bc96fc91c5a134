"""A deferred package runs its own file only when a name that it defines is accessed."""

import subprocess
import sys
import threading
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from opentabs_py.cli.deferred_packages import defer_packages

# What a server loads, and what only a client or a terminal needs.
SERVER = """
import sys
from opentabs_py.cli.deferred_packages import LARGE, defer_packages
defer_packages(*LARGE)
import opentabs_py.cli.app
opentabs_py.cli.app.create_app("serve")
import opentabs_py.cli.serve_session, opentabs_py.session.server
import opentabs_py.server.mcp.streamable_http, opentabs_py.server.mcp.server
import opentabs_py.server.mcp.stdio
print(*sys.modules)
"""
CLIENT = """
from opentabs_py.cli.deferred_packages import LARGE, defer_packages
defer_packages(*LARGE)
import opentabs_py.server.mcp.server
from mcp import ClientSession, types
from mcp.client import Client
from mcp.server import MCPServer
print(ClientSession.__name__, types.Tool.__name__, Client.__name__, MCPServer.__name__)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[ModuleType]:
    """A deferred package `heavy` with a submodule `part`; its file counts how often it runs."""
    (tmp_path / "heavy").mkdir()
    (tmp_path / "heavy" / "__init__.py").write_text(
        "import time\n"
        "from heavy import part\n"
        "part.runs += 1\n"
        "time.sleep(0.05)  # so that other threads ask meanwhile\n"
        "if part.broken: raise RuntimeError('broken')\n"
        "answer = 42\n"
    )
    (tmp_path / "heavy" / "part.py").write_text("broken = False\nruns = 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    defer_packages("heavy")
    yield sys.modules["heavy"]
    for name in [each for each in sys.modules if each.split(".")[0] == "heavy"]:
        del sys.modules[name]


def test_a_submodule_is_imported_without_the_package(package: ModuleType) -> None:
    assert import_module("heavy.part").broken is False
    assert package.part is sys.modules["heavy.part"]
    assert package.part.runs == 0


def test_its_file_runs_once_when_a_name_is_asked_for(package: ModuleType) -> None:
    assert (package.answer, package.answer) == (42, 42)
    assert package.part.runs == 1
    assert type(package) is ModuleType


def test_a_name_that_it_does_not_define_is_an_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="'heavy' has no attribute 'question'"):
        _ = package.question
    with pytest.raises(ImportError, match="cannot import name 'question'"):
        exec("from heavy import question")


def test_an_error_in_its_file_is_raised_each_time_until_it_is_gone(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package.part, "broken", True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            _ = package.answer
    monkeypatch.setattr(package.part, "broken", False)
    assert package.answer == 42


def test_threads_that_ask_at_once_all_wait_for_its_file(package: ModuleType) -> None:
    answers: list[int] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        answers.append(package.answer)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [42] * 8
    assert package.part.runs == 1


def test_what_is_imported_already_and_what_is_not_there_is_left_alone() -> None:
    before = sys.modules["json"]
    defer_packages("json", "not_there")
    assert sys.modules["json"] is before
    assert "not_there" not in sys.modules


def test_a_server_loads_neither_the_sdk_s_client_nor_what_a_terminal_needs() -> None:
    loaded = {*_run(SERVER).split()}
    assert "mcp.server.lowlevel.server" in loaded
    large = {"mcp.client", "mcp.server.mcpserver", "httpx2", "cryptography", "jwt", "rich"}
    assert not large & loaded
    assert not {"opentabs_py.cli.commands.demo", "opentabs_py.cli.commands.call"} & loaded


def test_the_sdk_is_complete_for_those_who_import_it() -> None:
    assert _run(CLIENT).split() == ["ClientSession", "Tool", "Client", "MCPServer"]


def _run(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
