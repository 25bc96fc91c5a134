"""Runs of pytest inside a test: a suite of this directory, copied to a separate one."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from e2e.documents import PLUGINS, ROOT
from opentabs_py.browser.chromium import registry_place

HERE = Path(__file__).parent
UNSTABLE = HERE / "suite_unstable.py"
RUN_WITHIN = 240  # s; the outer test's timeout is longer
HAS_FFMPEG = registry_place("ffmpeg", os.environ).exists() or shutil.which("ffmpeg") is not None
with_ffmpeg = pytest.mark.skipif(
    not HAS_FFMPEG, reason="ffmpeg is missing: install the system's package"
)
# A test that hangs prints where, even if ending it hangs too.
INI = "[pytest]\ntimeout = 50\nfaulthandler_timeout = 45\njunit_family = xunit1\n"
# Warnings are errors, except for one that pytest-playwright causes with pytest 9.
WARNINGS = ["-W", "error", "-W", "ignore::pytest.PytestRemovedIn10Warning"]


@dataclass(frozen=True)
class Case:
    """One inner test. `outcome` is passed, failed, error or skipped; `text` says why."""

    outcome: str
    text: str
    seconds: float
    properties: dict[str, str]


@dataclass(frozen=True)
class KitRun:
    """The outcome of an inner run."""

    directory: Path
    code: int
    output: str
    cases: dict[str, Case]

    def __getitem__(self, name: str) -> Case:
        return self.cases[f"{name}[chromium]"] if name not in self.cases else self.cases[name]

    @property
    def outcomes(self) -> dict[str, str]:
        return {name.removesuffix("[chromium]"): case.outcome for name, case in self.cases.items()}


def prepare(directory: Path, suite: str) -> Path:
    """Copy a suite to a directory, as its only test file."""
    shutil.copyfile(HERE / "suite_conftest.py", directory / "conftest.py")
    shutil.copyfile(HERE / f"suite_{suite}.py", directory / f"test_{suite}.py")
    (directory / "pytest.ini").write_text(INI)
    return directory


def arguments(*options: str) -> list[str]:
    """The arguments of an inner run."""
    return ["-p", "no:cacheprovider", "--color=no", "--strict-markers", *WARNINGS, *options]


def command(*options: str) -> list[str]:
    """The command of an inner run."""
    return [sys.executable, "-m", "pytest", *arguments(*options)]


def environment(**more: str) -> dict[str, str]:
    """The environment of an inner run."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return {**inherited, **PLUGINS, "PYTHONPATH": str(ROOT), "COLUMNS": "100", **more}


def run_kit(
    directory: Path, suite: str, *options: str, within: float = RUN_WITHIN, **more: str
) -> KitRun:
    """Run a suite, and wait for its end."""
    prepare(directory, suite)
    return run(directory, *options, within=within, **more)


def run(directory: Path, *options: str, within: float = RUN_WITHIN, **more: str) -> KitRun:
    """Run the tests of a directory, and wait for their end."""
    done = subprocess.run(
        command("--junitxml=junit.xml", *options),
        cwd=directory,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=within,
        check=False,
    )
    return KitRun(directory, done.returncode, done.stdout, read_junit(directory / "junit.xml"))


def read_junit(file: Path) -> dict[str, Case]:
    """Read the cases that have ended in a run; empty if it wrote nothing."""
    if not file.exists():
        return {}
    cases = ET.parse(file).iter("testcase")
    return {case.attrib["name"]: _case(case) for case in cases if "name" in case.attrib}


def _case(element: ET.Element) -> Case:
    outcome, text = "passed", ""
    for child in element:
        if child.tag in {"failure", "error", "skipped"}:
            outcome = {"failure": "failed"}.get(child.tag, child.tag)
            text += f"{child.attrib.get('message', '')}\n{child.text}"
    properties = {each.attrib["name"]: each.attrib["value"] for each in element.iter("property")}
    return Case(outcome, text, float(element.attrib["time"]), properties)


def wait_until(page: Any, expression: str) -> None:
    """Wait until an expression is true in a page, whatever its CSP: Playwright's wait evaluates."""
    deadline = time.monotonic() + RUN_WITHIN
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(10)
