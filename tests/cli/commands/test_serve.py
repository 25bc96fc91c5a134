"""The messages of `opentabs serve` at its start."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from opentabs_py.cli.serve_options import read_browsers
from opentabs_py.console.access import HEADER
from opentabs_py.errors import ConfigError
from tests.cli.in_process import opentabs_here
from tests.fakes import a_tool
from tests.plugins.test_load import build
from tests.served import INITIALIZE, INITIALIZED
from tests.waiting import PATIENT

MESSAGE_LIMIT = 1024 * 1024
SERVE = [sys.executable, "-m", "opentabs_py", "serve"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--idle", "2s"], "idle: write a number without a unit, such as 2.5"),
        (["--ceiling", "5 min"], "ceiling: write a number without a unit, such as 2.5"),
        (["--keepalive", "0"], "keepalive: write more than 0"),
        (["--port", "http"], "port: write a whole number, such as 2"),
    ],
)
def test_a_number_that_cannot_be_used_is_refused_in_plain_words(
    options: list[str], said: str, tmp_path: Path
) -> None:
    run = opentabs_here("serve", *options, cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.startswith(f"error: A setting is not valid. {said}, not ")


@contextmanager
def serving(*options: str, cwd: Path) -> Generator[Callable[[str], str]]:
    """Run a server without a browser; yield a function that reads its log up to a text."""
    command = [*SERVE, "--port", "0", "--browser", "none", *options]
    places = {"XDG_DATA_HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=cwd, env={**os.environ, **places}
    ) as serve:
        log = serve.stderr
        assert log is not None

        def read_until(text: str) -> str:
            said = ""
            while text not in said:
                line = log.readline()
                assert line, f"it ended by itself: {said}"
                said += line
            return said

        yield read_until
        serve.send_signal(signal.SIGTERM)
        serve.wait(PATIENT)


def start(*options: str, cwd: Path) -> str:
    """Start a server without a browser, and stop it; return its log."""
    with serving(*options, cwd=cwd) as read_until:
        return read_until("MCP at ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--webmcp", "example.com"], "webmcp: 'example.com' has no scheme"),
        (["--webmcp", "all", "--nats", "nats://127.0.0.1:1"], "not served in a fleet"),
    ],
)
def test_pages_whose_tools_cannot_be_served_are_refused(
    options: list[str], said: str, tmp_path: Path
) -> None:
    run = opentabs_here("serve", *options, cwd=tmp_path)
    assert run.returncode == 2
    assert said in run.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["serve", "--keep"], "add --attach"),
        (["serve", "--hands", "--nats", "nats://127.0.0.1:1"], "--hands needs a browser"),
        (["serve", "--hands", "--browser", "none"], "--hands needs a browser"),
        (["serve", "--queue", "5"], "--queue is for a fleet"),
        (["serve", "--attach", "--signed-in", "work"], "cannot be combined with --attach"),
        (["serve", "--attach", "--exit-with-browser"], "cannot be combined with --attach"),
        (
            ["serve", "--browser", "none", "--signed-in", "work"],
            "need a browser that serve launches",
        ),
        (["serve", "--label", "a=b"], "--label is for a fleet"),
        (["serve", "--calls-per-client", "2"], "--calls-per-client is for a fleet"),
        (
            ["serve", "--nats", "nats://127.0.0.1:1", "--user-data-dir", "."],
            "no plugins and no browser",
        ),
        (["call", "chat_send", "--label", "a=b"], "--label is for a fleet"),
        (["fleet", "permissions", "endpoint", "--worker", "a"], "--worker is for the role worker"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    options: list[str], said: str, tmp_path: Path
) -> None:
    done = opentabs_here(*options, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    "command",
    [
        ["call", "chat_send", "--headed"],
        ["call", "chat_send", "--server", "home"],
        ["serve", "--headed"],
        ["serve", "--hands"],
        ["serve", "--webmcp", "all"],
        ["tools", "--fresh"],
        ["tools", "--server", "home"],
    ],
)
def test_a_fleet_is_named_where_its_user_has_named_it(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "nats://127.0.0.1:1"
    asked = opentabs_here(*command, "--nats", address, cwd=tmp_path)
    monkeypatch.setenv("OPENTABS_NATS", address)
    set_ = opentabs_here(*command, cwd=tmp_path)
    assert (asked.returncode, set_.returncode) == (2, 2)
    assert ("--nats" in asked.stderr, "OPENTABS_NATS" in asked.stderr) == (True, False)
    assert ("--nats" in set_.stderr, "OPENTABS_NATS" in set_.stderr) == (False, True)


def test_plugins_come_and_go_while_it_runs(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    settings = tmp_path / "pyproject.toml"
    with serving("--plugins", str(folder), cwd=tmp_path) as read_until:
        read_until("MCP at ")
        build(folder / "chat")
        read_until("Added chat")
        build(tmp_path / "mail", name="mail")
        settings.write_text('[tool.opentabs]\nplugins = ["mail"]\n')
        read_until("Added mail")
        shutil.rmtree(folder / "chat")
        read_until("Removed chat")
        settings.write_text("")
        read_until("Removed mail")


def test_the_plugins_of_a_folder_are_listed(tmp_path: Path) -> None:
    build(tmp_path / "plugins" / "chat")
    build(tmp_path / "plugins" / "mail", name="mail")
    command = [*SERVE[:-1], "tools", "--json", "--plugins", str(tmp_path / "plugins")]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    names = [tool["name"] for tool in json.loads(run.stdout)]
    assert names == ["chat_send", "mail_send", "tabs_close", "tabs_list", "tabs_open"]


def test_what_a_running_server_skipped_is_named_when_its_tools_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    plugin = build(tmp_path / "tabs", a_tool("list"), a_tool("read"), name="tabs")
    with serving("--plugin", str(plugin), "--name", "work", cwd=tmp_path) as read_until:
        read_until("MCP at ")
        status = opentabs_here("status", "--server", "work", cwd=tmp_path)
        listed = opentabs_here("tools", "--server", "work", cwd=tmp_path)
    assert "tabs_read" in listed.stdout
    assert "skipped: Two tools would be named tabs_list" in listed.stderr
    assert "no tab open, 1 tool " in status.stdout


def test_of_a_plugin_that_waits_for_its_review_status_and_the_consoles_logs_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    settings = tmp_path / "opentabs" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(f"plugins = [{json.dumps(str(build(tmp_path / 'chat')))}]")
    with serving("--name", "work", cwd=tmp_path) as read_until:
        read_until("MCP at ")
        shown = opentabs_here("status", "--server", "work", cwd=tmp_path).stdout
        url = opentabs_here("ui", "--print", "--server", "work", cwd=tmp_path).stdout.strip()
        with httpx2.Client(base_url=url.split("?")[0], timeout=PATIENT) as browser:
            key = re.findall('#key=([^"]+)"', browser.get(url).text)[0]
            with browser.stream("GET", "/console/api/stream", headers={HEADER: key}) as events:
                first = next(events.iter_lines())
    assert "not reviewed, 1 tool" in shown
    logs = [each["text"] for each in json.loads(first[6:])["logs"]["changed"]]
    assert "The plugin chat has not been reviewed" in logs[0]


def test_serving_nothing_is_a_warning_that_says_what_to_pass(tmp_path: Path) -> None:
    said = " ".join(start(cwd=tmp_path).split())
    assert "Nothing to serve: there is no plugin and no tool." in said
    assert "--plugin DIR" in said
    assert "--tools FILE" in said


def test_serving_a_tool_logs_no_warning(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "from opentabs_py import tool\n\n\n@tool\ndef one() -> int:\n    return 1\n"
    )
    assert "Nothing to serve" not in start("--tools", "tools.py", cwd=tmp_path)


def test_the_log_names_the_modules_of_the_user_and_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "lamps.py").write_text(
        "from opentabs_py import Module, tool\nclass Lamp(Module):\n"
        "    @tool\n    def switch(self) -> None:\n        'Switch it.'\n"
    )
    assert "Serving 1 tool from lamps\n" in start("--tools", "lamps.py", cwd=tmp_path)


def test_on_stdio_too_an_input_may_be_as_long_when_its_characters_are_escaped(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools.py").write_text(
        "from opentabs_py import tool\n\n\n@tool\ndef count(text: str) -> int:\n"
        "    return len(text)\n"
    )
    text = "é" * (MESSAGE_LIMIT - 100)
    call = {"name": "count", "arguments": {"text": text}}
    requests = [INITIALIZE, INITIALIZED, {"id": 2, "method": "tools/call", "params": call}]
    with subprocess.Popen(
        [*SERVE, "--stdio", "--tools", "tools.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OPENTABS_MESSAGE_LIMIT": str(MESSAGE_LIMIT)},
    ) as serve:
        assert serve.stdin is not None
        assert serve.stdout is not None
        for request in requests:
            serve.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
        serve.stdin.flush()
        answers = [json.loads(serve.stdout.readline()) for _ in range(2)]
        serve.stdin.close()
        serve.wait(PATIENT)
    [answer] = answers[1]["result"]["content"]
    assert answer["text"] == str(len(text))


def test_the_end_of_stdin_ends_it_while_a_thread_of_a_tool_runs_and_leaves_no_record(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools.py").write_text(
        "import asyncio, threading\nfrom opentabs_py import tool\n\n\n@tool\n"
        "async def wait() -> None:\n    print('waiting', flush=True)\n"
        "    await asyncio.to_thread(threading.Event().wait)\n"
    )
    call = {"name": "wait", "arguments": {}}
    requests = [INITIALIZE, INITIALIZED, {"id": 2, "method": "tools/call", "params": call}]
    with subprocess.Popen(
        [*SERVE, "--stdio", "--name", "work", "--tools", "tools.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    ) as serve:
        assert serve.stdin is not None
        assert serve.stderr is not None
        for request in requests:
            serve.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
        serve.stdin.flush()
        while "waiting" not in serve.stderr.readline():
            assert serve.poll() is None
        assert list(tmp_path.glob("state/**/work.json"))
        serve.stdin.close()
        assert serve.wait(PATIENT) == 0
    assert not list(tmp_path.glob("state/**/work.json"))


@pytest.fixture
def nowhere_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home whose state directory cannot be created."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))


@pytest.mark.usefixtures("nowhere_to_write")
def test_a_home_that_cannot_be_written_to_does_not_keep_it_from_serving(tmp_path: Path) -> None:
    assert "MCP at " in start(cwd=tmp_path)


@pytest.mark.usefixtures("nowhere_to_write")
def test_a_server_in_the_background_needs_a_place_for_its_log(tmp_path: Path) -> None:
    command = [*SERVE[:-1], "start", "--browser", "none"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.startswith("error: Cannot write ")


def test_a_server_in_the_background_without_plugins_says_how_many_tools_it_has(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools.py").write_text("def one(): ...\ndef two(): ...\nboth = [one, two]")
    command, options = [*SERVE[:-1]], ["--tools", "tools.py:both", "--port", "0"]

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        line = [*command, *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=True, cwd=tmp_path)

    started = run("start", *options)
    run("stop")
    assert re.match(r"● default is running \(pid \d+\): 2 tools\n", started.stderr)


def test_browsers_are_named_with_their_profiles(tmp_path: Path) -> None:
    assert read_browsers([]) == read_browsers(["launch"]) == ("launch", {})
    assert read_browsers(["none"]) == ("none", {})
    named = read_browsers([f"work={tmp_path}/a=b", "home=x"])
    assert named == ("launch", {"work": tmp_path / "a=b", "home": Path("x")})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["launch", "none"], "Cannot use --browser launch"),
        (["chrome"], "Cannot use --browser chrome"),
        (["Work=x"], "Cannot use --browser Work=x"),
        (["work="], "Cannot use --browser work="),
        (["work=x", "work=y"], "Two browsers are named 'work'"),
        (["work=x", "home=./x"], "cannot share the profile x"),
    ],
)
def test_browsers_that_cannot_be_are_refused(given: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        read_browsers(given)
