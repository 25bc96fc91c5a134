"""A test run shown live: its events so far, and the tests to run next."""

from typing import Final

PLAN: Final = "OPENTABS_TEST_PLAN"  # in pytest's environment: the file with its `events.Plan`
