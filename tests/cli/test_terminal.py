"""Texts from pages and plugins reach a terminal as plain text, without any effect on it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.core.recording.exchange import Exchange, Recording, Request, Response
from opentabs_py.recording.files import write_recording
from tests.fakes import a_tool, package_json, tools_json
from tests.waiting import PATIENT

# Sets the title, clears the screen, writes the clipboard, reverses the text, hides a word.
EVIL = "\x1b]0;owned\x07 \x1b[2J \x1b]52;c;\x07 \x9b31m \r\u202e\u2066 \u200b\U000e0041 [/x] [red]"
FORBIDDEN = ["\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e", "\u2066", "\u200b", "\U000e0041"]

TOOLS = """
import logging

from opentabs_py import Progress, ToolError, tool

EVIL = {evil!r}

@tool
async def say(progress: Progress, fail: bool = False, plain: bool = False):
    \"\"\"Say it.\"\"\"
    progress.report(EVIL, progress=0.5, total=1)
    logging.getLogger(__name__).warning(EVIL)
    if fail:
        raise ToolError(EVIL, code="EVIL" + EVIL)
    return EVIL if plain else {{"said": EVIL}}
"""


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A plugin all of whose texts are hostile, and a file of tools whose texts are too."""
    package = json.loads(package_json())
    package["version"] = EVIL
    package["opentabs"] |= {"displayName": EVIL, "description": EVIL}
    schema = {"type": "object", "properties": {EVIL: {"enum": [EVIL]}}}
    texts = {"displayName": EVIL, "description": EVIL, "summary": EVIL}
    (tmp_path / "dist").mkdir()
    (tmp_path / "package.json").write_text(json.dumps(package))
    tools = tools_json(a_tool("send", **texts, input_schema=schema, output_schema=schema))
    (tmp_path / "dist" / "tools.json").write_text(tools)
    (tmp_path / "dist" / "adapter.iife.js").write_bytes(b"")
    (tmp_path / "evil.py").write_text(TOOLS.format(evil=EVIL))
    return tmp_path


def in_terminal(*args: str) -> tuple[int, str]:
    """Run a command with a terminal for stdout and stderr; return its exit code and its output."""
    return in_terminal_python("-m", "opentabs_py", *args)


def in_terminal_python(*args: str, typed: bytes = b"") -> tuple[int, str]:
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    with subprocess.Popen(
        [sys.executable, *args],
        stdin=theirs if typed else subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"},
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            written += part
        os.close(ours)
        return process.wait(PATIENT), written.decode()


def assert_harmless(text: str) -> None:
    assert "owned" in text
    assert "\\u001b" in text
    for each in FORBIDDEN:
        assert each not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("json_", [[], ["--json"]])
@pytest.mark.parametrize("command", [["inspect", "."], ["tools", "--plugin", "."]])
def test_a_plugins_texts_are_shown_and_not_obeyed(
    evil: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], json_: list[str]
) -> None:
    monkeypatch.chdir(evil)
    code, text = in_terminal(*command, *json_)
    assert code == 0, text
    assert_harmless(text)
    if json_:
        assert EVIL in texts_in(json.loads(text))


def test_the_question_about_a_plugin_has_no_line_of_the_plugin(evil: Path) -> None:
    package = json.loads((evil / "package.json").read_text())
    package["opentabs"]["description"] = f"{EVIL}\nruns on  https://safe.example/*"
    (evil / "package.json").write_text(json.dumps(package))
    code, text = in_terminal_python("-m", "opentabs_py", "review", str(evil), typed=b"n\n")
    assert code == 1, text
    assert_harmless(text)
    assert "Approve " in text
    assert "\r\nruns on  https://safe" not in text


def test_what_is_written_for_a_model_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    answer = Response(200, "", [("content-type", "application/json")], json.dumps([EVIL]).encode())
    asked = Exchange(Request("GET", f"https://shop.example/api/items?q={EVIL}"), answer)
    page = Exchange(
        Request("GET", "https://shop.example/", kind="document"),
        Response(200, "", [("content-type", "text/html")], b"<h1>Shop</h1>"),
    )
    file = tmp_path / "shop.har"
    write_recording(Recording("https://shop.example/", [page, asked]), file, version="1")
    code, text = in_terminal("new", "shop", "--from", str(file), "--prompt")
    assert code == 0, text
    assert_harmless(text)


def texts_in(value: Any) -> list[str]:
    if not isinstance(value, dict | list):
        return [str(value)]
    parts = value.values() if isinstance(value, dict) else value
    return [text for part in parts for text in texts_in(part)]


def test_a_skipped_plugins_problem_is_shown_and_not_obeyed(evil: Path) -> None:
    package = json.loads((evil / "package.json").read_text())
    package["opentabs"]["configSchema"] = {EVIL: {"type": EVIL}}
    (evil / "package.json").write_text(json.dumps(package))
    _, text = in_terminal("tools", "--plugin", str(evil))
    assert "skipped" in text
    assert_harmless(text)


@pytest.mark.parametrize("json_", [[], ["--json"]])
@pytest.mark.parametrize("arguments", ["{}", '{"plain": true}', '{"fail": true}'])
def test_progress_results_and_errors_are_shown_and_not_obeyed(
    evil: Path, arguments: str, json_: list[str]
) -> None:
    _, text = in_terminal("call", "say", arguments, "--tools", str(evil / "evil.py"), *json_)
    assert_harmless(text)


def test_what_a_program_reads_is_the_exact_result(evil: Path) -> None:
    command = [sys.executable, "-m", "opentabs_py", "call", "say", "--tools", str(evil / "evil.py")]
    run = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(run.stdout) == {"said": EVIL}
    assert "\u202e" in run.stdout.decode()


def test_half_a_character_is_written_as_a_replacement_for_programs() -> None:
    script = """
from opentabs_py.cli.terminal import write_json, write_result
write_json({"said": "Hello " + chr(0xD83D)})
write_result(chr(0xD83D))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert run.stdout.decode().splitlines() == ['{"said": "Hello \ufffd"}', "\ufffd"]


def test_names_between_colons_are_shown_as_they_are() -> None:
    script = """
from rich.table import Table
from opentabs_py.cli.terminal import *
table = Table()
table.add_row(":id:")
warn(":id:")
print_rule(":id:")
print_wide(table, 80)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (run.stdout + run.stderr).count(":id:") == 3


def test_a_bar_shows_names_between_colons_as_they_are() -> None:
    script = """
from opentabs_py.cli.terminal import *
with progress_bar("Calling :id:") as bar:
    bar.say("[red]reading :id:")
"""
    _, text = in_terminal_python("-c", script)
    assert "[red]reading :id:" in text


@pytest.mark.parametrize("columns", ["40", "120"])
def test_a_status_line_that_is_wider_than_the_terminal_continues_on_the_next(columns: str) -> None:
    text = "✓ passed in 3.2 s; waiting for changes, press Ctrl-C to stop"
    shown = subprocess.run(
        [
            *(sys.executable, "-c"),
            f"from opentabs_py.cli.terminal import print_rule; print_rule('[bold]{text}[/]')",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": columns},
    ).stderr

    assert " ".join(shown.replace("─", " ").split()) == text
    assert all(len(line) <= int(columns) for line in shown.splitlines())
