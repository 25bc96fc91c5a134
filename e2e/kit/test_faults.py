"""Faults that the kit injects: results survive, and what cannot survive ends at once."""

import pytest

from e2e.kit.runs import KitRun, run_kit


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    return run_kit(tmp_path_factory.mktemp("faults"), "faults", "--opentabs-faults-seed=11")


def test_every_promise_about_faults_holds(faults: KitRun) -> None:
    assert len(faults.cases) >= 25, faults.output
    assert set(faults.outcomes.values()) == {"passed"}, faults.output
