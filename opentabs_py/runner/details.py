"""The details of a test, for the page of a running test run and for its report."""

from typing import Any

from opentabs_py.core.runner.attempt import Attempt
from opentabs_py.core.runner.one_test import OneTest
from opentabs_py.tracing.html import trace_data


def test_data(test: OneTest) -> dict[str, Any]:
    """Return a test with its attempts and their calls, for JSON."""
    attempts = [attempt_data(attempt) for attempt in test.attempts]
    return {**test.row(), "path": test.path, "attempts": attempts}


def attempt_data(attempt: Attempt) -> dict[str, Any]:
    """Return an attempt with its calls, as the viewer of traces reads them, for JSON."""
    data = trace_data(attempt.records, title="")
    return {**attempt.details(), "started": data["started"], "calls": data["calls"]}
