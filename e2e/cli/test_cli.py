"""What a user types: each command, its output, its exit code, and what it leaves behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

import opentabs_py
from e2e.processes import alive, descendants, is_alive
from e2e.waiting import PATIENT
from opentabs_py.demo import demo_plugin_dir

OPENTABS = [sys.executable, "-m", "opentabs_py"]
PROBE = Path(__file__).parents[1] / "plugins" / "probe"
SITE = """
import sys, uvicorn
from opentabs_py.demo import create_demo_site
from opentabs_py.server.http.listen import bind
listener = bind("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(create_demo_site(page_delay=0), log_level="error")).run([listener])
"""


def opentabs(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OPENTABS, *args],
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def chat() -> Generator[str]:
    """The address of the demo site, which runs in its own process."""
    with subprocess.Popen([sys.executable, "-c", SITE], stdout=subprocess.PIPE, text=True) as site:
        assert site.stdout is not None
        yield f"http://127.0.0.1:{site.stdout.readline().strip()}/"
        site.terminate()


def call(chat: str, *args: str) -> subprocess.CompletedProcess[str]:
    plugins = ["--plugin", str(PROBE), "--plugin", str(demo_plugin_dir())]
    return opentabs("call", *args, *plugins, "--open", chat)


def test_demo_as_json_is_one_document_of_the_promised_shape() -> None:
    run = opentabs("demo", "--json")

    document = json.loads(run.stdout)
    assert run.returncode == 0, run.stderr
    assert document["ok"] is True
    assert document["tool"] == "demo_export_messages"
    assert [(p["progress"], p["total"]) for p in document["progress"]] == [
        (n, 12) for n in range(1, 13)
    ]
    assert document["progress"][2]["message"] == "Exported page 3 of 12"
    at = [p["at"] for p in document["progress"]]
    assert at == sorted(at)
    assert len(document["result"]["messages"]) == document["result"]["total"] == 300
    assert len(document["hops"]) == 10
    assert all(hop["ms"] >= 0 for hop in document["hops"])
    assert document["seconds"] > 0


def test_call_as_json_is_one_document_of_the_promised_shape(chat: str) -> None:
    run = call(chat, "demo_export_messages", '{"channelId": "random"}', "--json")

    document = json.loads(run.stdout)
    assert run.returncode == 0, run.stderr
    assert set(document) == {
        "isError",
        "content",
        "structuredContent",
        "error",
        "progress",
        "seconds",
    }
    assert document["isError"] is False
    assert document["error"] is None
    assert len(document["structuredContent"]["messages"]) == 60
    assert [p["progress"] for p in document["progress"]] == [1, 2, 3]


def test_call_exits_3_without_a_tab() -> None:
    run = opentabs("call", "demo_list_channels", "--plugin", str(demo_plugin_dir()))

    assert run.returncode == 3
    assert "No open tab matches" in run.stderr


def test_call_without_a_terminal_writes_progress_in_lines_and_what_the_plugin_logs(
    chat: str,
) -> None:
    steps: list[dict[str, Any]] = [
        {"report": {"progress": 1, "total": 2, "message": "page 1"}},
        {"log": "a page is odd"},
        {"report": {"progress": 2, "total": 2, "message": "page 2"}},
    ]

    run = call(chat, "probe_run", json.dumps({"steps": steps}))

    assert run.returncode == 0, run.stderr
    lines = run.stderr.splitlines()
    assert [line for line in lines if "page " in line and "odd" not in line] == [
        "1/2  page 1",
        "2/2  page 2",
    ]
    assert any(line.endswith("WARNING probe: a page is odd") for line in lines)
    assert json.loads(run.stdout)["key"] == ""


def test_call_says_what_becomes_of_a_tool_that_timed_out(chat: str) -> None:
    run = call(chat, "probe_run", '{"steps": [{"block": 900}]}', "--idle", "0.3")

    assert run.returncode == 3
    assert "The tool run timed out. It returned " in run.stderr
    assert "TIMEOUT_IDLE" in run.stderr


def test_call_of_a_plugin_that_is_not_built_says_to_build_it(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text((PROBE / "package.json").read_text())

    run = opentabs("call", "probe_echo", "--plugin", str(tmp_path))

    assert run.returncode == 2
    assert "There is no tool 'probe_echo', and a plugin was skipped" in run.stderr
    assert "Build the plugin first" in run.stderr


def test_without_a_chromium_the_error_lists_the_remedies() -> None:
    run = opentabs("demo", OPENTABS_CHROMIUM="/no/chromium")

    assert run.returncode == 3
    assert "OPENTABS_CHROMIUM" in run.stderr
    assert "Traceback" not in run.stderr


def test_tools_lists_names_arguments_and_what_is_skipped(tmp_path: Path) -> None:
    run = opentabs("tools", "--plugin", str(PROBE), "--plugin", str(tmp_path), "--json")

    listed = json.loads(run.stdout)
    assert run.returncode == 0
    assert [tool["name"] for tool in listed] == [
        "probe_await",
        "probe_big",
        "probe_echo",
        "probe_fail",
        "probe_give",
        "probe_log",
        "probe_run",
        "tabs_close",
        "tabs_list",
        "tabs_open",
    ]
    assert listed[2]["inputSchema"]["properties"]["tabId"]["type"] == "integer"
    assert f"skipped: {tmp_path} has no package.json" in run.stderr.replace("\n", " ")


def test_doctor_finds_every_hop_working_and_reads_the_users_plugins(tmp_path: Path) -> None:
    shutil.copytree(demo_plugin_dir(), tmp_path / "demo")
    tools = tmp_path / "demo" / "dist" / "tools.json"
    tools.write_text(json.dumps(json.loads(tools.read_bytes())["tools"]))
    run = opentabs("doctor", "--json", OPENTABS_PLUGINS=str(tmp_path / "demo"))

    document = json.loads(run.stdout)
    assert run.returncode == 0, run.stdout
    assert document["ok"] is True
    assert len(document["checks"]) == 8
    assert all(check["ok"] for check in document["checks"])
    assert document["checks"][-1]["detail"].startswith("demo; demo: its dist/tools.json has no sdk")


def test_doctor_names_a_plugin_of_a_newer_sdk(tmp_path: Path) -> None:
    shutil.copytree(demo_plugin_dir(), tmp_path / "demo")
    tools = tmp_path / "demo" / "dist" / "tools.json"
    tools.write_text(json.dumps({**json.loads(tools.read_bytes()), "sdkVersion": "99.0.0"}))
    run = opentabs("doctor", "--json", OPENTABS_PLUGINS=str(tmp_path / "demo"))

    document = json.loads(run.stdout)
    assert run.returncode == 3
    assert document["broken"] == "Your plugins can be served"
    assert "install a newer one" in document["checks"][-1]["detail"]


@pytest.mark.parametrize(
    ("settings", "broken", "said"),
    [
        ({"OPENTABS_IDLE": "2s"}, "Your settings are valid", "idle: write a number"),
        (
            {"OPENTABS_CHROMIUM": "/bin/true"},
            "Chromium starts and its extension connects",
            "/bin/true did not start",
        ),
    ],
)
def test_doctor_names_the_first_broken_hop_and_what_to_do(
    settings: dict[str, str], broken: str, said: str
) -> None:
    run = opentabs("doctor", "--json", **settings)

    document = json.loads(run.stdout)
    assert run.returncode == 3
    assert document["broken"] == broken
    assert said in document["checks"][-1]["detail"]


def test_version_is_the_packages_own() -> None:
    assert opentabs("--version").stdout == f"opentabs {opentabs_py.__version__}\n"


def test_browser_path_is_a_file() -> None:
    assert Path(opentabs("browser", "path").stdout.strip()).is_file()


# --- serve ---


def test_a_killed_run_is_cleaned_up_by_the_next(short_path: Path) -> None:
    environment = {"TMPDIR": str(short_path)}
    command = [*OPENTABS, "serve", "--port", "0", "--plugin", str(PROBE)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as serve:
        assert serve.stderr is not None
        while "http://127.0.0.1" not in serve.stderr.readline():
            assert serve.poll() is None
        children = descendants(serve.pid)
        serve.kill()
    deadline = time.monotonic() + 20
    while any(is_alive(pid) for pid in children) and time.monotonic() < deadline:
        os.sched_yield()
    abandoned = set(short_path.glob("opentabs-*"))
    assert abandoned

    # Without a plugin it needs no browser.
    tools = short_path / "tools.py"
    tools.write_text("def echo(value: int) -> int:\n    return value\n")
    run = opentabs("call", "echo", '{"value": 1}', "--tools", f"{tools}:echo", **environment)

    assert run.returncode == 0, run.stderr
    assert alive(children) == {}
    assert abandoned & set(short_path.glob("opentabs-*")) == set()


async def test_serve_over_stdio_speaks_only_protocol_and_calls_tools(chat: str) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "opentabs_py", "serve", "--stdio", "--plugin", str(PROBE), "--open", chat],
        env=dict(os.environ),
    )
    got: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        got.append(progress)

    # The client fails on the first line that is not a message.
    async with Client(server) as client:
        tools = await client.list_tools()
        steps = [{"report": {"progress": n}} for n in (1, 2, 3)]
        result = await client.call_tool("probe_run", {"steps": steps}, progress_callback=note)

    assert "probe_echo" in {tool.name for tool in tools.tools}
    assert not result.is_error, result.content
    assert got == [1, 2, 3]


def test_serve_without_a_browser_says_how_to_load_the_extension(tmp_path: Path) -> None:
    command = [*OPENTABS, "serve", "--browser", "none", "--port", "0", "--plugin", str(PROBE)]
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as serve:
        assert serve.stderr is not None
        said = ""
        while "MCP at" not in said:
            said += serve.stderr.readline()
            assert serve.poll() is None, said
        serve.send_signal(signal.SIGTERM)
        serve.wait(PATIENT)

    directory = re.search(r"select (.*)\n", said)
    assert directory is not None
    assert (Path(directory[1]) / "manifest.json").is_file()
    assert (Path(directory[1]) / "content" / "runtime.js").is_file()
    assert "chrome://extensions" in said
    assert re.search(r"http://127\.0\.0\.1:\d+/extension guides you", said)


def test_a_port_in_use_is_an_error_that_says_so(chat: str) -> None:
    port = chat.rstrip("/").rpartition(":")[2]

    run = opentabs("serve", "--port", port)

    assert run.returncode == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in run.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("command", "failed"),
    [
        (["call", "probe_echo", "--plugin", str(PROBE)], {"isError": True, "content": []}),
        (["demo"], {"ok": False, "result": None}),
    ],
)
def test_as_json_a_chain_that_fails_is_a_document_too(
    command: list[str], failed: dict[str, object]
) -> None:
    run = opentabs(*command, "--json", OPENTABS_CHROMIUM="/no/chromium")

    document = json.loads(run.stdout)
    assert run.returncode == 3
    assert failed.items() <= document.items()
    assert "OPENTABS_CHROMIUM" in document["error"]["message"]


def test_stdio_on_a_file_is_refused() -> None:
    command = [*OPENTABS, "serve", "--stdio", "--plugin", str(PROBE)]
    run = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )

    assert run.returncode == 2
    assert "stdin is a file" in run.stderr
