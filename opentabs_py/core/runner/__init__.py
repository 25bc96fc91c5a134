"""A test run shown live: its events so far, and the tests to run next."""

from typing import Final

# In pytest's environment.
PLAN: Final = "OPENTABS_TEST_PLAN"  # the file with its `events.Plan`
STARTED_BY: Final = "OPENTABS_TEST_STARTED_BY"  # the process that runs `opentabs test`
