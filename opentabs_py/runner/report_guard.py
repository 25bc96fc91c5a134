"""Writes the report of a run whose pytest has died; a process of its own.

It waits for the end of its stdin, which comes when pytest is gone, and imports nothing before.
"""

import sys

DONE = b"done"
# The environment variable with the number of a socket that is open until the report is written.
HELD = "OPENTABS_REPORT_SOCKET"


def main() -> None:
    """Wait for pytest; write the report if it does not say that it has done so itself."""
    if sys.stdin.buffer.read() == DONE:
        return
    from pathlib import Path  # noqa: PLC0415

    from opentabs_py.errors import ReportError  # noqa: PLC0415
    from opentabs_py.runner.report import finish  # noqa: PLC0415

    spool = Path(sys.argv[1])
    if not spool.exists():
        return  # it was killed after it had written the report
    try:
        file = finish(spool, "pytest crashed, or was killed.", crashed=True)
    except ReportError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)
    sys.stderr.write(f"pytest has died. The report of what ran until then: {file}\n")


if __name__ == "__main__":
    main()
