"""What `opentabs verify` refuses before it starts a browser."""

import re
from pathlib import Path

import pytest

from opentabs_py.cli.verify_report import print_report
from opentabs_py.core.drift.report import CallVerdict, DriftReport, Finding, RecordingVerdict
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.recording.files import write_recording
from tests.cli.in_process import opentabs_here


@pytest.mark.parametrize(
    ("site", "why"),
    [
        ("staging site", "it has spaces"),
        ("ftp://staging.example", "ftp URLs cannot be opened"),
        ("/staging", "such URLs cannot be opened"),
        ("https://staging.example/sub/", "the paths are those of the recording"),
        ("https://staging.example/?a", "the paths are those of the recording"),
        ("https://staging.example#a", "the paths are those of the recording"),
    ],
)
def test_a_site_that_no_page_can_be_at_is_refused(site: str, why: str, tmp_path: Path) -> None:
    done = opentabs_here("verify", "--site", site, cwd=tmp_path)
    assert done.returncode == 2
    assert f"Cannot use --site {site}: {why}" in done.stderr.replace("\n", " ")


def test_recordings_without_calls_are_named_in_the_order_of_their_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.opentabs]\nwebmcp = ['https://chat.example/*']\n"
    )
    for name in "cabd":
        write_recording(Recording("https://chat.example/"), tmp_path / f"{name}.har", version="1")

    done = opentabs_here("verify", cwd=tmp_path)

    assert re.findall(r"(\w)\.har has no calls", done.stderr) == [*"abcd"]


def test_what_a_site_writes_stays_on_its_line_of_the_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    odd = "\n```\n[red]@all"
    call = CallVerdict("chat_list", {}, "drift", "tool", [Finding("value", f"a is now {odd}")])
    print_report(DriftReport([RecordingVerdict("a.har", f"https://{odd}", [call], reason=odd)]))
    lines = capsys.readouterr().out.splitlines()
    assert "      a is now  ``` [red]@all" in lines
    assert not any(each.strip().startswith("```") for each in lines)
