"""The commands of a fleet: `worker`, `fleet status`, `fleet drain`, `start` and `call`."""

import gc
import json
import os
import signal
import subprocess
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from e2e.fleet.members import (
    OPENTABS,
    TOOLS,
    Fleet,
    endpoint,
    nats_server,
    poll,
    until,
    worker_in_this_process,
)
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.core.fleet.messages import FLEET_VERSION
from opentabs_py.errors import CallRefusedError, ChainError
from opentabs_py.fleet.worker import FleetWorker
from opentabs_py.session.session import OpenTabs
from tests.session.built import build


def _opentabs(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OPENTABS, *args], capture_output=True, text=True, timeout=60, check=False
    )


async def _run(*args: str) -> subprocess.CompletedProcess[str]:
    return await anyio.to_thread.run_sync(lambda: _opentabs(*args))


async def test_status_shows_the_workers(fleet: Fleet) -> None:
    none = await _run("fleet", "status", *fleet.options)
    assert (none.returncode, none.stdout) == (3, "")
    fleet.worker("one", "--label", "site=eu", "--max-calls", "3")
    async with endpoint(fleet, workers=1):
        shown = await _run("fleet", "status", *fleet.options)
        assert shown.returncode == 0
        assert "● one" in shown.stdout
        assert "site=eu" in shown.stdout
        status = json.loads((await _run("fleet", "status", "--json", *fleet.options)).stdout)
        [document], [seen] = status["workers"], status["endpoints"]
        assert (seen["pid"], seen["running"], seen["waiting"]) == (os.getpid(), 0, 0)
        assert document["name"] == "one"
        assert document["labels"] == {"site": "eu"}
        assert document["maxCalls"] == 3


async def test_call_calls_a_tool_of_a_worker(shared: Fleet) -> None:
    async with endpoint(shared, workers=1):
        call = await _run("call", "work", '{"key": "k", "reports": 2}', *shared.options)
        assert (call.returncode, call.stdout) == (0, "k\n"), call.stderr


async def test_a_worker_collects_garbage_as_often_as_any_program(
    fleet: Fleet, tmp_path: Path
) -> None:
    file = tmp_path / "collecting.py"
    file.write_text("import gc\ndef threshold() -> int:\n    return gc.get_threshold()[0]\n")
    fleet.worker("one", "--tools", f"{file}:threshold")
    async with endpoint(fleet, workers=1) as tabs:
        assert await tabs.call("threshold") == gc.get_threshold()[0]


async def test_tools_lists_those_of_the_workers(shared: Fleet) -> None:
    async with endpoint(shared, workers=1):
        listed = await _run("tools", "--json", *shared.options)
    assert [each["name"] for each in json.loads(listed.stdout)] == ["big", "who", "work"]
    assert {each["module"] for each in json.loads(listed.stdout)} == {"fleet_tools"}
    none = await _run("tools", *shared.options, "--label", "site=us")
    assert (none.returncode, none.stdout) == (3, "")
    assert "No worker labelled site=us takes calls" in none.stderr


def test_a_worker_with_only_python_tools_opens_no_pages(shared: Fleet) -> None:
    url, tools = "http://127.0.0.1:9/", str(TOOLS)
    refused = _opentabs("worker", "--tools", tools, "--open", url, *shared.options)
    assert refused.returncode == 2
    assert "--open needs a browser" in refused.stderr


@pytest.mark.parametrize("wanted", [["--fleet", "empty"], ["--label", "site=us"]])
async def test_a_call_that_no_worker_can_take_is_not_blamed_on_its_tool(
    shared: Fleet, wanted: list[str]
) -> None:
    called = _opentabs("call", "work", "{}", "--json", *shared.options, *wanted)
    error = json.loads(called.stdout)["error"]
    assert (called.returncode, error["code"], error["retryable"]) == (3, "NO_WORKER", True)
    assert wanted[1] in error["message"]


async def test_a_drained_worker_ends_its_calls_takes_no_more_and_leaves(fleet: Fleet) -> None:
    worker = fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        release = fleet.directory / "release"
        call = await tabs.start("work", {"key": "k", "until": str(release)})
        await fleet.until("began", "k")
        other = fleet.worker("two")
        await until(tabs, lambda known: len(known) == 2)
        drained = await _run("fleet", "drain", "one", *fleet.options)
        assert drained.returncode == 0, drained.stderr
        await until(tabs, lambda known: [each.name for each in known] == ["two"])
        assert await tabs.call("who") == other.process.pid
        assert not call.ended
        release.touch()
        assert await call.result() == "k"
        assert await anyio.to_thread.run_sync(lambda: worker.process.wait(PATIENT)) == 0


async def test_the_first_signal_drains_a_worker_and_the_second_stops_it(fleet: Fleet) -> None:
    worker = fleet.worker("one")
    async with endpoint(fleet, workers=1) as tabs:
        call = await tabs.start("work", {"key": "k", "seconds": 60})
        await fleet.until("began", "k")
        worker.process.send_signal(signal.SIGTERM)
        await until(tabs, lambda known: known == [])
        assert not call.ended
        worker.process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(lambda: worker.process.wait(PATIENT)) == 0
        with anyio.fail_after(PATIENT):
            await call.wait()
        assert isinstance(call.error, ChainError)
        assert call.error.detail.code == "SERVER_STOPPED"
        await fleet.until("cancelled", "k")


