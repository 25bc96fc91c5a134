"""The report of a run, written to a file and read back."""

import base64
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.core.limits import Limits
from opentabs_py.core.runner import report as limits
from opentabs_py.core.runner.events import (
    BrowserStarted,
    CallSeen,
    Collected,
    Ended,
    Event,
    Known,
    Phase,
    ScreenshotTaken,
    Started,
)
from opentabs_py.core.runner.lines import LONGEST_LINE
from opentabs_py.core.runner.report import FORMAT, Report, Run, merge
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ReportError
from opentabs_py.runner import report as module
from opentabs_py.runner.report import Begun, check_place, finish
from opentabs_py.runner.report_page import moved, read_report, to_html
from opentabs_py.runner.spool import SCREENSHOTS, SpoolWriter, prepare

HOSTILE = "</script><script>alert(1)</script><!--\u2028{{script}}<img src=x onerror=alert(1)>"
A, B = "test_a.py::test_a", "test_a.py::test_b"
RECORD = CallRecord("c1", "chat_send", 5.0, 0.1, "succeeded", Limits(), result="1")


def known(test: str) -> Known:
    file, _, name = test.partition("::")
    return Known(id=test, file=file, path=f"/p/{file}", name=name, line=1)


def spool(directory: Path, *events: Event, run: str = "r1", file: str = "report.html") -> Path:
    made = directory / f"spool-{run}"
    made.mkdir()
    begun = Begun(run=Run(id=run, started=1.0, directory="d"), file=str(directory / file))
    prepare(made, begun.model_dump_json())
    writer = SpoolWriter(made, "main")
    for event in (Collected(tests=(known(A), known(B))), *events):
        writer.send(event)
    writer.close()
    return made


def passed(test: str, *, files: tuple[str, ...] = ()) -> list[Event]:
    return [
        Started(test=test),
        CallSeen(test=test, running=False, record=RECORD),
        Phase(test=test, when="call", outcome="passed", seconds=0.1),
        Ended(test=test, files=files),
    ]


def states(report: Report) -> dict[str, str]:
    return {test["name"]: test["state"] for test in report.tests}


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = spool(tmp_path, BrowserStarted(version="156.0"), *passed(A))

    file = finish(made)
    report = read_report(file)

    assert not made.exists()
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    assert report.runs[0].versions == {"Chromium": "156.0"}
    assert states(report) == {"test_a": "passed", "test_b": "idle"}
    [attempt] = report.tests[0]["attempts"]
    assert [call["name"] for call in attempt["calls"]] == ["chat_send"]
    assert "".join(to_html(report)) == file.read_text()


def test_what_a_test_wrote_is_data_and_ends_no_script(tmp_path: Path) -> None:
    bad = Phase(
        test=A, when="call", outcome="failed", seconds=1, why=HOSTILE, text=HOSTILE,
        sections=((HOSTILE, HOSTILE),),
    )  # fmt: skip
    tame = finish(spool(tmp_path, *passed(A), file="tame.html")).read_text()

    file = finish(spool(tmp_path, Started(test=A), bad, Ended(test=A), run="r2"))

    page = file.read_text()
    for ending in ("<script", "</script", "<!--", "<img"):
        assert page.count(ending) == tame.count(ending)
    assert read_report(file).tests[0]["attempts"][0]["text"] == HOSTILE


def test_its_policy_lets_its_own_script_and_style_run_and_nothing_else(tmp_path: Path) -> None:
    page = finish(spool(tmp_path, *passed(A))).read_text()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    inline = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    inline += re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in inline}
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == hashes
    assert len(hashes) == 2
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_a_test_that_ran_when_pytest_died_has_failed_with_what_it_did(tmp_path: Path) -> None:
    begun: list[Event] = [
        Started(test=A),
        CallSeen(test=A, running=True, record=RECORD),
    ]

    died = read_report(finish(spool(tmp_path, *begun), "killed", crashed=True))
    stopped = read_report(finish(spool(tmp_path, *begun, run="r2"), "It was interrupted."))

    assert states(died) == {"test_a": "failed", "test_b": "idle"}
    assert died.tests[0]["attempts"][0]["running"] == ["c1"]
    assert states(stopped) == {"test_a": "idle", "test_b": "idle"}
    assert stopped.runs[0].why == "It was interrupted."
    assert stopped.tests[0]["why"] == "It was running when the run was stopped."


