"""`opentabs audit` and `opentabs stats`, on audits that a test writes."""

import json
import re
import time
from datetime import datetime
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from rich.cells import cell_len

from opentabs_py.cli.commands.audit import fit_columns, read_time
from opentabs_py.config.paths import audit_file
from opentabs_py.errors import ConfigError
from tests.audit.records import add, an_entry
from tests.cli.in_process import opentabs_here

NOW = 1_800_000_000.0
THEN = 1_700_000_000.0  # certainly another day than today


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's data, in a directory of the test's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def opentabs(*arguments: str, cwd: Path, code: int = 0) -> "CompletedProcess[str]":
    ended = opentabs_here(*arguments, cwd=cwd)
    assert ended.returncode == code, ended.stderr
    return ended


def test_before_the_first_call_it_says_so_and_succeeds(tmp_path: Path) -> None:
    for command in ("audit", "stats"):
        ended = opentabs(command, cwd=tmp_path)
        assert ended.stdout == ""
        assert "No calls have been recorded yet" in ended.stderr
        assert json.loads(opentabs(command, "--json", cwd=tmp_path).stdout) == []
    assert not audit_file().parent.exists()


def test_the_calls_are_in_a_table_with_the_newest_last(tmp_path: Path) -> None:
    add(
        audit_file(),
        an_entry(1, started=THEN, client="claude-code 2.1.0", site="chat.example", tab_id=7),
        an_entry(2, started=THEN, outcome="refused", code="INVALID_ARGUMENTS", plugin="chat"),
    )
    heading, first, second = opentabs("audit", cwd=tmp_path).stdout.splitlines()
    assert heading.split() == ["time", "tool", "took", "client", "error", "site", "tab"]
    shown = datetime.fromtimestamp(THEN).astimezone().strftime("%d %b %H:%M:%S")
    assert first.split()[1:] == [
        *shown.split(),
        "chat_send",
        "250",
        "ms",
        "claude-code",
        "2.1.0",
        "chat.example",
        "7",
    ]
    assert first.startswith("✓")
    assert second.startswith("⊘")
    assert "INVALID_ARGUMENTS" in second


def test_calls_of_today_have_no_date(tmp_path: Path) -> None:
    add(audit_file(), an_entry(1, started=time.time()))
    _, call = opentabs("audit", cwd=tmp_path).stdout.splitlines()
    assert re.match(r"\S+ +\d\d:\d\d:\d\d +chat_send ", call)


def test_as_json_it_is_one_list_of_calls(tmp_path: Path) -> None:
    add(audit_file(), an_entry(1), an_entry(2, outcome="failed", code="RATE_LIMITED"))
    calls = json.loads(opentabs("audit", "--json", cwd=tmp_path).stdout)
    assert [(each["tool"], each["outcome"], each["code"]) for each in calls] == [
        ("chat_send", "succeeded", None),
        ("chat_send", "failed", "RATE_LIMITED"),
    ]
    assert calls[0]["callId"] == an_entry(1).call_id


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], [1, 2, 3, 4]),
        (["--limit", "2"], [3, 4]),
        (["--limit", "0"], [1, 2, 3, 4]),
        (["--limit", "9" * 23], [1, 2, 3, 4]),
        (["--since", "2h"], [3, 4]),
        (["--plugin", "mail"], [2]),
        (["--tool", "chat_*"], [1, 3, 4]),
        (["--client", "claude"], [4]),
        (["--failed"], [3]),
    ],
)
def test_its_options_choose_calls(tmp_path: Path, options: list[str], expected: list[int]) -> None:
    now = time.time()
    add(
        audit_file(),
        an_entry(1, started=now - 3 * 3600),
        an_entry(2, started=now - 3 * 3600, plugin="mail", tool="mail_send"),
        an_entry(3, started=now - 60, outcome="lost", code="TAB_CLOSED"),
        an_entry(4, started=now - 60, client="Claude"),
    )
    calls = json.loads(opentabs("audit", "--json", *options, cwd=tmp_path).stdout)
    assert [int(each["callId"], 16) for each in calls] == expected


def test_when_no_call_matches_it_says_so(tmp_path: Path) -> None:
    add(audit_file(), an_entry(1))
    assert opentabs("audit", "--failed", cwd=tmp_path).stderr == "No such call is recorded.\n"
    assert opentabs("stats", "--plugin", "x", cwd=tmp_path).stderr == "No such call is recorded.\n"