async def test_an_endpoint_in_the_background_says_how_many_workers_it_has(
    shared: Fleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with endpoint(shared, workers=1):
        started = await _run("start", "--port", "0", *shared.options)
        try:
            assert "endpoint of 1 worker at nats://" in " ".join(started.stderr.split())
            status = json.loads((await _run("status", "--json")).stdout)
            assert [each["name"] for each in status[0]["fleet"]["workers"]] == ["one"]
            called = await _run("call", "work", '{"key": "background"}')
            assert (called.returncode, called.stdout) == (0, "background\n")
            plugin = build(tmp_path / "chat")
            for key in ("first", "second"):
                beside = await _run("call", "work", f'{{"key": "{key}"}}', "--plugin", str(plugin))
                assert (beside.returncode, beside.stdout) == (0, f"{key}\n"), beside.stderr
                assert "this server's plugins are on its workers" in beside.stderr
            opened = await _run("call", "work", '{"key": "k"}', "--open", "http://127.0.0.1:1")
            assert opened.returncode == 3
            assert "An endpoint of a fleet has no browser" in opened.stderr
        finally:
            assert (await _run("stop")).returncode == 0


async def test_an_endpoint_has_no_plugins_but_the_permissions_of_its_users_settings(
    shared: Fleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    file = tmp_path / "CONFIG" / "opentabs" / "config.toml"
    file.parent.mkdir(parents=True)
    of_chat = f'plugins = ["{build(tmp_path / "chat")}"]\nheaded = true\n[plugin_settings.chat]\n'
    file.write_text(f'{of_chat}site = "x"\n')
    async with endpoint(shared, workers=1) as tabs:
        assert tabs.plugins == []
        started = await _run("start", "--port", "0", *shared.options)
        assert started.returncode == 0, started.stderr
        try:
            [status] = json.loads((await _run("status", "--json")).stdout)
            assert (status["plugins"], status["skipped"]) == ([], [])
            called = await _run("call", "work", '{"key": "allowed"}')
            assert (called.returncode, called.stdout) == (0, "allowed\n"), called.stderr
            file.write_text(f'{of_chat}site = "x"\n[permissions]\nfleet_tools = "off"\n')
            with anyio.fail_after(PATIENT):
                while (await _run("call", "work", '{"key": "again"}')).returncode != 2:
                    pass
        finally:
            assert (await _run("stop")).returncode == 0


async def test_a_worker_notices_that_its_settings_have_changed(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "opentabs" / "config.toml"
    file.parent.mkdir()
    file.write_text('[permissions]\nfleet_tools = "ask"\n')
    fleet.worker("one")
    settings = load_settings(port=0, permissions={"fleet_tools": "auto"})  # its user's own
    async with endpoint(fleet, workers=1, settings=settings) as tabs:
        with pytest.raises(CallRefusedError, match="start the worker with --permission"):
            await tabs.call("who")
        file.write_text('[permissions]\nfleet_tools = "auto"\n"fleet_tools.big" = "off"\n')
        await poll(lambda: tabs.internals.registry.get("big") is None)
        assert await tabs.call("who")


async def test_the_error_without_nats_names_the_address_and_hides_the_password() -> None:
    refused = await _run("fleet", "status", "--nats", "nats://me:secret@127.0.0.1:1")
    assert refused.returncode == 3
    assert "Cannot connect to NATS at nats://127.0.0.1:1" in " ".join(refused.stderr.split())
    assert "secret" not in refused.stderr


async def test_a_nats_server_that_accepts_only_short_messages_is_refused_with_the_setting(
    tmp_path: Path,
) -> None:
    with nats_server(tmp_path, "max_payload: 64KB") as nats:
        refused = await _run("worker", "--nats", nats.url, "--name", "one")
    assert refused.returncode == 3
    said = " ".join(refused.stderr.split())
    assert "accepts messages of 65,536 bytes at most, and a fleet needs 65,545" in said
    assert "Set max_payload" in said


@pytest.mark.parametrize("url", ["http://127.0.0.1", "127.0.0.1:4222", "nats://"])
def test_an_invalid_address_is_refused(url: str) -> None:
    refused = _opentabs("fleet", "status", "--nats", url)
    assert refused.returncode == 2
    assert "is not the address of a NATS server" in " ".join(refused.stderr.split())


async def test_a_second_worker_with_the_same_name_is_refused(shared: Fleet) -> None:
    async with endpoint(shared, workers=1):
        second = await _run("worker", *shared.options, "--name", "one")
        assert second.returncode == 3
        assert "A worker named one is already in the fleet" in " ".join(second.stderr.split())


async def test_a_second_worker_with_the_same_name_is_refused_while_the_first_one_starts(
    fleet: Fleet,
) -> None:
    refused: list[subprocess.CompletedProcess[str]] = []

    async def start_another(_tabs: OpenTabs, _worker: FleetWorker) -> None:
        refused.append(await _run("worker", *fleet.options, "--name", "one"))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker_in_this_process(fleet, start_another))
    [second] = refused
    assert second.returncode == 3
    assert "A worker named one is already in the fleet" in " ".join(second.stderr.split())


async def test_a_worker_of_another_version_is_refused_with_both_versions(
    shared: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    async with endpoint(shared, workers=1) as tabs:
        link = tabs.internals.fleet.link
        strange = {"version": 99, "name": "strange", "instance": "f" * 16, "opentabs": "9.9.9"}
        link.publish(link.subjects.workers, json.dumps(strange).encode())
        await poll(lambda: bool(tabs.internals.fleet.directory.refused))
        [why] = tabs.internals.fleet.directory.refused.values()
        assert "opentabs-py 9.9.9 (fleet protocol 99)" in why
        assert f"(fleet protocol {FLEET_VERSION})" in why
        assert why in caplog.messages
