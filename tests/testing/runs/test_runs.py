"""Tests that are repeated, sharded, or limited to those that failed, and pytest's report."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from xml.etree import ElementTree as ET

import pytest

from e2e.kit.runs import UNSTABLE, KitRun, arguments, read_junit

pytest_plugins = ["pytester"]
Run = Callable[..., KitRun]


NOTING = """
from pathlib import Path
import pytest

def note(what):
    with open('noted', 'a') as file: file.write(what + ' ')
    return Path('noted').read_text().count(what)

@pytest.fixture(scope='session')
def session(): note('begin'); yield; note('end')
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [each for each in os.environ if each.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)
    (pytester.path / "pytest.ini").write_text("[pytest]\njunit_family = xunit1\n")
    return pytester.path


@pytest.fixture
def run(pytester: pytest.Pytester, suite: Path) -> Run:
    """Runs the suite in this process."""

    def run_(*options: str) -> KitRun:
        # Soft assertions of an inner run would be nested in those of this run.
        given = arguments("-p", "no:playwright", "--junitxml=junit.xml", *options)
        done = pytester.runpytest_inprocess(*given)
        output = f"{done.stdout}\n{done.stderr}"
        return KitRun(suite, int(done.ret), output, read_junit(suite / "junit.xml"))

    return run_


@pytest.fixture
def unstable(suite: Path) -> None:
    copyfile(UNSTABLE, suite / "test_it.py")


def elements(ran: KitRun, tag: str) -> dict[str, ET.Element]:
    """The first element of this kind of each test that has one, by the test's name."""
    cases = ET.parse(ran.directory / "junit.xml").iter("testcase")
    return {case.attrib["name"]: each for case in cases if (each := case.find(tag)) is not None}


@pytest.mark.usefixtures("unstable")
def test_a_test_that_passes_when_it_is_run_again_is_flaky_and_not_passed(run: Run) -> None:
    ran = run("--opentabs-retries=2")

    assert ran.code == 1
    assert re.search(r"1 failed, 1 passed, 1 skipped, 2 flaky in", ran.output)
    assert "test_it.py::test_flaky failed once, then passed:" in ran.output
    assert "the site is slow today" in ran.output
    flaky = elements(ran, "flakyFailure")
    assert flaky.keys() == {"test_flaky", "test_with_a_shaky_fixture"}
    assert "the fixture is slow today" in flaky["test_with_a_shaky_fixture"].attrib["message"]
    assert ran["test_flaky"].properties["opentabs_attempts"] == "2"
    assert "the site is slow today" in ran["test_flaky"].properties["opentabs_flaky"]


def test_junit_shows_what_xml_cannot_hold_in_the_failure_of_a_flaky_test(
    suite: Path, run: Run
) -> None:
    (suite / "test_it.py").write_text(
        "attempts = []\n"
        "def test_flaky():\n"
        "    attempts.append(1)\n"
        "    if len(attempts) == 1: raise AssertionError('\\x1b[31mred\\x00 \\ud83d')\n"
    )

    ran = run("--opentabs-retries=1")

    assert ran.code == 0, ran.output
    failure = elements(ran, "flakyFailure")["test_flaky"]
    for text in (failure.attrib["message"], failure.text or ""):
        assert "AssertionError: #x1B[31mred#x00 #xD83D" in text


@pytest.mark.usefixtures("unstable")
def test_a_test_that_fails_each_time_has_failed(run: Run) -> None:
    ran = run("--opentabs-retries=2")

    assert ran["test_broken"].outcome == "failed"
    assert ran["test_broken"].properties["opentabs_attempts"] == "3"
    assert "It failed in all 3 attempts; this is the last." in ran.output
    assert ran["test_sound"].properties == {}


def test_the_last_attempt_shows_what_it_printed_itself(suite: Path, run: Run) -> None:
    (suite / "test_it.py").write_text(
        "import itertools\n"
        "attempts = itertools.count(1)\n"
        "def test_broken():\n"
        "    print('attempt', next(attempts))\n"
        "    assert 1 == 2\n"
    )

    ran = run("--opentabs-retries=2")

    assert re.findall(r"^attempt \d", ran.output, re.MULTILINE) == ["attempt 3"]


