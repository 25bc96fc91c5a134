"""What is shown of a test that failed: its calls hop by hop, and what its pages said."""

from collections.abc import Sequence
from dataclasses import replace

from opentabs_py.core.faults import FaultLog
from opentabs_py.core.records import CallRecord
from opentabs_py.core.text import visible
from opentabs_py.testing.transcript import Transcript
from opentabs_py.testing.verdicts import Seen, ending
from opentabs_py.tracing.waterfall import headline, report

TITLE = "OpenTabs: the calls of this test"
CALLS = 10  # the last ones; a test that makes a hundred fails at one of the last
LINES = 20  # of a console, or of the logs


def failure_report(
    transcript: Transcript,
    running: Sequence[tuple[Seen, CallRecord | None]],
    *,
    told: str,
    faults: FaultLog | None = None,
) -> str:
    """Return the report of a test.

    Args:
        transcript: What happened in it.
        running: Its calls that have not ended, with their records so far, where there are any.
        told: What the failure itself says; what it shows of a call is not shown again.
        faults: What the test did to messages and to its browser.
    """
    parts: list[str] = []
    left_out = len(transcript.records) - CALLS
    if left_out > 0:
        parts.append(f"({left_out} calls before these)")
    parts += [_call(record, told) for record in transcript.records[-CALLS:]]
    for seen, record in running:
        unknown = f"… {seen.name}  {ending(seen)}"
        parts.append(unknown if record is None else _call(record, told, is_running=True))
    if not parts:
        parts.append("no call was made")
    if faults is not None and not faults.is_empty:
        lines = [*map(str, faults.planted), *faults.done]
        if faults.planted:
            log = replace(faults, done=()).to_json()  # what the test does, it will do again
            lines.append(f"once more: opentabs.faults.replay({log!r})")
        parts.append(_block(f"faults, of seed {faults.seed}", lines))
    if transcript.page_errors:
        parts.append(_block("console errors of the pages", transcript.page_errors))
    if transcript.logs:
        logs = [f"{log.plugin} {log.level}: {log.message}" for log in transcript.logs]
        parts.append(_block("logs of the plugins", logs))
    return visible("\n\n".join(parts))


def annotation(path: str, line: int, title: str, message: str) -> str:
    """Write a failure as GitHub's workflow command that marks a line of a file."""
    marks = f"file={_property(path)},line={line},title={_property(title)}"
    return f"::error {marks}::{_data(message)}"


def _call(record: CallRecord, told: str, *, is_running: bool = False) -> str:
    if record.call_id[:8] in told:
        return headline(record, is_running=is_running).plain + "  above"
    return report(record, is_running=is_running)


def _block(title: str, lines: Sequence[str]) -> str:
    shown = [f"  {line}" for line in lines[-LINES:]]
    left_out = len(lines) - len(shown)
    return "\n".join([f"{title}:", *([f"  ({left_out} before these)"] if left_out else []), *shown])


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
