"""What the plugin does with the verdict of a test."""

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = """
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from opentabs_py.testing.item_options import PEOPLE
from opentabs_py.testing.people import ALONE, People


@pytest.fixture(autouse=True)
def turn(request):
    name = request.node.name
    turn = MagicMock(has_passed=False)
    turn.complaints.return_value = ["a broken contract"] if "contract" in name else []
    turn.failure_report.return_value = ""
    request.node.stash[PEOPLE] = People({ALONE: turn})
    yield
    if turn.has_passed:
        with Path("passed").open("a") as file:
            print(name, file=file)
"""
TESTS = """
import pytest
from playwright._impl._assertions import _record_soft_or_raise

def test_passes():
    pass

def test_fails():
    raise AssertionError

def test_fails_softly():
    _record_soft_or_raise(AssertionError("softly"), True)

def test_breaks_a_contract():
    pass

def test_skips():
    pytest.skip("later")

@pytest.mark.xfail
def test_fails_as_expected():
    raise AssertionError

@pytest.mark.xfail(strict=True)
def test_passes_unexpectedly():
    pass
"""


def test_a_test_has_passed_only_if_nothing_has_failed_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_verdicts.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--rootdir", tmp_path, "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "4 failed, 1 passed, 1 skipped, 1 xfailed" in done.stdout
    assert (tmp_path / "passed").read_text().split() == ["test_passes"]