@pytest.mark.usefixtures("unstable")
def test_flaky_tests_alone_do_not_fail_a_run(run: Run) -> None:
    ran = run("--opentabs-retries=1", "--deselect=test_it.py::test_broken")

    assert ran.code == 0, ran.output


@pytest.mark.usefixtures("unstable")
def test_workers_report_flaky_tests_too(run: Run) -> None:
    ran = run("--opentabs-retries=1", "-n1")

    assert re.search(r"1 failed, 1 passed, 1 skipped, 2 flaky in", ran.output), ran.output


def test_fixtures_of_the_session_live_on_when_the_last_test_runs_again(
    suite: Path, run: Run
) -> None:
    (suite / "test_it.py").write_text(
        f"{NOTING}"
        "@pytest.fixture\n"
        "def own(session): note('own'); yield; note('done')\n"
        "def test_last(own): assert Path('noted').read_text().count('own') == 2\n"
    )

    ran = run("--opentabs-retries=3")

    assert "1 flaky" in ran.output
    assert (suite / "noted").read_text() == "begin own done own done end "


def test_fixtures_of_the_session_live_on_when_the_last_test_s_own_fixture_fails_at_its_end(
    suite: Path, run: Run
) -> None:
    (suite / "test_it.py").write_text(
        f"{NOTING}"
        "@pytest.fixture\n"
        "def own(session): yield; assert note('done') == 2\n"
        "def test_last(own): ...\n"
    )

    ran = run("--opentabs-retries=3")

    assert "1 flaky" in ran.output, ran.output
    assert (suite / "noted").read_text() == "begin done done end "


@pytest.mark.parametrize("scope", ["module", "session"])
def test_a_wider_fixture_that_fails_is_tried_again(suite: Path, scope: str, run: Run) -> None:
    (suite / "test_it.py").write_text(
        f"{NOTING}"
        f"@pytest.fixture(scope={scope!r})\n"
        "def shaky(session): assert note('try') == 2; yield; note('done')\n"
        "def test_first(shaky): ...\n"
        "def test_second(shaky): ...\n"
    )

    ran = run("--opentabs-retries=1")

    assert re.search(r"1 passed, 1 flaky in", ran.output), ran.output
    assert (suite / "noted").read_text() == "begin try try done end "


def test_a_test_whose_own_fixture_fails_at_its_end_each_time_has_failed(
    suite: Path, run: Run
) -> None:
    (suite / "test_it.py").write_text(
        f"{NOTING}@pytest.fixture\ndef own(session): yield; assert 1 == 2\ndef test_it(own): ...\n"
    )

    ran = run("--opentabs-retries=1")

    assert re.search(r"1 passed, 1 error in", ran.output), ran.output
    assert "It failed in all 2 attempts; this is the last." in ran.output


def test_a_test_is_not_run_again_for_the_end_of_a_wider_fixture(suite: Path, run: Run) -> None:
    (suite / "test_it.py").write_text(
        f"{NOTING}"
        "@pytest.fixture(scope='module')\n"
        "def wider(session): yield; assert note('failed') == 0\n"
        "def test_flaky(wider): assert note('run') == 2\n"
    )

    ran = run("--opentabs-retries=3")

    assert re.search(r"1 error, 1 flaky in", ran.output), ran.output
    assert "It failed in all" not in ran.output
    assert (suite / "noted").read_text() == "begin run run failed end "


def test_a_test_that_fails_and_is_then_skipped_has_failed(suite: Path, run: Run) -> None:
    (suite / "test_it.py").write_text(
        f"{NOTING}"
        "def test_it():\n"
        "    if note('run') == 2: pytest.skip('today')\n"
        "    assert 1 == 2\n"
    )

    ran = run("--opentabs-retries=3")

    assert ran.code == 1
    assert re.search(r"1 failed in", ran.output), ran.output
    assert "assert 1 == 2" in ran.output
    assert "The next attempt was skipped." in ran.output


