"""A background server: started once, used by commands that need no browser of their own."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio
import anyio.to_thread
import psutil
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from e2e.chain import PROBE
from e2e.on_disk import write_plugin
from e2e.processes import alive, descendants, is_alive
from e2e.terminals import terminal
from e2e.waiting import PATIENT
from opentabs_py.config.paths import state_dir
from opentabs_py.config.settings import load_settings
from opentabs_py.daemon.state import ServeCommand, claim, read_state
from opentabs_py.demo import demo_plugin_dir
from opentabs_py.session.registration import registered
from opentabs_py.session.session import OpenTabs

OPENTABS = [sys.executable, "-m", "opentabs_py"]


@pytest.fixture
def home(tmp_path: Path) -> Generator[dict[str, str]]:
    """An environment in which no server runs before the test or after it."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    yield environment
    opentabs("stop", env=environment)


def opentabs(
    *args: str, env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OPENTABS, *args],
        capture_output=True,
        text=True,
        timeout=90,
        env=env,
        cwd=cwd,
        check=False,
    )


def start(env: Mapping[str, str], *args: str) -> dict[str, Any]:
    run = opentabs("start", "--port", "0", *args, env=env)
    assert run.returncode == 0, run.stderr
    return status(env)


def status(env: Mapping[str, str]) -> dict[str, Any]:
    run = opentabs("status", "--json", env=env)
    assert run.returncode == 0, run.stdout
    [server] = json.loads(run.stdout)
    assert isinstance(server, dict)
    return server


# --- its lifetime ---


async def test_a_started_server_stays_is_used_and_leaves_nothing_when_stopped(
    home: dict[str, str], site: str
) -> None:
    await anyio.to_thread.run_sync(_live, home, f"{site}/page")


def _live(home: dict[str, str], url: str) -> None:
    server = start(home, "--plugin", str(PROBE), "--open", url)
    pid = server["pid"]
    assert is_alive(pid)
    assert [each["name"] for each in server["plugins"]] == ["probe"]
    assert [each["url"] for each in server["tabs"]] == [url]
    family = {pid, *descendants(pid)}
    assert any("chrom" in psutil.Process(each).name() for each in family)

    call = opentabs("call", "probe_echo", '{"value": {"a": [1]}}', env=home)
    assert (call.returncode, json.loads(call.stdout)) == (0, {"value": {"a": [1]}})
    assert status(home)["pid"] == pid

    stopped = opentabs("stop", env=home)
    said = f"Stopped the server 'default' (pid {pid}).\n"
    assert (stopped.returncode, stopped.stderr) == (0, said)
    assert alive(family) == {}
    none = opentabs("status", env=home)
    said = "No server is running. Start one: opentabs start\n"
    assert (none.returncode, none.stderr) == (3, said)


def test_a_second_start_says_that_one_runs(home: dict[str, str]) -> None:
    server = start(home, "--browser", "none", "--plugin", str(PROBE))
    second = opentabs("start", "--port", "0", env=home)
    assert second.returncode == 2
    assert f"The server 'default' is already running (pid {server['pid']})" in second.stderr
    assert status(home)["pid"] == server["pid"]


def test_a_start_warns_of_a_permission_that_names_nothing(home: dict[str, str]) -> None:
    rule = ("--permission", "probe.eco=off")
    run = opentabs(
        "start", "--port", "0", "--browser", "none", "--plugin", str(PROBE), *rule, env=home
    )
    assert run.returncode == 0
    assert 'warning: permissions."probe.eco" has no effect' in run.stderr
    assert 'permissions."probe.eco" has no effect' in opentabs("status", env=home).stdout


def test_ctrl_c_while_a_start_waits_for_the_browser_says_that_the_server_runs(
    home: dict[str, str], tmp_path: Path
) -> None:
    command = [*OPENTABS, "start", "--port", "0", "--attach", "--user-data-dir", str(tmp_path)]
    with terminal(command, tmp_path, XDG_STATE_HOME=home["XDG_STATE_HOME"]) as shown:
        shown.wait_for("chrome://inspect")
        os.killpg(shown.process.pid, signal.SIGINT)
        assert shown.wait() == 130
    server = status(home)
    said = f"The server 'default' (pid {server['pid']}) is still running. Stop it: opentabs stop"
    assert said in " ".join(shown.output.split())


