"""What `expect(call)` does when it is met and when not, and what fails a test by itself."""

import re

import pytest

from e2e.kit.runs import KitRun, run_kit


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    return run_kit(tmp_path_factory.mktemp("expectations"), "expectations")


def test_all_that_holds_passes_and_all_else_fails(ran: KitRun) -> None:
    wrong = {
        name: outcome
        for name, outcome in ran.outcomes.items()
        if outcome != ("failed" if name.startswith(("test_fails", "test_breaks")) else "passed")
    }

    assert len(ran.cases) > 20, ran.output
    assert wrong == {}, ran.output


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("success", ["demo_export_messages: expected to succeed, within 5 s", "NOT_FOUND: There"]),
        ("an_error", ["expected to fail with code='NOT_FOUND', retryable=True", "got: succeeded"]),
        ("progress", ["2 times, as given", '+{"progress": 2, "total": 3}']),
        ("a_value", ["expected to return", '-    "a": 2\n+    "a": 1']),
        (
            "a_call_that_still_runs",
            [
                "got: still running, 1 progress report",
                "… probe_run",
                "relay → page",
                "reached    the page: the tool was started and did not return",
            ],
        ),
        ("logs", ["to log with level='error', text='boom'", "got: no logs", "the call: succeeded"]),
        ("a_plugin", ["the demo\nplugin demo: expected to be unavailable", "got: ready"]),
        ("what_must_not_be", ["expected not to succeed", "got: succeeded"]),
        ("an_unknown_plugin", ["There is no plugin 'nope'; there are: demo, probe."]),
        ("a_clock_that_goes_by_itself", ['@pytest.mark.opentabs(clock="manual")']),
        (
            "a_fault_that_never_fires",
            [
                "The test passed, but faults that it injected had no effect:",
                "drop websocket tool.progress",
                "delay port tool.result nth=2 0.01 s",
                "optional=True",
            ],
        ),
    ],
)
def test_a_failed_expectation_says_what_was_expected_and_what_arrived(
    ran: KitRun, name: str, texts: list[str]
) -> None:
    text = ran[f"test_fails_of_{name}"].text

    assert [each for each in texts if each not in text] == []


def test_a_failed_expectation_shows_the_hops_of_its_call(ran: KitRun) -> None:
    text = ran["test_fails_of_success"].text

    for hop in ("server → service worker", "relay → page", "tool", "service worker → server"):
        assert hop in text
    assert "reached" in text


def test_soft_expectations_fail_the_test_at_its_end_with_those_of_playwright(ran: KitRun) -> None:
    text = ran["test_fails_softly"].text

    assert "Soft assertion failures (3 sub-exceptions)" in text
    assert "expected to fail" in text
    assert "Locator expected to have text 'another'" in text
    assert "expected to return" in text


def test_a_soft_failure_shows_its_line(ran: KitRun) -> None:
    lines = (ran.directory / "test_expectations.py").read_text().splitlines()
    numbers = [n for n, line in enumerate(lines, 1) if line.startswith("    expect.soft(call)")]

    shown = re.findall(
        r'test_expectations.py", line (\d+), in test_', ran["test_fails_softly"].text
    )

    assert list(map(int, shown)) == numbers


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("the_value_of_a_call_that_failed", "ToolFailedError: There is no channel 'nope'"),
        ("the_value_that_a_client_was_not_sent", "ToolFailedError: There is no channel 'nope'"),
        ("the_start_page_of_an_unknown_plugin", "LookupError: There is no plugin 'nope'; there"),
        ("an_unknown_browser", "LookupError: This test has no browser named 'nope'; it has none."),
        ("a_clock_that_goes_by_itself", "RuntimeError: The clock of this test runs in real time"),
        (
            "a_fault_in_a_message_that_does_not_exist",
            "ValueError: No 'tool.nope' passes the hop 'websocket'; did you mean ",
        ),
        (
            "an_argument_given_twice",
            "TypeError: These arguments are given twice, in the mapping and as keywords: channelId",
        ),
    ],
)
def test_an_error_in_a_test_shows_the_test_s_line_alone(ran: KitRun, name: str, text: str) -> None:
    shown = ran[f"test_fails_of_{name}"].text

    assert text in shown
    assert shown.count("\n>       ") == 1
    assert "opentabs_py/" not in shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "with_progress_that_goes_back",
            "reported progress that did not increase: report 2 says 1",
        ),
        ("its_output_schema", 'channels[0].id: 1 is not of type "string"'),
        ("by_reporting_after_its_end", "probe_run reported after its end"),
        *(
            (
                f"by_reporting_when_the_test_is_over[chromium-{n}]",
                "probe_run reported after its end",
            )
            for n in range(5)
        ),
    ],
)
def test_a_breach_of_contract_fails_a_test_that_passes(ran: KitRun, name: str, text: str) -> None:
    case = ran[f"test_breaks_{name}"]

    assert case.outcome == "failed"
    assert "The test passed, but tools broke their contracts" in case.text
    assert text in case.text
