"""`opentabs verify` reports what has changed on a site, and only that."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from xml.etree import ElementTree as ET

import anyio
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from e2e.browser.test_driver import driver_in
from e2e.processes import descendants
from e2e.sites.drifting_site import (
    LIST,
    ME,
    NONE,
    DriftingSite,
    Mutation,
    limited,
    mutations,
    redirected,
    renamed,
    write_tracker_plugin,
)
from e2e.sites.test_recordings import record, serving
from opentabs_py.config.settings import load_settings
from opentabs_py.core.drift.judge import judge
from opentabs_py.core.drift.report import RecordingVerdict
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.core.recording.scrub import scrub
from opentabs_py.recording.files import read_recording, write_recording
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.recording import SessionRecorder
from opentabs_py.session.session import OpenTabs
from opentabs_py.session.verifying import run_again

# The thirty runs with a mutation count too: in each, all other calls must be unchanged.
RUNS = 100 if os.environ.get("SOAK") else 8
WITHIN = 90  # s; for a command


class Rig:
    """The site, a session with its plugin, and two recordings of it."""

    def __init__(self, tabs: OpenTabs, site: DriftingSite, url: str) -> None:
        self.tabs = tabs
        self.site = site
        self.url = url
        self.recordings: list[Recording] = []

    async def record(self, file: Path) -> None:
        """Record all tools, and read the recording."""
        recorder = await SessionRecorder.start(self.tabs, self.url)
        page = await self.tabs.open(self.url)
        await self.tabs.internals.bridge.wait_ready("tracker")
        for tool, arguments in (("list", {}), ("get", {"id": 101}), ("me", {}), ("board", {})):
            await self.tabs.call(f"tracker_{tool}", arguments)
        write_recording(scrub(await recorder.stop()), file, version="1")
        await page.close()
        self.recordings.append(read_recording(file))

    async def verify(self, mutation: Mutation) -> RecordingVerdict:
        """Repeat the calls of the first recording on the changed site."""
        self.site.mutation = mutation
        first, *others = self.recordings
        return judge("tracker.har", first, others, await run_again(self.tabs, first))


@pytest.fixture(scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Rig]:
    directory = tmp_path_factory.mktemp("drift")
    settings = load_settings(port=0).model_copy(update={"strict_output": True, "audit": False})
    site, listener = DriftingSite(), bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    plugin = write_tracker_plugin(directory / "tracker")
    async with (
        serve_http(site.app(), listener),
        OpenTabs(plugins=[plugin], settings=settings) as tabs,
    ):
        rig = Rig(tabs, site, url)
        await rig.record(directory / "one.har")
        await rig.record(directory / "two.har")
        yield rig


def how(verdict: RecordingVerdict) -> dict[str, str]:
    """Return the severity, or else the state, of each call that differs from the recording."""
    return {
        call.tool: call.severity or call.state for call in verdict.calls if call.state != "same"
    }


def said(verdict: RecordingVerdict) -> str:
    found = [each.findings for each in verdict.calls]
    found += [each.findings for each in verdict.requests]
    return "\n".join(finding.text for findings in found for finding in findings)


@pytest.mark.parametrize("number", range(30))
async def test_a_change_of_the_site_is_reported_correctly(rig: Rig, number: int) -> None:
    mutation = mutations(seed=20)[number]

    verdict = await rig.verify(mutation)

    assert how(verdict) == mutation.expected, (mutation.kind, verdict)
    assert mutation.told in said(verdict), (mutation.kind, verdict)


async def test_ordinary_variation_is_not_drift(rig: Rig) -> None:
    for run in range(RUNS):
        verdict = await rig.verify(NONE)
        assert how(verdict) == {}, (run, verdict)
        assert verdict.requests == [], (run, verdict)


async def test_a_request_that_is_redirected_to_another_path_is_reported(rig: Rig) -> None:
    mutation = redirected()

    verdict = await rig.verify(mutation)

    assert how(verdict) == {}, verdict
    assert mutation.told in said(verdict), verdict


async def test_leaving_a_page_loses_no_answers(rig: Rig, tmp_path: Path) -> None:
    rig.site.mutation = NONE
    recorder = await SessionRecorder.start(rig.tabs, rig.url)
    page = await rig.tabs.open(rig.url)
    for number in range(4):
        await page.goto(f"{rig.url}?view={number}")
        await rig.tabs.internals.bridge.wait_ready("tracker")
        await rig.tabs.call("tracker_get", {"id": 101})
        await recorder.wait_read()
    write_recording(scrub(await recorder.stop()), tmp_path / "views.har", version="1")
    await page.close()
    recorded = read_recording(tmp_path / "views.har")

    live = await run_again(rig.tabs, recorded)

    read = [each.response and each.response.body for each in live.traffic.exchanges]
    assert len(read) > 8
    assert all(read)
    assert how(judge("views.har", recorded, [], live)) == {}


# --- the command ---

USE = """
async def use(page, opentabs):
    await opentabs.internals.bridge.wait_ready("tracker")
    await opentabs.call("tracker_list")
    await opentabs.call("tracker_add")
    await opentabs.call("tracker_me")
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Path, DriftingSite]]:
    """The plugin, with a recording of its site; the site keeps running."""
    plugin = write_tracker_plugin(tmp_path_factory.mktemp("verified") / "tracker")
    (plugin / "use.py").write_text(USE)
    site = DriftingSite()
    with serving(site) as url:
        done = record(plugin, url, "--script", "use.py", "--out", "tests/tracker.har")
        assert done.returncode == 0, done.stderr
        yield plugin, site