def test_a_killed_server_is_noticed_and_its_name_is_free(home: dict[str, str]) -> None:
    server = start(home, "--browser", "none", "--plugin", str(PROBE))
    os.kill(server["pid"], signal.SIGKILL)
    assert opentabs("status", env=home).returncode == 3
    assert start(home, "--browser", "none", "--plugin", str(PROBE))["pid"] != server["pid"]


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(
    home: dict[str, str], tmp_path: Path
) -> None:
    before = descendants(os.getpid())
    run = opentabs("start", "--set", "nobody.key=1", "--plugin", str(PROBE), env=home)
    assert run.returncode == 2
    assert run.stderr.startswith("error: --set names a plugin that is not loaded")
    assert descendants(os.getpid()) <= before
    assert not [*(tmp_path / "state").rglob("*.json")]


def test_an_option_that_serve_does_not_have_is_refused_at_once(home: dict[str, str]) -> None:
    run = opentabs("start", "--no-such-option", env=home)
    assert run.returncode == 2
    assert "No such option: --no-such-option" in run.stderr


def test_a_restarted_server_has_its_options_variables_and_directory(
    home: dict[str, str], tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "chat", "1")
    options = ["--port", "0", "--browser", "none", "--plugin", "chat"]
    run = opentabs("start", *options, env={**home, "OPENTABS_TOKEN": "t" * 16}, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    first = status(home)
    run = opentabs("restart", env={**home, "OPENTABS_PLUGINS": "/no/such"}, cwd=Path("/"))
    assert run.returncode == 0, run.stderr
    second = status(home)
    assert second["pid"] != first["pid"]
    assert second["plugins"] == first["plugins"]
    assert second["plugins"][0]["directory"] == str(plugin)
    with pytest.raises(HTTPError, match="401") as refused:
        urlopen(Request(second["mcpUrl"]))
    refused.value.close()


def test_servers_with_names_run_beside_each_other(home: dict[str, str]) -> None:
    try:
        for name in ("one", "two"):
            options = ["--name", name, "--port", "0", "--browser", "none", "--plugin", str(PROBE)]
            run = opentabs("start", *options, env=home)
            assert run.returncode == 0, run.stderr
            hint = "opentabs status{0} · opentabs logs -f{0} · opentabs stop{0}\n"
            assert hint.format(f" --name {name}") in run.stderr
        run = opentabs("status", "--json", env=home)
        assert [each["name"] for each in json.loads(run.stdout)] == ["one", "two"]
        run = opentabs("tools", "--server", "two", "--json", env=home, cwd=Path("/"))
        assert "probe_echo" in [each["name"] for each in json.loads(run.stdout)]
    finally:
        for name in ("one", "two"):
            assert opentabs("stop", "--name", name, env=home).returncode == 0


def test_the_log_has_what_happened_and_can_be_followed(home: dict[str, str]) -> None:
    server = start(home, "--browser", "none", "--plugin", str(PROBE))
    said = opentabs("logs", env=home).stdout
    assert "INFO opentabs_py: Serving" in said
    assert opentabs("logs", "-n", "1", env=home).stdout == said.splitlines(keepends=True)[-1]
    assert opentabs("logs", "--plugin", "probe", env=home).stdout == ""
    log = Path(server["log"])
    with log.open("a") as out:
        out.write("a line\n")
    with subprocess.Popen(
        [*OPENTABS, "logs", "-f", "-n", "1"], env=home, stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        lines = iter(following.stdout.readline, "")
        assert "a line\n" in lines  # printed after the command has read the size of the log
        with log.open("a") as out:
            out.write("another line\n")
        assert "another line\n" in lines
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENT) == 130


# --- calls ---


@asynccontextmanager
async def running(name: str, *plugins: Path) -> AsyncGenerator[OpenTabs]:
    """A server in this process that commands find by this name."""
    settings = load_settings(port=0, profile=None, headed=False)
    with claim(name, ServeCommand([], Path.cwd())) as claimed:
        async with OpenTabs(plugins=plugins, settings=settings) as tabs:
            stopped = anyio.Event()
            async with registered(tabs, claimed, stop=stopped.set):
                yield tabs


@pytest.fixture(scope="module")
async def server(site: str) -> AsyncGenerator[OpenTabs]:  # noqa: ARG001 (which ends after it)
    async with running("default", PROBE, demo_plugin_dir()) as tabs:
        yield tabs


async def run(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return await anyio.to_thread.run_sync(lambda: opentabs(*args, env=os.environ, cwd=cwd))


async def test_a_call_prints_the_same_as_with_a_server_of_its_own(
    server: OpenTabs, chat: str
) -> None:
    call = ["call", "demo_export_messages", '{"channelId": "random"}', "--open", chat, "--json"]
    plugins = ["--plugin", str(demo_plugin_dir())]
    there = await run(*call)
    own = await run(*call, *plugins, "--fresh")
    assert (there.returncode, own.returncode) == (0, 0), there.stderr + own.stderr
    one, two = json.loads(there.stdout), json.loads(own.stdout)
    assert one.keys() == two.keys()
    for same in ("isError", "content", "structuredContent", "error"):
        assert one[same] == two[same]
    assert [{**each, "at": 0} for each in one["progress"]] == [
        {**each, "at": 0} for each in two["progress"]
    ]
    assert len(one["progress"]) == 3
    assert server.context.pages[-1].url == "about:blank"  # what was opened for the call is closed


@pytest.fixture(scope="module")
async def chat(server: OpenTabs) -> AsyncGenerator[str]:  # noqa: ARG001 (which ends after it)
    """The address of the demo site."""
    from opentabs_py.demo import create_demo_site
    from opentabs_py.server.http.listen import bind
    from opentabs_py.server.http.serve import serve_http

    listener = bind("127.0.0.1", 0)
    async with serve_http(create_demo_site(page_delay=0), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


async def test_a_call_imports_neither_playwright_nor_the_mcp_sdk(
    server: OpenTabs, site: str
) -> None:
    page = await server.open(f"{site}/page")
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "opentabs_py",
        "call",
        "probe_echo",
        '{"value": 1}',
    ]
    call = await anyio.to_thread.run_sync(
        lambda: subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    )
    assert call.returncode == 0, call.stderr[-2000:]
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0] for line in call.stderr.splitlines()
    }
    assert "typer" in imported
    assert not imported & {"playwright", "mcp", "starlette"}
    await page.close()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["no_such_tool"], 2, "There is no tool 'no_such_tool'"),
        (["probe_echo", "--idle", "soon"], 2, "write a number without a unit"),
        (["demo_export_messages", "{}"], 2, '"channelId" is a required property'),
        (["probe_echo", "--open", "http://127.0.0.1:9/"], 3, "Cannot open http://127.0.0.1:9/"),
    ],
)
async def test_a_call_that_cannot_be_made_exits_with_the_usual_code(
    arguments: list[str], code: int, said: str
) -> None:
    call = await run("call", *arguments)
    assert call.returncode == code
    assert said in " ".join(call.stderr.split())
    assert call.stdout == ""


