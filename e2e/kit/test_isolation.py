"""Many tests share a browser without seeing each other, and `page.route` answers a tool's fetch."""

from pathlib import Path

import pytest

from e2e.kit.runs import KitRun, run_kit
from opentabs_py.core.recording.exchange import Exchange, Recording, Request, Response
from opentabs_py.recording.files import write_recording

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
    "test_then_it_is_not_kept": "the HTTP cache",
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


def test_a_profile_and_a_port_of_the_users_are_shared_and_not_replayed_into(
    tmp_path: Path,
) -> None:
    cookie = {
        "name": "recorded", "value": "1", "domain": "site.test", "path": "/", "expires": -1,
        "httpOnly": False, "secure": False, "sameSite": "Lax",
    }  # fmt: skip
    exchange = Exchange(Request("GET", "http://site.test/"), Response(200, "OK", body=b""))
    state = {"cookies": [cookie], "origins": []}
    recording = Recording("http://site.test/", [exchange], storage_state=state)
    write_recording(recording, tmp_path / "site.har", version="1")

    ran = run_kit(tmp_path, "kept_profile")

    assert list(ran.outcomes.values()) == ["passed"] * 4, ran.output