def test_a_name_that_is_not_utf_8_matches_no_call(tmp_path: Path) -> None:
    add(audit_file(), an_entry(1))
    for option in ("--plugin", "--tool", "--client"):
        assert "No such call" in opentabs("audit", option, "\udcff", cwd=tmp_path).stderr
    assert "No such call" in opentabs("stats", "--plugin", "\udcff", cwd=tmp_path).stderr


def test_the_statistics_are_in_a_table(tmp_path: Path) -> None:
    add(
        audit_file(),
        *(an_entry(number, seconds=number / 100) for number in range(1, 101)),
        an_entry(101, tool="mail_send", plugin="mail", outcome="refused", seconds=0.0),
    )
    heading, chat, mail = opentabs("stats", cwd=tmp_path).stdout.splitlines()
    assert heading.split() == [
        *("tool", "calls", "failed", "refused", "cancelled", "p50", "p95", "longest")
    ]
    assert chat.split() == [
        "chat_send",
        "100",
        "0",
        "0",
        "0",
        *("500", "ms", "950", "ms", "1.00", "s"),
    ]
    assert mail.split() == ["mail_send", "1", "0", "1", "0"]
    document = json.loads(opentabs("stats", "--json", "--plugin", "chat", cwd=tmp_path).stdout)
    assert [(each["tool"], each["calls"], each["p95"]) for each in document] == [
        ("chat_send", 100, 0.95)
    ]


def test_texts_of_pages_and_clients_have_no_effect_on_the_terminal(tmp_path: Path) -> None:
    add(
        audit_file(),
        an_entry(1, client="evil\x1b[31m\r\n[red]x", outcome="failed", code="\x1b]0;title\x07"),
    )
    shown = opentabs("audit", cwd=tmp_path).stdout
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert len(shown.splitlines()) == 2
    assert "[red]x" in shown


def test_calls_that_are_missing_are_a_warning(tmp_path: Path) -> None:
    add(audit_file(), an_entry(1), missed=12)
    for command in ("audit", "stats"):
        assert "12 calls are missing" in opentabs(command, "--json", cwd=tmp_path).stderr


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    audit_file().parent.mkdir(parents=True)
    audit_file().write_text("no database" * 100)
    ended = opentabs("audit", "--json", cwd=tmp_path, code=3)
    assert "Cannot read the audit" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("text", ["yesterday", "2", "-2h", "2 years", "", "2026-13-01"])
def test_a_wrong_time_is_refused_with_the_forms(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"30m, 2h, 3d or 1w.*2026-11-23"):
        read_time(text, now=NOW)
    ended = opentabs("audit", f"--since={text}", cwd=tmp_path, code=2)
    assert "Cannot read the time" in ended.stderr


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("1.5d", 129_600),
        (" 3 d ", 259_200),
        ("1w", 604_800),
    ],
)
def test_a_time_may_be_so_long_ago(text: str, ago: float) -> None:
    assert read_time(text, now=NOW) == NOW - ago


@pytest.mark.parametrize("text", ["2026-11-23T18:00:00+00:00", "2026-11-23T19:00+01:00"])
def test_a_time_may_be_in_iso_8601(text: str) -> None:
    assert read_time(text, now=NOW) == 1_795_456_800.0


LEAST = {"tool": 6, "client": 4, "site": 5}


@pytest.mark.parametrize(
    ("room", "fitting"),
    [
        (100, {"time": 8, "tool": 20, "client": 10, "site": 12}),
        (56, {"time": 8, "tool": 20, "client": 10, "site": 12}),
        (50, {"time": 8, "tool": 14, "client": 10, "site": 12}),
        (30, {"time": 8, "tool": 6, "client": 5, "site": 5}),
        (29, {"time": 8, "tool": 6, "client": 4, "site": 5}),
        (28, {"time": 8, "tool": 8, "client": 8}),
        (20, {"time": 8, "tool": 10}),
        (15, {"time": 8, "tool": 5}),
        (1, {"time": 8, "tool": 1}),
    ],
)
def test_columns_shrink_and_then_the_last_are_left_out_but_never_the_first(
    room: int, fitting: dict[str, int]
) -> None:
    widths = {"time": 8, "tool": 20, "client": 10, "site": 12}
    assert fit_columns(widths, room, LEAST) == fitting


def test_a_program_gets_every_column_whole(tmp_path: Path) -> None:
    add(audit_file(), an_entry(1, tool="t" * 200, site="s" * 100, allowed="asked: always"))
    _, row = opentabs("audit", cwd=tmp_path).stdout.splitlines()
    assert "t" * 200 in row
    assert "s" * 100 in row
    assert cell_len(row) > 300
