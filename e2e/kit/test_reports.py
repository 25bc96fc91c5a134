"""The report of a failed test, and its artifacts."""

import json
import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from e2e.kit.runs import HAS_FFMPEG, KitRun, run_kit, with_ffmpeg
from opentabs_py.tracing.file import read_trace

OPTIONS = [
    "--tracing=retain-on-failure",
    "--screenshot=only-on-failure",
    "--opentabs-trace=retain-on-failure",
    "--output=kept",
    *(["--video=retain-on-failure"] if HAS_FFMPEG else []),
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    directory = tmp_path_factory.mktemp("reports")
    return run_kit(
        directory,
        "reports",
        *OPTIONS,
        GITHUB_ACTIONS="true",
        GITHUB_WORKSPACE=str(directory.parent),
    )


def test_the_terminal_shows_every_call_of_the_test_hop_by_hop(ran: KitRun) -> None:
    _, _, failure = ran.output.partition("= FAILURES =")
    _, _, section = failure.partition("OpenTabs: the calls of this test")
    section = section.partition("____")[0]

    assert ran.outcomes["test_fails"] == "failed", ran.output
    for line in (
        r"✓ demo_list_channels .* succeeded",
        r"✓ probe_run .* succeeded",
        r"  server → service worker +[\d.]+ ms",
        r"  tool +[\d.]+ ms",
        r"  progress   the last of 1 report arrived at",
        r"console errors:\n  the page is not well\n",
        r"  Failed to load resource: .* 404 \(Not Found\) \(http://127\.0\.0\.1:\d+/nowhere\)\n\n",
        r"plugin logs:\n  probe warning: read page 7",
    ):
        assert re.search(line, section), f"{line}\n{section}"
    # Two calls still run, one of them an MCP client's.
    running = section.split("… probe_run ")[1:]
    assert len(running) == 2, section
    for call in running:
        assert re.match(r" [\d.]+ m?s  still running", call)
        assert "  reached    the page: the tool was started and did not return" in call


def test_a_broken_fixture_shows_them_too(ran: KitRun) -> None:
    assert ran["test_never_starts"].outcome == "error"
    assert "demo_list_channels" in ran["test_never_starts"].properties["opentabs_report"]


def test_what_fails_after_a_test_is_an_error_of_that_test(tmp_path: Path) -> None:
    ran = run_kit(tmp_path, "undone", "--opentabs-trace=on", "--output=kept")

    assert ran.code == pytest.ExitCode.TESTS_FAILED, ran.output
    assert set(ran.outcomes.values()) == {"error"}
    place = tmp_path / "kept" / "test-undone-py-test-has-no-place-for-its-trace-chromium"
    why = ran["test_has_no_place_for_its_trace"].text
    assert f"Cannot write the trace to {place}: File exists. Choose another" in why
    last = ran["test_is_the_last"]  # after which the server has stopped
    assert "the fixture was not undone" in last.text
    assert "✗ probe_run" in last.properties["opentabs_report"]


def test_junit_has_the_same_report(ran: KitRun) -> None:
    report = ran["test_fails"].properties["opentabs_report"]

    assert "server → service worker" in report
    assert "the page is not well" in report
    assert ran["test_passes"].properties == {}


def test_github_is_sent_the_failing_line(ran: KitRun) -> None:
    lines = (ran.directory / "test_reports.py").read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if "100% of: what hurts" in line)

    told = [line for line in ran.output.splitlines() if line.startswith("::error ")]

    assert len(told) == 2
    assert told[0].startswith(
        f"::error file={ran.directory.name}/test_reports.py,line={number},"
        "title=test_reports.py%3A%3Atest_fails[chromium]::AssertionError"
    )
    assert "another, with 100%25 of: what hurts" in told[0]


def test_what_is_kept_of_a_test_is_in_its_folder(ran: KitRun) -> None:
    kept = ran.directory / "kept"
    folder = kept / "test-reports-py-test-fails-chromium"

    assert {each.name for each in folder.iterdir()} - {"video.webm"} == {
        "trace.zip",
        "test-failed-1.png",
        "opentabs.trace",
    }
    assert {each.name for each in kept.iterdir()} == {
        folder.name,
        "test-reports-py-test-never-starts-chromium",
    }


@with_ffmpeg
def test_a_video_is_kept_of_those_that_fail_alone(ran: KitRun) -> None:
    kept = {each.parent.name for each in (ran.directory / "kept").rglob("*.webm")}

    assert kept == {
        "test-reports-py-test-fails-chromium",
        "test-reports-py-test-never-starts-chromium",
    }


def test_the_kept_trace_has_the_calls_of_the_test(ran: KitRun) -> None:
    file = ran.directory / "kept" / "test-reports-py-test-fails-chromium" / "opentabs.trace"

    records = read_trace(file).records

    assert [(each.name, each.outcome) for each in records] == [
        ("demo_list_channels", "succeeded"),
        ("probe_run", "succeeded"),
        ("probe_run", "cancelled"),
        ("probe_run", "cancelled"),
    ]
    assert ran["test_fails"].properties["opentabs_trace"] == str(Path(file))


def test_playwrights_trace_shows_the_calls_as_steps_of_the_test(ran: KitRun) -> None:
    folder = ran.directory / "kept" / "test-reports-py-test-fails-chromium"
    with ZipFile(folder / "trace.zip") as archive:
        lines = archive.read("trace.trace").decode().splitlines()
    events = [json.loads(line) for line in lines]
    groups = [each for each in events if each.get("method") == "tracingGroup"]
    steps = {each["callId"]: each for each in groups}

    def outermost(event: dict[str, Any]) -> bool:
        return event.get("parentId") not in steps

    titles = [each["title"] for each in groups if outermost(each)]
    assert titles[0] == "mcp.call demo_list_channels"
    assert titles[1].startswith('call probe_run {"key": "a"')
    assert titles[2].startswith('start probe_run {"key": "b"')
    assert titles[3].startswith('mcp.start probe_run {"key": "c"')
    within = [each["title"] for each in groups if not outermost(each)]
    assert [bool(re.search(r"probe_run .*succeeded", each)) for each in within] == [False, True]
    source = steps[groups[0]["callId"]]["stack"][0]
    assert source["file"].endswith("test_reports.py")
