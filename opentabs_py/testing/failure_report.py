"""The report of a failed test: its calls hop by hop, console errors and plugin logs."""

from collections.abc import Sequence
from dataclasses import replace

from opentabs_py.core.fault_injection import FaultLog
from opentabs_py.core.text import visible
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.testing.expectations.verdicts import CallSnapshot, ending
from opentabs_py.testing.transcript import Transcript
from opentabs_py.tracing.waterfall import headline, report

TITLE = "OpenTabs: the calls of this test"
CALLS = 10  # the last ones; a test with a hundred calls usually fails at one of the last
LINES = 20  # of the console, or of the logs


def failure_report(
    transcript: Transcript,
    running: Sequence[CallRecord],
    unknown: Sequence[CallSnapshot] = (),
    *,
    shown: str,
    faults: FaultLog | None = None,
) -> str:
    """Return the report of a test.

    Args:
        transcript: What happened in the test.
        running: The records so far of the calls that have not ended.
        unknown: The test's calls that have not reached the server.
        shown: The failure's own text; calls that it already shows are not repeated.
        faults: What the test did to messages and to its browser.
    """
    parts: list[str] = []
    left_out = len(transcript.records) - CALLS
    if left_out > 0:
        parts.append(f"({left_out} earlier calls)")
    parts += [_call(record, shown) for record in transcript.records[-CALLS:]]
    parts += [_call(record, shown, is_running=True) for record in running]
    parts += [f"… {seen.name}  {ending(seen)}" for seen in unknown]
    if not parts:
        parts.append("no call was made")
    if faults is not None and not faults.is_empty:
        lines = [*map(str, faults.injected), *faults.done]
        if faults.injected:
            log = replace(faults, done=()).to_json()  # the test repeats its own actions anyway
            lines.append(f"to repeat: opentabs.faults.replay({log!r})")
        parts.append(_block(f"faults, with seed {faults.seed}", lines))
    if transcript.page_errors:
        parts.append(_block("console errors", transcript.page_errors))
    if transcript.logs:
        logs = [f"{log.plugin} {log.level}: {log.message}" for log in transcript.logs]
        parts.append(_block("plugin logs", logs))
    return visible("\n\n".join(parts))


def annotation(path: str, line: int, title: str, message: str) -> str:
    """Return the GitHub workflow command that annotates a line of a file with a failure."""
    marks = f"file={_property(path)},line={line},title={_property(title)}"
    return f"::error {marks}::{_data(message)}"


def _call(record: CallRecord, shown: str, *, is_running: bool = False) -> str:
    if record.call_id[:8] in shown:
        return headline(record, is_running=is_running).plain + "  above"
    return report(record, is_running=is_running)


def _block(title: str, lines: Sequence[str]) -> str:
    shown = [f"  {line}" for line in lines[-LINES:]]
    left_out = len(lines) - len(shown)
    return "\n".join(
        [f"{title}:", *([f"  ({left_out} earlier lines)"] if left_out else []), *shown]
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