def test_a_line_that_was_not_written_to_its_end_loses_nothing_else(tmp_path: Path) -> None:
    made = spool(tmp_path, *passed(A))
    with (made / "main.events").open("ab") as file:
        file.write(b'{"event": "started", "te')

    assert states(read_report(finish(made))) == {"test_a": "passed", "test_b": "idle"}


def test_a_run_is_incomplete_if_an_event_of_it_cannot_be_read(
    tmp_path: Path,
) -> None:
    made = spool(tmp_path, *passed(A), *passed(B))
    for process in ("gw0", "gw1"):
        (made / f"{process}.events").write_bytes(b"x" * (LONGEST_LINE + 1) + b"\nno event\n")

    report = read_report(finish(made))
    stopped = read_report(finish(spool(tmp_path, run="r2"), "It was interrupted."))

    assert states(report) == {"test_a": "passed", "test_b": "passed"}
    assert report.runs[0].why == "4 events of it could not be read."
    assert stopped.runs[0].why == "It was interrupted."


def test_a_run_that_failed_is_incomplete_if_none_of_its_tests_has(tmp_path: Path) -> None:
    failed = Phase(test=B, when="call", outcome="failed", seconds=0.1)

    def why(code: int, *events: Event) -> str:
        made = spool(tmp_path, *events, run=str(code))
        return read_report(finish(made, exit_code=code)).runs[0].why

    assert why(0, *passed(A)) == ""
    assert why(5) == ""
    assert why(2, *passed(A)) == "pytest exited with 2, but none of these tests has failed."
    assert why(1, *passed(A), Started(test=B), failed, Ended(test=B)) == ""


def test_the_events_of_all_processes_are_in_the_report(tmp_path: Path) -> None:
    made = spool(tmp_path, *passed(A))
    worker = SpoolWriter(made, "gw1")
    for event in (Collected(tests=(known(A), known(B))), *passed(B)):
        worker.send(event)
    worker.close()

    assert states(read_report(finish(made))) == {"test_a": "passed", "test_b": "passed"}


def test_screenshots_are_within_as_far_as_they_fit_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SCREENSHOTS", 1_500)
    screenshots = [ScreenshotTaken(test=A, when=w, file=f"{w}.jpg") for w in ("before", "failure")]
    made = spool(tmp_path, Started(test=A), *screenshots)
    for name in ("before.jpg", "failure.jpg"):
        (made / SCREENSHOTS / name).write_bytes(name[:1].encode() * 1_000)

    report = read_report(finish(made))

    [shown] = report.tests[0]["attempts"][0]["screenshots"]
    assert (shown["when"], shown["file"]) == ("failure", "r1-failure.jpg")
    assert base64.b64decode(shown["data"]) == b"f" * 1_000
    assert report.tests[0]["attempts"][0]["screenshotsLeftOut"] == 1
    assert report.runs[0].screenshots_left_out == 1


def test_small_videos_are_within_and_large_ones_are_links(tmp_path: Path) -> None:
    kept = tmp_path / "out put" / "a#b"
    kept.mkdir(parents=True)
    small, large, gone = (kept / f"{name}.webm" for name in ("small", "large", "gone"))
    small.write_bytes(b"video")
    large.write_bytes(b"x" * (limits.MOST_VIDEO + 1))
    made = spool(tmp_path, *passed(A, files=tuple(map(str, (small, large, gone)))))

    report = read_report(finish(made))

    assert [(each["name"], each["href"], each["data"]) for each in report.tests[0]["files"]] == [
        ("small.webm", "out%20put/a%23b/small.webm", "data:video/webm;base64,dmlkZW8="),
        ("large.webm", "out%20put/a%23b/large.webm", ""),
    ]


