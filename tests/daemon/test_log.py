import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opentabs_py.calling.plugin_log import SafeFormatter
from opentabs_py.daemon import log
from opentabs_py.daemon.log import log_to_file
from opentabs_py.errors import ConfigError

PROGRAM = """
import logging, sys
from pathlib import Path
from opentabs_py.daemon.log import log_to_file
log_to_file(Path(sys.argv[1]))
logging.getLogger("opentabs_py").info("served\\x1b[31m")
logging.getLogger("opentabs_py.plugin.chat").info("chat: hello")
logging.getLogger("httpx").info("unwanted")
print("printed")
sys.stderr.write("half ")
sys.stderr.write("a line\\nrest")
"""


def test_what_is_logged_or_printed_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "server.log"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)], capture_output=True, text=True, check=True
    )
    assert (run.stdout, run.stderr) == ("", "")
    said = [line.split(" ", 2)[2] for line in file.read_text().splitlines()]
    assert said == [
        "INFO opentabs_py: served\\u001b[31m",
        "INFO opentabs_py.plugin.chat: chat: hello",
        "INFO opentabs_py.stdout: printed",
        "WARNING opentabs_py.stderr: half a line",
    ]
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes.")
def test_only_a_file_is_made_private(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o666)
    pipe.chmod(0o666)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    subprocess.run([sys.executable, "-c", PROGRAM, str(pipe)], check=True)
    assert b"printed" in os.read(reader, 10_000)
    os.close(reader)
    assert pipe.stat().st_mode & 0o777 == 0o666


def test_a_log_that_cannot_be_opened_is_an_error_of_use(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"Cannot write the log {tmp_path}: Is a directory"):
        log_to_file(tmp_path)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Generator[list[str]]:
    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, handler = logging.getLogger("opentabs_py.stdout"), Handler()
    monkeypatch.setattr(logger, "propagate", False)
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)


def test_what_a_progress_bar_prints_is_logged_each_time_it_starts_again(logged: list[str]) -> None:
    lines = log._Lines("opentabs_py.stdout", logging.INFO)
    for text in ("\r10 %", "\r2", "0 %", "\r30 %\r\n", "done\n"):
        assert lines.write(text) == len(text)
    assert logged == ["10 %", "20 %", "30 %", "done"]


def test_text_without_the_end_of_a_line_is_logged_in_parts(logged: list[str]) -> None:
    lines = log._Lines("opentabs_py.stdout", logging.INFO)
    for _ in range(log.LONGEST_LINE * 2 + 1):
        lines.write(".")
    lines.write("x" * log.LONGEST_LINE)
    assert logged == ["." * log.LONGEST_LINE] * 2 + ["." + "x" * (log.LONGEST_LINE - 1)]
    lines.write("y\n")
    assert logged[3:] == ["xy"]


def test_threads_can_print_at_the_same_time(logged: list[str]) -> None:
    lines = log._Lines("opentabs_py.stdout", logging.INFO)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            for _ in range(20_000):
                pool.submit(lines.write, ".")
    finally:
        sys.setswitchinterval(interval)
    lines.write("\n")
    assert sum(map(len, logged)) == 20_000


def test_lines_of_one_plugin_are_distinguished_from_others_and_from_continuations() -> None:
    begin = "2026-11-23 10:00:00,000 WARNING"
    assert log.is_of_plugin(f"{begin} opentabs_py.plugin.chat: chat: x", "chat") is True
    assert log.is_of_plugin(f"{begin} opentabs_py.plugin.chats: chats: x", "chat") is False
    assert log.is_of_plugin(f"{begin} opentabs_py: opentabs_py.plugin.chat: x", "chat") is False
    assert log.is_of_plugin("    at line 3", "chat") is None


def test_no_text_can_look_like_another_record() -> None:
    forged = "2026-11-23 10:00:00,000 WARNING opentabs_py: forged"
    record = logging.makeLogRecord(
        {"msg": "%s", "args": (f"Error\n{forged}",), "levelname": "INFO", "name": "opentabs_py"}
    )
    _, second = (
        SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s").format(record).splitlines()
    )
    assert log.is_of_plugin(forged, "chat") is False
    assert log.is_of_plugin(second, "chat") is None


def test_a_lines_message_is_what_was_logged() -> None:
    begin = "2026-11-23 10:00:00,000 WARNING opentabs_py.stderr: "
    assert log.message_of(f"{begin}error: Cannot listen on x: y") == "error: Cannot listen on x: y"
    assert log.message_of("    at line 3") == "    at line 3"


def test_the_last_lines_reach_back_into_rotated_files(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    (tmp_path / "server.log.2").write_text("1\n2\n")
    (tmp_path / "server.log.1").write_text("3\n")
    file.write_text("4\n5\n")
    assert log.last_lines(file, 1) == ["5"]
    assert log.last_lines(file, 4) == ["2", "3", "4", "5"]
    assert log.last_lines(file, 9) == ["1", "2", "3", "4", "5"]
    assert log.last_lines(file, 0) == []
    assert log.last_lines(tmp_path / "none.log", 3) == []


def test_a_followed_log_continues_after_it_has_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "LOOK_AGAIN", 0)
    file = tmp_path / "server.log"
    handler = log._File(file, maxBytes=200, backupCount=3, encoding="utf-8")
    logger = logging.getLogger("opentabs_py.test_log")
    monkeypatch.setattr(logger, "propagate", False)
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.info("before")
    following = log.follow(file)
    assert next(following) is None
    seen: list[str] = []
    for number in range(20):
        logger.info("line %d %s", number, "x" * 30)
        while (line := next(following)) is not None:
            seen.append(line.split(" x")[0])
    logger.removeHandler(handler)
    handler.close()
    following.close()  # type: ignore[attr-defined]
    assert (tmp_path / "server.log.3").exists()
    assert seen == [f"line {number}" for number in range(20)]


def test_a_log_that_is_deleted_continues_in_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "log" / "server.log"
    handler = log._File(file, maxBytes=200, backupCount=3, encoding="utf-8")
    logger = logging.getLogger("opentabs_py.test_log")
    monkeypatch.setattr(logger, "propagate", False)
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.info("before")
    shutil.rmtree(file.parent)
    logger.info("after")
    logger.removeHandler(handler)
    handler.close()
    assert file.read_text() == "after\n"


def test_a_followed_log_that_another_program_empties_continues_at_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "LOOK_AGAIN", 0)
    file = tmp_path / "server.log"
    file.write_text("a long line, with ü\n")
    following = log.follow(file, 1)
    assert [next(following), next(following)] == ["a long line, with ü", None]
    file.write_text("")
    with file.open("a") as out:
        out.write("short\n")
    assert [next(following), next(following)] == ["short", None]
    following.close()  # type: ignore[attr-defined]


def test_a_line_is_followed_only_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "LOOK_AGAIN", 0)
    file = tmp_path / "server.log"
    following = log.follow(file)
    assert next(following) is None  # there is no file yet
    with file.open("w", buffering=1) as out:
        out.write("half")
        out.flush()
        assert next(following) is None
        out.write(" and half\n")
        assert next(following) == "half and half"
    following.close()  # type: ignore[attr-defined]


FULL = """
import logging, resource, sys
from pathlib import Path
from opentabs_py.daemon.log import log_to_file
log_to_file(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # as a full disk
for number in range(100):
    logging.getLogger("opentabs_py").warning("line %d", number)
sys.__stdout__.write("still here")
"""


def test_a_log_that_cannot_be_written_does_not_stop_the_server(tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(file)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "still here"), done.stderr
    assert "line 0" in file.read_text()
