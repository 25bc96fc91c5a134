"""Two people with two browsers in one test."""

import re

import pytest

from e2e.kit.runs import KitRun, run_kit
from opentabs_py.browser.signed_in import save_sign_in
from opentabs_py.tracing.file import read_trace

FAIL = {"test_fails", "test_breaks_a_contract_in_the_second_browser"}
COOKIE = {
    "name": "who", "value": "ben", "domain": "127.0.0.1", "path": "/",
    "expires": -1, "httpOnly": False, "secure": False, "sameSite": "Lax",
}  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    directory = tmp_path_factory.mktemp("people")
    data = str(directory / "data")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_DATA_HOME", data)
        save_sign_in("bens", {"cookies": [COOKIE], "origins": []}, warn=lambda _: None)
    options = ["--opentabs-trace=on", "--output=kept"]
    return run_kit(directory, "people", *options, XDG_DATA_HOME=data)


@pytest.mark.parametrize(
    "name",
    [
        "test_one_reads_what_the_other_writes",
        "test_neither_has_the_cookies_of_the_other",
        "test_then_nothing_is_left_in_the_same_browsers",
        "test_then_the_first_is_that_of_tests_with_one",
        "test_the_usual_fixtures_are_those_of_the_first",
        "test_calls_of_both_run_at_once_and_a_fault_hits_one",
        "test_each_has_a_clock",
        "test_a_failure_shows_which_server_each_uses",
        "test_one_begins_with_a_sign_in",
        "test_both_have_browsers_of_their_own",
    ],
)
def test_the_promise_holds(ran: KitRun, name: str) -> None:
    assert ran[name].outcome == "passed", ran.output


def test_all_others_fail_on_purpose(ran: KitRun) -> None:
    assert {name for name, outcome in ran.outcomes.items() if outcome != "passed"} == FAIL


def test_the_report_says_whose_calls_it_shows(ran: KitRun) -> None:
    report = ran["test_fails"].properties["opentabs_report"]

    assert re.fullmatch(
        r"--- ann ---\n✓ probe_echo .*--- ben ---\n✓ probe_run .*", report, re.DOTALL
    ), report


def test_each_has_a_trace_file(ran: KitRun) -> None:
    folder = ran.directory / "kept" / "test-people-py-test-fails-chromium"

    called = {
        file.name: [record.name for record in read_trace(file).records] for file in folder.iterdir()
    }

    assert called == {"opentabs-ann.trace": ["probe_echo"], "opentabs-ben.trace": ["probe_run"]}


def test_a_broken_contract_in_the_second_browser_fails_the_test(ran: KitRun) -> None:
    text = ran["test_breaks_a_contract_in_the_second_browser"].text

    assert "probe_run reported progress that did not increase" in text