def test_links_are_right_in_another_directory() -> None:
    test: dict[str, Any] = {"files": [{"href": "kept/v.webm"}, {"href": "file:///d/v.webm"}]}
    report = Report([], [test])

    there = moved(report, Path("/p/one two/a"), Path("/p"))

    assert [each["href"] for each in there.tests[0]["files"]] == [
        "one%20two/a/kept/v.webm",
        "file:///d/v.webm",
    ]
    assert moved(report, Path("/p"), Path("/p")) is report


def test_what_is_not_a_report_says_so(tmp_path: Path) -> None:
    file = finish(spool(tmp_path, *passed(A)))
    text = file.read_text()

    def error(name: str, content: bytes | None) -> str:
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ReportError) as caught:
            read_report(tmp_path / name)
        return str(caught.value)

    assert "No such file" in error("gone.html", None)
    assert "it is not text" in error("binary.html", b"\xff\xfe\x00")
    assert "is not a report that" in error("other.html", b"<p>Hello</p>")
    for other in (FORMAT - 1, FORMAT + 1):
        changed = text.replace(f'{{"format":{FORMAT},', f'{{"format":{other},')
        assert f"format {other} of reports" in error("other_format.html", changed.encode())
    cut = text[: text.index('id="test-1"')]
    assert "is damaged" in error("cut.html", cut.encode())
    for old, new in (
        ('"runs":[', '"runs":[1,'),
        ('"tests":[', '"tests":[3,'),
        ('"runs":[', '"runs":[],"unused":['),
        ('"shard":null', '"shard":[1,1000000000]'),
        ('"seconds":', '"seconds":1e999,"unused":'),
        ('"run":0', '"run":"0"'),
        ('"files":[]', '"files":[{"href":5}]'),
    ):
        assert old in text
        assert "is damaged" in error("odd.html", text.replace(old, new).encode())
    list_ = re.sub(r'(id="report">).*?(</script>)', r"\1[]\2", text)
    assert "is damaged" in error("list.html", list_.encode())
    openings = b'<script type="application/json" id="a">' * 100_000  # took longer than a test may
    assert "is not a report that" in error("openings.html", openings)
    deep = f'<script type="application/json" id="report">{"[" * 100_000}</script>'
    assert "is damaged" in error("deep.html", deep.encode())


def test_merged_reports_are_reports(tmp_path: Path) -> None:
    reports = [
        read_report(finish(spool(tmp_path, *passed(test), run=test[-1], file=f"{test[-1]}.html")))
        for test in (A, B)
    ]

    whole = tmp_path / "all.html"
    module.write(whole, merge(reports))

    assert states(read_report(whole)) == {"test_a": "passed", "test_b": "passed"}
    assert [each.id for each in read_report(whole).runs] == ["a", "b"]
    assert json.loads(re.findall(r'id="report">(.*?)</script>', whole.read_text())[0])["runs"]


def test_a_file_that_cannot_be_written_is_an_error_before_the_run(tmp_path: Path) -> None:
    check_place(tmp_path / "new" / "report.html")
    assert [*(tmp_path / "new").iterdir()] == []
    with pytest.raises(ReportError, match="Is a directory"):
        check_place(tmp_path / "new")
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match=r"Cannot write the report .*file/report.html: "):
        check_place(tmp_path / "file" / "report.html")


def test_a_report_that_cannot_be_written_leaves_the_old_one_and_nothing_else(
    tmp_path: Path,
) -> None:
    target = tmp_path / "report.html"
    target.mkdir()
    (target / "x").touch()
    made = spool(tmp_path, *passed(A))

    with pytest.raises(ReportError, match="Cannot write the report"):
        finish(made)

    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_report_can_be_read_by_those_who_could_read_other_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        file = finish(spool(tmp_path, *passed(A)))
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o640
