"""A report as one self-contained HTML file, and the report that such a file has.

The list of tests comes first, then the page's script, then what is known of each test: so a long
report is shown before all of it is read, and a test's data are parsed when it is opened.
"""

import html
import json
import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

from pydantic import Field, TypeAdapter, ValidationError

from opentabs_py.console.files import PAGE as SHARED
from opentabs_py.core.runner.report import (
    FORMAT,
    MOST_DETAILS,
    MOST_SCREENSHOTS,
    Report,
    ReportedTest,
    Run,
)
from opentabs_py.core.text import one_line
from opentabs_py.errors import ReportError
from opentabs_py.tracing.html import VIEWER
from opentabs_py.tracing.inline import bundle, data_text, data_url, fill, style

PAGE: Final = Path(__file__).with_name("page")
_STYLES: Final = ("theme.css", "call.css", "console.css", "runner.css", "report.css")
_DETAILS: Final = ("attempts", "files")  # what is read only when a test is opened
_BLOCK: Final = re.compile(r'<script type="application/json" id="([\w-]+)">([^<]*)</script>')
_RUNS: Final = TypeAdapter(Annotated[list[Run], Field(min_length=1)])
_TESTS: Final = TypeAdapter(list[ReportedTest])


def to_html(report: Report) -> Iterator[str]:
    """Return the page of a report, in parts."""
    directories = [PAGE, SHARED, VIEWER]
    names = {run.directory for run in report.runs}
    head = {
        "format": FORMAT,
        "runs": [run.model_dump(mode="json") for run in report.runs],
        "missing": report.missing,
        "most": {"screenshots": MOST_SCREENSHOTS, "details": MOST_DETAILS},
        "tests": [_row(test) for test in report.tests],
    }
    parts = {
        "title": html.escape(f"Tests of {one_line(', '.join(sorted(names)))} – OpenTabs report"),
        "icon": data_url((SHARED / "icon.svg").read_bytes(), "image/svg+xml"),
        "data": data_text(head),
    }
    template = (PAGE / "report.html").read_text(encoding="utf-8")
    begin, end = template.split("{{details}}")
    yield fill(
        begin, parts, script=bundle("report.js", directories), style=style(_STYLES, directories)
    )
    for number, test in enumerate(report.tests):
        details = data_text({name: test[name] for name in _DETAILS})
        yield f'<script type="application/json" id="test-{number}">{details}</script>\n'
    yield end


def _row(test: Mapping[str, Any]) -> dict[str, Any]:
    row = {name: value for name, value in test.items() if name not in _DETAILS}
    return {**row, "attempts": len(test["attempts"])}


def read_report(file: Path) -> Report:
    """Return the report that a file has.

    Raises:
        ReportError: It is not a report, or not one that this version can read.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ReportError(f"Cannot read the report {file}: {why}.") from None
    blocks = dict(_BLOCK.findall(text))
    if "report" not in blocks:
        raise ReportError(f"{file} is not a report that `pytest --opentabs-report` has written.")
    try:
        head = json.loads(blocks["report"])
        found = head.get("format")
        if found != FORMAT:
            raise ReportError(
                f"{file} has format {found} of reports, and this version of OpenTabs reads format "
                f"{FORMAT}. Merge reports with the version that wrote them."
            )
        runs = _RUNS.validate_python(head["runs"])
        tests = [
            {**row, **json.loads(blocks[f"test-{number}"])}
            for number, row in enumerate(head["tests"])
        ]
        _TESTS.validate_python(tests)
        data_text([head, tests])  # fails if it could not be written again
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError, RecursionError):
        raise ReportError(f"The report {file} is damaged: it was not written whole.") from None
    return Report(runs, tests)


def moved(report: Report, before: Path, after: Path) -> Report:
    """Return a report with links that are right in another directory."""
    if before.absolute() == after.absolute():
        return report
    way = quote(Path(os.path.relpath(before.absolute(), after.absolute())).as_posix())

    def href(old: str) -> str:
        if ":" in old:  # on another drive; in a path, it would be quoted
            return old
        return posixpath.normpath(f"{way}/{old}")

    tests = [
        {**test, "files": [{**each, "href": href(each["href"])} for each in test["files"]]}
        for test in report.tests
    ]
    return Report(report.runs, tests)
