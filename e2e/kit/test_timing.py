"""The timing rules at their real length; the tests advance the server's timers."""

from pathlib import Path

import pytest

from e2e.kit.runs import KitRun, run_kit
from opentabs_py.core.limits import IDLE

RULES = {
    "test_30_s_of_silence_end_a_call_and_not_less",
    "test_each_report_gives_another_30_s",
    "test_30_s_without_a_report_end_a_call_that_has_reported",
    "test_5_minutes_end_a_call_that_still_reports",
}


@pytest.fixture(scope="module")
def timing(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    return run_kit(tmp_path_factory.mktemp("timing"), "timing")


def test_the_timing_rules_hold_through_every_hop(timing: KitRun) -> None:
    assert len(timing.cases) == len(RULES) + 2, timing.output
    assert set(timing.outcomes.values()) == {"passed"}, timing.output


def test_none_of_them_waits_out_its_limit(timing: KitRun) -> None:
    # The first test starts the browser, which the rules do not include.
    rules = [timing[name].seconds for name in sorted(RULES)][1:]

    assert len(rules) == len(RULES) - 1
    assert sum(rules) < IDLE, timing.output  # on a quiet machine, they take two seconds


@pytest.mark.realtime
@pytest.mark.timeout(420)
def test_the_same_tests_pass_when_the_clock_is_time_itself(tmp_path: Path) -> None:
    options = ["--opentabs-clock=real", "--timeout=400", "-n", "3"]

    ran = run_kit(tmp_path, "timing", *options, within=410)

    assert set(ran.outcomes.values()) == {"passed"}, ran.output
    assert ran["test_5_minutes_end_a_call_that_still_reports"].seconds > 300
