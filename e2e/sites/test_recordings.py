"""Record a site and its tools' calls, and replay them without the site."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from shutil import copyfile
from typing import Protocol
from urllib.parse import quote

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.applications import Starlette

from e2e.browser.test_driver import driver_in
from e2e.documents import PLUGINS
from e2e.kit.runs import HERE, INI, RUN_WITHIN, KitRun, run
from e2e.processes import descendants
from e2e.sites.recorded_site import SECRETS, Site, write_notes_plugin
from e2e.terminals import Terminal, terminal
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.recording.files import read_recording, write_recording
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http

RECORD_WITHIN = 90  # s
HOUR = 3600.0  # s
SCRIPT = """
async def use(page, opentabs):
    await opentabs.internals.bridge.wait_ready("notes")
    await opentabs.call("notes_items")
    await opentabs.call("notes_add", {"text": "tea"})
    await opentabs.call("notes_item", {"id": 1})
    await opentabs.call("notes_item", {"id": 2})
    await opentabs.call("notes_attach")
    await opentabs.call("notes_moved")
    await opentabs.call("notes_away")
    await opentabs.call("notes_gone")
    await opentabs.call("notes_refused")
    await opentabs.call("notes_watch")
    await opentabs.call("notes_talk", {"asks": [1, 2]})
    home = page.url
    await page.goto(home + "secrets")
    await page.wait_for_function("document.body.dataset.done === 'yes'")
    await page.goto(home + "old")
"""

HURRIED = 40
HURRY = f"""
async def use(page, opentabs):
    for number in range({HURRIED}):
        async with page.expect_response(f"**/?page={{number}}") as received:
            await page.evaluate("number => {{ location.href = `/?page=${{number}}` }}", number)
        await (await received.value).finished()