def opentabs_verify(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "opentabs_py", "verify", *arguments],
        cwd=directory,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )


def test_a_site_that_has_not_changed_is_reported_so(made: tuple[Path, DriftingSite]) -> None:
    plugin, site = made
    site.mutation = NONE

    done = opentabs_verify(plugin)

    assert done.returncode == 0, done.stderr
    assert "✓ tracker_list" in done.stdout
    assert "– tracker_add  It may change something" in done.stdout
    assert done.stdout.endswith("2 as recorded, 1 not called\n")


def test_drift_is_reported_to_users_programs_and_ci(made: tuple[Path, DriftingSite]) -> None:
    plugin, site = made
    site.mutation = renamed("title", "subject")

    done = opentabs_verify(plugin, ".", "--writes", "--junit", "out/drift.xml")
    as_json = opentabs_verify(plugin, "tests/tracker.har", "--plugin", ".", "--json")

    assert done.returncode == as_json.returncode == 1, (done.stderr, as_json.stderr)
    assert "✗ tracker_list  breaks the output schema" in done.stdout
    assert "GET /api/issues  during tracker_list  breaks the output schema" in done.stdout
    assert "issues[].title is now called subject" in done.stdout
    assert "✓ tracker_add" in done.stdout
    suite = ET.parse(plugin / "out" / "drift.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "0")
    document = json.loads(as_json.stdout)
    assert document["calls"] == {"drift": 1, "skipped": 1, "same": 1}
    assert document["recordings"][0]["calls"][0]["severity"] == "schema"


def test_only_what_breaks_a_tool_may_be_made_to_count(made: tuple[Path, DriftingSite]) -> None:
    plugin, site = made
    site.mutation = renamed("author", "writer")

    assert opentabs_verify(plugin).returncode == 1
    assert opentabs_verify(plugin, "--fail-on", "tool").returncode == 0


def test_a_site_that_limits_its_answers_has_not_drifted(made: tuple[Path, DriftingSite]) -> None:
    plugin, site = made
    site.mutation = limited(429)

    done = opentabs_verify(plugin)

    assert done.returncode == 3, done.stdout
    assert "? tracker_list" in done.stdout
    assert "returns 429" in done.stdout


def test_a_site_that_cannot_be_reached_has_not_drifted(made: tuple[Path, DriftingSite]) -> None:
    plugin, _ = made

    done = opentabs_verify(plugin, "--site", "http://127.0.0.1:9")

    assert done.returncode == 3, done.stdout
    assert done.stdout.startswith("tests/tracker.har  http://127.0.0.1:9/\n")
    assert "Cannot tell: Cannot open http://127.0.0.1:9/" in done.stdout
    assert done.stdout.endswith("2 cannot tell, 1 not called\n")


def test_a_driver_that_dies_is_an_error_of_the_command(made: tuple[Path, DriftingSite]) -> None:
    plugin, site = made
    with subprocess.Popen(
        [sys.executable, "-m", "opentabs_py", "verify"],
        cwd=plugin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as verifying:

        def die() -> Response:
            os.kill(driver_in(descendants(verifying.pid)), signal.SIGKILL)
            return JSONResponse({})

        site.mutation = Mutation("driver", {}, answer={LIST: die})
        said, warned = verifying.communicate(timeout=WITHIN)

    assert verifying.returncode == 3, (said, warned)
    assert "error: Playwright's driver died" in warned
    assert "Traceback" not in warned
    assert said == ""


async def forever() -> AsyncGenerator[bytes]:
    await anyio.sleep_forever()
    yield b""


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_reports_the_calls_made_until_then(
    made: tuple[Path, DriftingSite], end: signal.Signals, code: int
) -> None:
    plugin, site = made
    with subprocess.Popen(
        [sys.executable, "-m", "opentabs_py", "verify", "--junit", "out/part.xml"],
        cwd=plugin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as verifying:

        def interrupt() -> Response:
            # Ctrl-C in a terminal is for the browser as well.
            (os.killpg if end == signal.SIGINT else os.kill)(verifying.pid, end)
            return StreamingResponse(forever(), media_type="application/json")

        site.mutation = Mutation("interrupted", {}, answer={ME: interrupt})
        said, warned = verifying.communicate(timeout=WITHIN)

    assert verifying.returncode == code, (said, warned)
    assert "✓ tracker_list\n" in said
    assert "? tracker_me  The run was interrupted before this call had ended." in said
    assert said.endswith("1 as recorded, 1 cannot tell, 1 not called\n")
    assert "warning: The run was interrupted" in warned
    assert "Traceback" not in warned
    suite = ET.parse(plugin / "out" / "part.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "0", "2")


def test_a_tool_that_is_gone_has_not_been_verified(
    made: tuple[Path, DriftingSite], tmp_path: Path
) -> None:
    plugin, site = made
    site.mutation = NONE
    shutil.copytree(plugin, tmp_path / "tracker")
    manifest = tmp_path / "tracker" / "dist" / "tools.json"
    tools = json.loads(manifest.read_text())
    tools["tools"] = [each for each in tools["tools"] if each["name"] != "list"]
    manifest.write_text(json.dumps(tools))

    done = opentabs_verify(tmp_path / "tracker")

    assert done.returncode == 3, done.stdout
    assert "? tracker_list  No tool of this name is served" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((".",), "There is no plugin here"),
        (("chatt",), "chatt does not exist"),
        (("{plugin}", "nothing.har"), "There is no recording nothing.har"),
        (("--plugin", "{plugin}"), "There is no recording with calls of tools in {here}. Make one"),
        (("{plugin}", "--junit", "."), "Cannot write .: Is a directory. Name another file."),
        (("{plugin}", "--junit", "{plugin}/package.json/drift.xml"), "Cannot write"),
        (("{plugin}", "--fail-on", "nothing"), "'nothing' is not one of 'harmless', 'tool'"),
    ],
)
def test_what_cannot_be_verified_is_refused(
    made: tuple[Path, DriftingSite], tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    plugin, _ = made

    done = opentabs_verify(tmp_path, *(each.format(plugin=plugin) for each in arguments))

    assert done.returncode in (2, 3), done.stderr
    assert text.format(here=tmp_path) in " ".join(done.stderr.split()), done.stderr
    assert done.stdout == ""
