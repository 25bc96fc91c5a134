"""The timing rules at their real length, with the server's timers in the hands of the tests."""

import pytest

from e2e.kit.runs import KitRun, run_kit

TOGETHER = 3.0  # s, as promised


@pytest.fixture(scope="module")
def timing(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    return run_kit(tmp_path_factory.mktemp("timing"), "timing", "--durations=0")


def test_the_timing_rules_hold_through_every_hop(timing: KitRun) -> None:
    assert len(timing.cases) >= 6, timing.output
    assert set(timing.outcomes.values()) == {"passed"}, timing.output


def test_they_are_tested_in_less_than_a_call_s_patience(timing: KitRun) -> None:
    assert sum(case.seconds for case in timing.cases.values()) < TOGETHER + 3.0, timing.output