"""


class Served(Protocol):
    """A site to serve."""

    def app(self) -> Starlette: ...


@contextmanager
def serving(site: Served, port: int = 0) -> Generator[str]:
    """Serve a site from a thread; yield its address."""

    @asynccontextmanager
    async def serve() -> AsyncGenerator[str]:
        listener = bind("127.0.0.1", port)
        async with serve_http(site.app(), listener):
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve()) as url:
        yield url


def record(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `opentabs record`, and wait for its end."""
    return subprocess.run(
        [sys.executable, "-m", "opentabs_py", "record", *arguments],
        cwd=directory,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=RECORD_WITHIN,
        check=False,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A plugin with a recording of its site in `tests/`, and the command's output."""
    plugin = write_notes_plugin(tmp_path_factory.mktemp("recorded") / "notes")
    (plugin / "tests").mkdir()
    (plugin / "use.py").write_text(SCRIPT)
    with serving(Site()) as url:
        done = record(plugin, url, "--script", "use.py", "--out", "tests/site.har")
    assert done.returncode == 0, done.stderr
    slow = slowed(read_recording(plugin / "tests" / "site.har"))
    write_recording(slow, plugin / "tests" / "slow.har", version="1")
    return plugin, done.stderr


def slowed(recording: Recording) -> Recording:
    """Return a recording whose messages of event streams and WebSockets came an hour apart."""
    exchanges = [
        each
        if each.response is None
        else replace(
            each,
            response=replace(
                each.response,
                events=[
                    replace(event, at=event.at + number * HOUR)
                    for number, event in enumerate(each.response.events)
                ],
            ),
        )
        for each in recording.exchanges
    ]
    sockets = [
        replace(
            socket,
            frames=[
                replace(frame, at=frame.at + number * HOUR)
                for number, frame in enumerate(socket.frames)
            ],
        )
        for socket in recording.sockets
    ]
    return replace(recording, exchanges=exchanges, sockets=sockets)


@pytest.fixture(scope="module")
def replayed(made: tuple[Path, str]) -> KitRun:
    """The suite that replays the recording; the site is gone."""
    plugin, _ = made
    return run_suite(plugin, "recordings")


def run_suite(plugin: Path, suite: str, *options: str, **more: str) -> KitRun:
    tests = plugin / "tests"
    for old in tests.glob("test_*.py"):
        old.unlink()
    copyfile(HERE / f"suite_{suite}.py", tests / f"test_{suite}.py")
    (tests / "pytest.ini").write_text(INI)
    return run(tests, *options, within=RUN_WITHIN, **{**PLUGINS, **more})


def forms(secret: str) -> set[str]:
    """The encodings in which a text can appear in a recording."""
    return {
        secret,
        quote(secret, safe=""),
        quote(secret),
        json.dumps(secret)[1:-1],
        escape(secret),
        secret.replace("@", "&#64;"),
        secret.replace("@", "\\u0040"),
        b64encode(secret.encode()).decode(),
    }


# --- the recording ---


def test_two_hundred_planted_secrets_are_gone(made: tuple[Path, str]) -> None:
    plugin, _ = made
    tests = plugin / "tests"
    files = [tests / "site.har", *(tests / "site.bodies").iterdir()]
    texts = {file.name: file.read_bytes().decode("utf-8", "replace") for file in files}

    left = [
        (name, secret)
        for secret in SECRETS.all()
        for name, text in texts.items()
        if any(form in text for form in forms(secret))
    ]

    assert len({*SECRETS.all()}) == 200
    assert left == []


def test_what_was_taken_out_is_listed_with_what_is_there_instead(made: tuple[Path, str]) -> None:
    plugin, printed = made
    recording = read_recording(plugin / "tests" / "site.har")

    assert len(recording.scrubbed) >= 190  # those of one name are numbered as found
    assert all(each.count > 0 for each in recording.scrubbed)
    for kind in ("cookie", "CSRF token", "e-mail address", "JSON Web Token", "phone number"):
        assert any(each.kind == kind for each in recording.scrubbed)
        assert kind in printed
    assert 'recording="site.har"' in printed


def test_a_secret_is_replaced_by_the_same_text_everywhere(made: tuple[Path, str]) -> None:
    plugin, _ = made
    recording = read_recording(plugin / "tests" / "site.har")
    [page, *_] = [e for e in recording.exchanges if e.request.kind == "document"]
    [written] = [
        e
        for e in recording.exchanges
        if e.request.method == "POST" and e.request.url.endswith("/api/items")
    ]
    [token] = [value for name, value in written.request.headers if name == "x-csrf-token"]

    assert page.response is not None
    assert page.response.body is not None
    assert f'<meta name="csrf-token" content="{token}">'.encode() in page.response.body


def test_a_har_reader_of_another_program_finds_requests_and_bodies(made: tuple[Path, str]) -> None:
    plugin, _ = made
    tests = plugin / "tests"
    log = json.loads((tests / "site.har").read_text())["log"]

    assert log["version"] == "1.2"
    [entry] = [e for e in log["entries"] if e["request"]["url"].endswith("/api/contacts")][:1]
    assert {"startedDateTime", "time", "request", "response", "cache", "timings"} <= entry.keys()
    body = json.loads((tests / entry["response"]["content"]["_file"]).read_text())
    assert len(body["people"]) == 30
    [socket_entry] = [e for e in log["entries"] if e["request"]["url"].endswith("/socket")]
    assert [m["type"] for m in socket_entry["_webSocketMessages"]][:2] == ["receive", "send"]


def test_a_recording_is_not_replaced_unless_that_is_asked_for(made: tuple[Path, str]) -> None:
    plugin, _ = made
    before = (plugin / "tests" / "site.har").read_bytes()

    done = record(plugin, "http://127.0.0.1:9/", "--script", "use.py", "--out", "tests/site.har")

    assert done.returncode == 2
    assert "--force" in done.stderr
    assert (plugin / "tests" / "site.har").read_bytes() == before


def test_what_a_page_received_is_recorded_although_it_is_left_at_once(tmp_path: Path) -> None:
    (tmp_path / "hurry.py").write_text(HURRY)
    with serving(Site()) as url:
        done = record(tmp_path, url, "--script", "hurry.py", "--out", "site.har")

    assert done.returncode == 0, done.stderr
    pages = [
        exchange.response
        for exchange in read_recording(tmp_path / "site.har").exchanges
        if "?page=" in exchange.request.url
    ]
    assert len(pages) == HURRIED
    assert all(page is not None and page.body for page in pages)


@pytest.mark.parametrize("how", ["OSError", "SystemExit"])
def test_a_script_that_fails_says_so_and_leaves_what_was_recorded(tmp_path: Path, how: str) -> None:
    (tmp_path / "use.py").write_text(f"async def use(page, opentabs):\n    raise {how}('no tea')")
    with serving(Site()) as url:
        done = record(tmp_path, url, "--script", "use.py", "--out", "some.har", "--scrub", "Notes")

    assert done.returncode == 1
    assert f"error: The script failed at use.py:2: {how}: no tea" in done.stderr
    recording = read_recording(tmp_path / "some.har")
    [page] = [e for e in recording.exchanges if e.request.kind == "document"]
    assert page.response is not None
    assert b"<title>text-1</title>" in (page.response.body or b"")


# --- its replay ---

PASSES = [
    "test_the_recorded_calls_return_what_they_returned",
    "test_a_member_that_only_prevents_caching_is_not_compared",
    "test_graphql_is_compared_by_operation_and_variables",
    "test_messages_come_at_once",
    "test_messages_come_when_they_came",
    "test_a_page_that_redirects_does_so_again",
    "test_a_route_of_the_test_comes_first",
    "test_fails_without_a_mark",
]


@pytest.mark.parametrize("name", PASSES)
def test_it_is_replayed(replayed: KitRun, name: str) -> None:
    assert replayed[name].outcome == "passed", replayed.output


def test_a_request_that_was_not_recorded_fails_the_test_with_the_nearest_one(
    replayed: KitRun,
) -> None:
    case = replayed["test_fails_for_what_was_not_recorded"]

    assert case.outcome == "failed"
    assert "The recording site.har does not answer:" in case.text
    assert "POST http://127.0.0.1:" in case.text
    assert "body variables.id: recorded 1, sent 3" in case.text
    assert "body operationName" not in case.text  # it is the same
    assert "--opentabs-record=missing" in case.text


def test_a_write_is_answered_as_often_as_it_was_recorded(replayed: KitRun) -> None:
    case = replayed["test_fails_for_writing_twice"]

    assert case.outcome == "failed"
    assert "has this request only once" in case.text


def test_a_message_that_was_not_recorded_fails_the_test(replayed: KitRun) -> None:
    case = replayed["test_fails_for_a_message_that_was_not_sent"]

    assert case.outcome == "failed"
    assert 'The page sent {"ask":7}' in case.text
    assert 'recorded: {"ask":1}' in case.text


def test_a_test_without_its_recording_says_how_to_make_it(replayed: KitRun) -> None:
    case = replayed["test_fails_without_a_recording"]

    assert case.outcome == "error"
    assert "opentabs record" in case.text
    assert "--opentabs-record=missing" in case.text


# --- recording in tests ---


@pytest.mark.timeout(300)  # it runs pytest seven times
def test_only_a_test_that_passes_writes_its_recording(tmp_path: Path) -> None:
    plugin = write_notes_plugin(tmp_path / "notes")
    (plugin / "tests").mkdir()
    with serving(Site()) as url:
        made = run_suite(plugin, "recording_failures", "--opentabs-record=all", SITE=url)
    failed = ("test_fails", "test_fails_softly", "test_breaks_its_contract")
    expected = {"test_passes": "passed", **dict.fromkeys(failed, "failed")}
    assert made.outcomes == expected, made.output
    assert [each.name for each in (plugin / "tests" / "made").glob("*.har")] == ["passes.har"]


def test_tests_record_what_is_missing_and_replay_it_without_the_site(tmp_path: Path) -> None:
    plugin = write_notes_plugin(tmp_path / "notes")
    (plugin / "tests").mkdir()
    file = plugin / "tests" / "made" / "items.har"
    site = Site()
    with serving(site) as url:
        first = run_suite(plugin, "recording", "--opentabs-record=missing", SITE=url, IDS="1")
        assert first["test_items"].outcome == "passed", first.output
        count = len(read_recording(file).exchanges)

        more = run_suite(plugin, "recording", "--opentabs-record=missing", SITE=url, IDS="1,2")
        assert more["test_items"].outcome == "passed", more.output
        recording = read_recording(file)
        assert len(recording.exchanges) == count + 1
        assert [each.arguments["id"] for each in recording.calls] == [1, 2]

    offline = run_suite(plugin, "recording", SITE=url, IDS="1,2")
    assert offline["test_items"].outcome == "passed", offline.output
    missing = run_suite(plugin, "recording", SITE=url, IDS="1,2,3")
    assert missing["test_items"].outcome == "failed"

    with serving(site, int(url.rpartition(":")[2].strip("/"))):
        rest = {"SITE": "recorded", "IDS": "3", "MORE": "1"}
        for workers in ("-n0", "-n2"):  # one process or two write the recording's parts
            again = run_suite(plugin, "recording", "--opentabs-record=all", workers, **rest)
            assert {*again.outcomes.values()} == {"passed"}, again.output
            recording = read_recording(file)
            bodies = [e.request.body for e in recording.exchanges if e.request.method == "POST"]
            asked = [json.loads(body)["variables"]["id"] for body in bodies if b"variables" in body]
            called = [each.arguments["id"] for each in recording.calls]
            assert sorted(asked) == sorted(called) == [3, 4]
            if workers == "-n0":  # with two processes, one may call first and request last
                assert asked == called


# --- nothing leaves the machine ---

TRAPS = """
<!doctype html><title>Traps</title>
<link rel="preconnect" href="TRAP"><link rel="dns-prefetch" href="TRAP">
<link rel="prefetch" href="TRAPprefetch">
<body><img src="TRAPimage"><iframe src="TRAPframe"></iframe>
<script type="module">
const settled = (promise) => promise.then(() => 1, () => 0);
const work = (code, Kind) => new Promise((resolve) => {
  const worker = new Kind(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  const port = worker.port ?? worker;
  port.onmessage = resolve;
  worker.onerror = resolve;
});
const inWorker = `
  const report = (to) => {
    const socket = new WebSocket("SOCKETworker");
    socket.onclose = () => fetch("TRAPworker").catch(() => 0).then(() => to.postMessage(1));
  };
  if (self.postMessage) report(self); else self.onconnect = (event) => report(event.ports[0]);
`;
navigator.sendBeacon("TRAPbeacon", "x");
const once = (target, event) => new Promise((resolve) => target.addEventListener(event, resolve));
const source = once(new EventSource("TRAPevents"), "error");
const socket = once(new WebSocket("SOCKETpage"), "close");
const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:PORT" }] });
peer.createDataChannel("x");
const gathered = new Promise((resolve) => {
  peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve();
});
await peer.setLocalDescription(await peer.createOffer());
await Promise.all([
  settled(fetch("TRAPfetch")),
  settled(fetch("redirected")),
  work(inWorker, Worker),
  work(inWorker, SharedWorker),
  source,
  socket,
  gathered,
  navigator.serviceWorker.register("worker.js").then((it) => new Promise((resolve) => {
    const worker = it.installing;
    worker.onstatechange = () => worker.state === "redundant" || worker.state === "activated"
      ? resolve() : 0;
  })).catch(() => 0),
]);
document.body.dataset.done = "yes";
</script>
"""
SERVICE_WORKER = 'oninstall = (event) => event.waitUntil(fetch("TRAPservice").catch(() => 0));'


class Trap:
    """A server that counts TCP connections and UDP packets."""

    def __init__(self) -> None:
        self.visits: list[str] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._received = threading.Event()
        for wait in (self._accept, self._receive):
            threading.Thread(target=wait, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                visitor, _ = self._tcp.accept()
            except OSError:
                return
            self.visits.append("TCP")
            visitor.close()

    def _receive(self) -> None:
        while True:
            try:
                self._udp.recvfrom(2048)
            except OSError:
                return
            self.visits.append("UDP")
            self._received.set()

    def provoke(self) -> None:
        """Send it a packet, and wait until it has counted that."""
        self._udp.sendto(b"", ("127.0.0.1", self.port))
        self._received.wait(30)

    def close(self) -> None:
        for each in (self._tcp, self._udp):
            each.shutdown(socket.SHUT_RDWR) if each is self._tcp else None
            each.close()


def test_nothing_leaves_a_replayed_test(tmp_path: Path) -> None:
    trap = Trap()
    plugin = write_notes_plugin(tmp_path / "notes")
    (plugin / "tests").mkdir()
    url, trap_url = "http://127.0.0.1:9/", f"http://127.0.0.1:{trap.port}/"

    def entry(path: str, text: str, mime: str, status: int = 200, to: str = "") -> object:
        for name, value in (("TRAP", trap_url), ("SOCKET", f"ws://127.0.0.1:{trap.port}/")):
            text, to = text.replace(name, value), to.replace(name, value)
        headers = [{"name": "content-type", "value": mime}, {"name": "location", "value": to}]
        return {
            "startedDateTime": "2026-11-23T12:00:00Z",
            "request": {"method": "GET", "url": url + path},
            "response": {
                "status": status,
                "headers": headers if to else headers[:1],
                "content": {"text": text.replace("PORT", str(trap.port)), "mimeType": mime},
            },
            "_resourceType": "document" if mime == "text/html" else "fetch",
        }

    entries = [
        entry("", TRAPS, "text/html"),
        entry("worker.js", SERVICE_WORKER, "text/javascript"),
        entry("redirected", "", "text/plain", 302, "TRAPredirected"),
        entry("gone", "", "text/html", 302, "TRAPgone"),
    ]
    (plugin / "tests" / "traps.har").write_text(json.dumps({"log": {"entries": entries}}))
    (plugin / "tests" / "trap.txt").write_text(trap_url)

    ran = run_suite(plugin, "offline", "-k", "traps")
    visits = [*trap.visits]
    run_suite(plugin, "offline", "-k", "plain")
    trap.provoke()
    trap.close()

    case = ran["test_traps"]
    assert visits == [], ran.output
    assert {*trap.visits} == {"TCP", "UDP"}, "the trap counts not everything"
    # Each of the page's own attempts was noticed, and fails the test.
    assert case.outcome == "failed"
    for path in ("fetch", "image", "frame", "redirected"):
        assert f"GET {trap_url}{path}" in case.text


# --- by hand ---


@pytest.mark.parametrize("how", ["Enter", "Ctrl-C"])
def test_a_recording_by_hand_ends_with_enter_or_ctrl_c(
    tmp_path: Path, display: str, how: str
) -> None:
    command = [sys.executable, "-m", "opentabs_py", "record"]
    with (
        serving(Site()) as url,
        terminal([*command, url, "--out", "by-hand.har"], tmp_path, DISPLAY=display) as running,
    ):
        running.wait_for("press Enter here")
        if how == "Enter":
            running.type("\n")
        else:
            os.kill(running.process.pid, signal.SIGINT)
        code = running.wait()

    assert code == 0, running.output
    assert "scrubbed" in running.output
    assert "Make a plugin: opentabs new NAME --from by-hand.har" in running.output
    exchanges = read_recording(tmp_path / "by-hand.har").exchanges
    assert [e.request.url for e in exchanges if e.request.kind == "document"] == [url]


def kill_driver(running: Terminal) -> None:
    os.kill(driver_in(descendants(running.process.pid)), signal.SIGKILL)


def test_without_a_screen_the_error_says_how_to_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)

    done = record(tmp_path, "http://127.0.0.1:9/")

    assert (done.returncode, "--script FILE.py" in done.stderr) == (3, True)


def test_a_recording_whose_driver_dies_is_kept_and_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "opentabs_py", "record", "--headless"]
    with (
        serving(Site()) as url,
        terminal([*command, url, "--out", "cut.har"], tmp_path) as running,
    ):
        running.wait_for("The browser has no window.")
        running.wait_for("press Enter here or press Ctrl-C.")
        kill_driver(running)
        code = running.wait()

    assert code == 3, running.output
    assert "error: Playwright's driver died" in running.output
    assert "Traceback" not in running.output
    exchanges = read_recording(tmp_path / "cut.har").exchanges
    assert url in [each.request.url for each in exchanges]


def test_a_driver_that_dies_is_not_the_failure_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(
        "async def use(page, opentabs):\n    print('Used', flush=True)\n"
        "    await page.wait_for_timeout(60_000)\n"
    )
    command = [sys.executable, "-m", "opentabs_py", "record", "--script", "use.py"]
    with (
        serving(Site()) as url,
        terminal([*command, url, "--out", "cut.har"], tmp_path) as running,
    ):
        running.wait_for("Used")
        kill_driver(running)
        code = running.wait()

    assert code == 3, running.output
    assert "error: Playwright's driver died" in running.output
    assert "The script failed" not in running.output
    assert "Traceback" not in running.output