async def test_a_tool_that_fails_is_distinguished_from_a_chain_that_does(
    server: OpenTabs, site: str
) -> None:
    page = await server.open(f"{site}/page")
    failed = await run("call", "probe_fail", '{"kind": "string"}', "--json")
    await page.close()
    assert failed.returncode == 1
    assert "just text" in json.loads(failed.stdout)["content"][0]["text"]


async def test_a_call_says_what_becomes_of_a_tool_that_timed_out(
    server: OpenTabs, site: str
) -> None:
    page = await server.open(f"{site}/page")
    call = ["call", "probe_run", '{"steps": [{"block": 900}]}', "--idle", "0.3"]
    shown = await run(*call)
    assert shown.returncode == 3
    assert "The tool probe_run timed out. It returned " in shown.stderr
    assert "TIMEOUT_IDLE" in shown.stderr
    document = await run(*call, "--json")
    assert (document.returncode, document.stderr) == (3, "")
    await page.close()


async def test_ctrl_c_cancels_the_call_in_its_page(server: OpenTabs, site: str) -> None:
    page = await server.open(f"{site}/page")
    steps = json.dumps({"key": "k", "steps": [{"report": {"message": "on it"}}, {"wait": 60000}]})
    async with await anyio.open_process(
        [*OPENTABS, "call", "probe_run", steps], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as call:
        assert call.stderr is not None
        await BufferedByteReceiveStream(call.stderr).receive_until(b"on it", 10_000)
        call.send_signal(signal.SIGINT)
        with anyio.fail_after(PATIENT):
            assert await call.wait() == 130
            await page.wait_for_function("window.probe.aborted.k !== undefined")
    await page.close()


async def test_a_plugin_is_served_for_the_time_of_the_call_that_names_it(
    server: OpenTabs, site: str, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "extra", "7", tools=["version"])
    page = await server.open(f"{site}/page")
    call = await run("call", "extra_version", cwd=plugin)
    assert (call.returncode, call.stdout) == (0, '{"version":"7"}\n'), call.stderr
    assert "extra_version" not in [tool.name for tool in server.tools]
    assert await page.evaluate("window.notes") == ["came 7", "torn down 7"]
    await page.close()


async def test_two_calls_at_once_may_name_the_same_plugin(
    server: OpenTabs, site: str, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "extra", "7")
    page = await server.open(f"{site}/page")
    async with anyio.create_task_group() as tasks:

        async def wait() -> None:
            call = await run("call", "extra_wait", "--plugin", str(plugin))
            assert (call.returncode, call.stdout) == (0, '{"version":"7"}\n'), call.stderr

        tasks.start_soon(wait)
        await page.wait_for_function("window.release !== undefined")
        call = await run("call", "extra_version", "--plugin", str(plugin))
        assert (call.returncode, call.stdout) == (0, '{"version":"7"}\n'), call.stderr
        assert await page.evaluate("window.notes") == ["came 7", "waits in 7"]
        await page.evaluate("release()")
    await page.wait_for_function("window.notes.at(-1) === 'torn down 7'")
    await page.close()


@pytest.mark.usefixtures("server")
async def test_a_plugin_that_cannot_be_served_is_refused(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path / "extra", "7")
    (plugin / "dist" / "tools.json").write_text("{")
    call = await run("call", "extra_version", "--plugin", str(plugin))
    assert call.returncode == 2
    assert "a plugin was skipped" in call.stderr


@pytest.mark.usefixtures("server")
async def test_the_local_interface_needs_its_token() -> None:
    state = read_state()
    assert state is not None
    url = f"http://127.0.0.1:{state.local_port}/status"

    def ask(**headers: str) -> int:
        try:
            with urlopen(Request(url, headers=headers)) as answer:
                return int(answer.status)
        except HTTPError as error:
            with error:
                return error.code

    assert await anyio.to_thread.run_sync(ask) == 401
    right = {"Authorization": f"Bearer {state.local_token}"}
    assert await anyio.to_thread.run_sync(lambda: ask(**right)) == 200
    foreign = {**right, "Origin": "https://evil.example"}
    assert await anyio.to_thread.run_sync(lambda: ask(**foreign)) == 403


async def test_a_client_is_pointed_at_the_running_server(server: OpenTabs) -> None:
    config = await run("config", "--client", "cursor", "--running")
    assert config.returncode == 0, config.stderr
    assert json.loads(config.stdout)["mcpServers"]["opentabs"]["url"] == server.mcp_url
    none = await run("config", "--client", "cursor", "--running", "--server", "other")
    assert none.returncode == 2
    assert "No server named 'other' is running" in none.stderr


def test_doctor_says_how_the_browser_of_a_running_server_connects(home: dict[str, str]) -> None:
    server = start(home, "--browser", "none", "--plugin", str(PROBE))
    guide = f"{server['mcpUrl'].removesuffix('/mcp')}/extension"

    run = opentabs("doctor", "--json", env=home)

    document = json.loads(run.stdout)
    assert run.returncode == 3
    assert document["broken"] == "The browser of 'default' is connected"
    assert f"{guide} shows how to load it" in document["checks"][-1]["detail"]


async def test_status_and_doctor_say_what_the_server_does(server: OpenTabs, site: str) -> None:
    page = await server.open(f"{site}/page")
    record = anyio.Path(state_dir() / "default.json")
    state = json.loads(await record.read_bytes())
    state["started"] -= 24 * 60 * 60  # as if the clock had been set to tomorrow since
    await record.write_text(json.dumps(state))
    said = (await run("status")).stdout
    assert re.search(r"● default  up \d+ (s|min), browser connected, 0 calls running", said)
    assert re.search(rf"^  tools +{len(server.tools)} *$", said, re.MULTILINE)
    assert f"{site}/page" in said
    await page.close()
    doctor = await run("doctor")
    assert "The running server 'default' answers" in doctor.stderr
