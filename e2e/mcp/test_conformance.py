"""The official suite finds only what `conformance.yml` lists, in both eras of MCP."""

import asyncio
from dataclasses import replace

import pytest

from e2e.mcp.conformance import BASELINE, Expected, Run, judge, read_baseline, run_suite
from e2e.quiet import Quiet


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, quiet: Quiet) -> list[Run]:
    with quiet():  # the suite gives the server half a second for each answer
        return asyncio.run(run_suite(tmp_path_factory.mktemp("conformance")))


@pytest.fixture(scope="module")
def baseline() -> list[Expected]:
    return read_baseline(BASELINE.read_text())


def test_nothing_fails_but_what_the_baseline_names(
    runs: list[Run], baseline: list[Expected]
) -> None:
    verdict = judge(runs, baseline)

    assert verdict.unexpected == ()
    assert verdict.stale == ()
    assert [run.output for run in verdict.disagreed] == []


def test_what_python_tools_offer_besides_passes_in_both_eras(runs: list[Run]) -> None:
    for run in runs:
        assert {
            "resources-list",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-image",
            "tools-call-mixed-content",
        } <= set(run.whole)


def test_what_page_tools_offer_passes_in_both_eras(runs: list[Run]) -> None:
    for run in runs:
        assert {
            "dns-rebinding-protection",
            "json-schema-2020-12",
            "server-sse-multiple-streams",
            "tools-call-error",
            "tools-call-simple-text",
            "tools-call-with-progress",
            "tools-list",
        } <= set(run.whole)


def test_a_failure_that_no_entry_covers_is_found(runs: list[Run], baseline: list[Expected]) -> None:
    first, *others = baseline

    verdict = judge(runs, others)

    assert {check.name for _, check in verdict.unexpected} == {first.name}


def test_an_entry_that_no_failure_needs_is_found(runs: list[Run], baseline: list[Expected]) -> None:
    passing = Expected("tools-list:tools-list", "it passes")

    assert judge(runs, [*baseline, passing]).stale == (passing,)


def test_a_warning_counts_as_a_failure(runs: list[Run], baseline: list[Expected]) -> None:
    warned = replace(runs[0].checks[0], id="anything", status="WARNING")

    verdict = judge([replace(runs[0], checks=(warned,))], baseline)

    assert verdict.unexpected == ((runs[0].revision, warned),)


def test_each_entry_of_the_baseline_has_a_reason(baseline: list[Expected]) -> None:
    assert len({entry.reason for entry in baseline}) == BASELINE.read_text().count("\n\n") + 1
    assert all(len(entry.reason) > 20 for entry in baseline)


def test_the_suite_itself_has_to_be_content(runs: list[Run], baseline: list[Expected]) -> None:
    discontent = [replace(run, agreed=False) for run in runs]

    assert judge(runs, baseline).good
    assert not judge(discontent, baseline).good
