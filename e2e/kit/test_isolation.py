"""Many tests share a browser without seeing each other, and `page.route` answers a tool's fetch."""

import pytest

from e2e.kit.runs import KitRun, run_kit

PROMISES = {
    "test_then_nothing_of_it_is_there": "fresh pages, cookies, storage, permissions, routes",
    "test_then_another_browser_is_there": "what cannot be undone makes the browser unusable",
    "test_then_another_browser_without_it_is_there": "nor can passkeys",
    "test_who_asks_for_it_has_a_browser_of_his_own": "fresh_profile=True",
    "test_then_the_shared_one_is_still_there": "fresh_profile=True",
    "test_then_there_is_one_again": "a browser that died is replaced",
    "test_then_it_was_killed_and_there_is_another": "so is one that hangs",
    "test_then_the_same_browser_is_there": "a page that hangs is closed, whatever faults it has",
    "test_then_it_was_killed_too": "a browser that hangs is replaced, whatever faults it has",
    "test_then_the_site_that_was_not_opened_is_signed_out": "a session that a test loads",
    "test_a_route_answers_the_fetch_of_a_tool": "page.route",
    "test_a_route_fails_the_fetch_of_a_tool": "page.route",
    "test_a_recorded_site_answers_the_fetch_of_a_tool": "HAR replay",
    "test_a_saved_session_goes_along_with_the_fetch_of_a_tool": "storage_state",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    return run_kit(tmp_path_factory.mktemp("isolation"), "isolation")


@pytest.mark.parametrize("name", PROMISES)
def test_the_promise_holds(ran: KitRun, name: str) -> None:
    assert ran[name].outcome == "passed", ran.output


def test_all_of_them_pass(ran: KitRun) -> None:
    assert set(ran.outcomes.values()) == {"passed"}, ran.output
