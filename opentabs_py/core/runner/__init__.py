"""A run of tests that people watch: what happened in it, and what runs next."""

from typing import Final

PLAN: Final = "OPENTABS_TEST_PLAN"  # in pytest's environment: the file with its `events.Plan`