def test_each_test_is_repeated_with_a_number(suite: Path, run: Run) -> None:
    (suite / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('a', 'xy')\n"
        "def test_it(a): ...\n"
        "class TestClass:\n"
        "    def test_within(self): ...\n"
    )

    ran = run("--opentabs-repeat=3")

    names = {f"test_it[{a}-{n}-of-3]" for a in "xy" for n in (1, 2, 3)}
    assert ran.outcomes.keys() == names | {f"test_within[{n}-of-3]" for n in (1, 2, 3)}
    assert set(ran.outcomes.values()) == {"passed"}


@pytest.mark.parametrize("workers", [[], ["-n1"]])
def test_a_warning_names_what_is_not_repeated(suite: Path, workers: list[str], run: Run) -> None:
    (suite / "test_it.py").write_text(
        "from unittest import TestCase\n"
        "def test_it(): ...\n"
        "class TestClass(TestCase):\n"
        "    def test_within(self): ...\n"
    )

    ran = run("--opentabs-repeat=2", "-W", "default", *workers)

    assert ran.outcomes.keys() == {"test_it[1-of-2]", "test_it[2-of-2]", "test_within"}
    assert "3 passed, 1 warning" in ran.output
    assert "--opentabs-repeat ran test_within only once" in ran.output


@pytest.mark.parametrize("workers", [[], ["-n1"]])
def test_the_parts_of_a_suite_are_the_whole_and_each_says_what_it_left_out(
    suite: Path, workers: list[str], run: Run
) -> None:
    for name, count in {"a": 3, "b": 2, "c": 1}.items():
        tests = "".join(f"def test_{name}{n}(): ...\n" for n in range(count))
        (suite / f"test_{name}.py").write_text(tests)

    first = run("--opentabs-shard=1/2", *workers)
    second = run("--opentabs-shard=2/2", *workers)

    assert first.cases.keys() == {"test_a0", "test_a1", "test_a2"}
    assert second.cases.keys() == {"test_b0", "test_b1", "test_c0"}
    assert "This was part 1 of 2: 3 of 6 tests." in first.output
    assert "Left to the other parts:\n  2 in test_b.py\n  1 in test_c.py\n" in first.output
    assert "Left to the other parts:\n  3 in test_a.py\n" in second.output


@pytest.mark.parametrize("workers", [[], ["-n1"]])
def test_a_part_without_tests_has_not_failed(suite: Path, workers: list[str], run: Run) -> None:
    (suite / "test_it.py").write_text("def test_it(): ...\n")

    empty = run("--opentabs-shard=2/2", *workers)
    none = run("--opentabs-shard=2/2", "-k", "nothing", *workers)

    assert empty.code == pytest.ExitCode.OK, empty.output
    assert "This was part 2 of 2: 0 of 1 tests." in empty.output
    assert none.code == pytest.ExitCode.NO_TESTS_COLLECTED


def test_a_part_that_does_not_exist_is_an_error_of_use(run: Run) -> None:
    for part in ("3/2", "0/2", "1", "a/b"):
        ran = run(f"--opentabs-shard={part}")

        assert ran.code == pytest.ExitCode.USAGE_ERROR
        assert "must be I/N, such as 1/4" in ran.output


@pytest.mark.parametrize(
    ("option", "least"), [("retries=-1", 0), ("repeat=0", 1), ("fuzz=0", 1), ("retries=-2", 0)]
)
@pytest.mark.usefixtures("unstable")
def test_a_number_of_runs_that_cannot_be_is_a_usage_error(
    run: Run, option: str, least: int
) -> None:
    ran = run(f"--opentabs-{option}")

    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert f"must be at least {least}, not" in ran.output


@pytest.mark.parametrize("name", ["opentabs_clock", "opentabs_trace", "opentabs_record"])
def test_a_choice_in_the_ini_file_that_does_not_exist_is_refused(
    suite: Path, run: Run, name: str
) -> None:
    (suite / "pytest.ini").write_text(f"[pytest]\n{name} = manuel\n")

    ran = run()

    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert f"{name} = manuel in the ini file: use one of " in ran.output
