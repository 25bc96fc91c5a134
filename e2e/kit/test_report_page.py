"""The report of a test run, an HTML file: its content, and when it is written."""

import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from subprocess import DEVNULL

import pytest
from playwright.async_api import Browser, expect

from e2e.documents import run as run_command
from e2e.kit.report_page import OpenReport, open_report, prepare_suite
from e2e.kit.runs import HAS_FFMPEG, RUN_WITHIN, KitRun, command, environment, run
from e2e.live_page import chromium, find_nameless, find_too_wide
from opentabs_py.config.settings import load_settings
from opentabs_py.core.runner.report import Report
from opentabs_py.runner.report_page import read_report

NAME = "out/report.html"
OPTIONS = [
    f"--opentabs-report={NAME}",
    "--opentabs-retries=1",
    "--continue-on-collection-errors",
]
KEPT = [
    "--tracing=retain-on-failure",
    "--output=kept",
    *(["--video=retain-on-failure"] if HAS_FFMPEG else []),
]
STATES = {
    "test_passes": "passed",
    "test_fails": "failed",
    "test_flaky": "flaky",
    "test_faults": "passed",
    "test_error": "failed",
    "test_recording": "failed",
    "test_skipped": "skipped",
    "test_expected": "xfailed",
    "test_hostile[<img src=x>]": "failed",
    "": "failed",  # the file that cannot be imported
}
COLOUR = """async (image) => {
    await image.decode();
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.drawImage(image, 2, image.naturalHeight - 9, 1, 1, 0, 0, 1, 1);
    const [red, green] = canvas.getImageData(0, 0, 1, 1).data;
    return red > 150 && green < 60 ? "red" : "plain";
}"""


def states(report: Report) -> dict[str, str]:
    return {test["name"]: test["state"] for test in report.tests}


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium(load_settings(port=0)) as running:
        yield running


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    """A run of tests with every outcome, with all features of the kit at once."""
    directory = prepare_suite(tmp_path_factory.mktemp("report"))
    return run(directory, *OPTIONS, *KEPT, SEEN=str(directory / "seen"))


@pytest.fixture
async def shown(ran: KitRun, browser: Browser) -> AsyncGenerator[OpenReport]:
    async with open_report(browser, ran.directory / NAME) as report:
        yield report


def test_pytest_says_where_the_report_is_and_ends_as_without_it(ran: KitRun) -> None:
    assert ran.code == 1
    assert f" report: {ran.directory / NAME} " in ran.output
    assert "3 failed, 2 passed, 1 skipped, 1 xfailed, 2 errors, 1 flaky" in ran.output
    assert ran["test_flaky"].properties["opentabs_attempts"] == "2"


async def test_the_summary_counts_the_tests_by_how_they_ended(shown: OpenReport) -> None:
    counts = ["3 failed", "2 errors", "1 flaky", "2 passed", "1 skipped", "1 xfailed"]
    await expect(shown.groups.get_by_role("button")).to_have_text(counts)
    await expect(shown.page.locator("#verdict")).to_have_text("✗ Failed")
    await shown.page.locator("summary", has_text="About").click()
    about = shown.page.locator(".about-runs")
    for text in ("Chromium", "Python", "pytest", "OpenTabs", "--opentabs-retries=1"):
        await expect(about).to_contain_text(text)
    await shown.page.keyboard.press("Escape")
    await expect(about).to_be_hidden()
    await expect(shown.details).to_be_visible()


async def test_the_tests_are_filtered_by_how_they_ended_and_by_words(shown: OpenReport) -> None:
    flaky = shown.groups.get_by_role("button", name="1 flaky")
    await flaky.click()
    await expect(flaky).to_have_attribute("aria-pressed", "true")
    await expect(shown.page.locator(".row.test")).to_have_count(1)
    await expect(shown.row("test_flaky, flaky")).to_be_visible()
    await flaky.click()
    await expect(shown.page.locator(".row.test")).to_have_count(len(STATES))
    await shown.page.keyboard.press("/")
    await shown.page.keyboard.type("no fixture today")
    await expect(shown.page.locator(".row.test")).to_have_count(1)
    await expect(shown.row("test_error, failed in its setup")).to_be_visible()


async def test_the_first_failure_is_open_with_its_error_calls_and_screenshots(
    shown: OpenReport,
) -> None:
    await expect(shown.details.locator("h2")).to_contain_text("test_fails")
    failure = shown.details.get_by_role("region", name="Failure", exact=True)
    await expect(failure.last).to_contain_text('-  "channels": "none"')
    calls = shown.details.get_by_role("region", name="Calls", exact=True)
    await expect(calls.locator(".one-call")).to_have_count(2)
    for hop in ("server → service worker", "relay → page", "tool", "service worker → server"):
        await expect(calls.get_by_role("row", name=hop).first).to_be_visible()
    await calls.locator("summary").first.click()
    colours = [
        await screenshot.evaluate(COLOUR)
        for call in await calls.locator(".one-call").all()
        for screenshot in await call.get_by_role("img").all()
    ]
    assert colours == ["plain", "plain", "red", "red"]
    at_failure = shown.details.get_by_role("img", name="At the failure", exact=True)
    assert await at_failure.evaluate(COLOUR) == "red"
    await shown.details.get_by_text("Captured stdout call").last.click()
    await expect(shown.details.get_by_text("what it printed").last).to_be_visible()


async def test_a_flaky_test_shows_the_attempt_that_failed(shown: OpenReport) -> None:
    await shown.choose("test_flaky, flaky")
    first = shown.details.get_by_role("region", name="Attempt 1 of 2")
    await expect(first).to_contain_text("the site is slow today")
    await expect(first.get_by_role("img", name="At the failure")).to_be_visible()
    await expect(first.locator(".one-call")).to_have_count(1)
    await expect(shown.details.locator(".one-call")).to_have_count(2)


async def test_a_broken_fixture_is_shown_with_the_page_as_it_was(shown: OpenReport) -> None:
    await shown.choose("test_error, failed in its setup")
    await expect(shown.details).to_contain_text("RuntimeError: no fixture today")
    await expect(shown.details.get_by_role("img", name="At the failure").last).to_be_visible()


async def test_why_a_test_was_skipped_or_expected_to_fail_is_shown(shown: OpenReport) -> None:
    await shown.choose("test_skipped, skipped")
    reason = shown.details.get_by_role("region", name="Reason")
    await expect(reason).to_contain_text("not yet")
    await expect(shown.details).not_to_contain_text("It made no call")
    await shown.page.get_by_label("Filter tests").fill("a known bug")
    await expect(shown.page.locator(".row.test")).to_have_count(1)
    await shown.choose("test_expected, failed, as expected")
    await expect(reason).to_have_count(0)  # it is in the failure


async def test_faults_are_shown_with_their_seed(shown: OpenReport) -> None:
    await shown.choose("test_faults, passed")
    faults = shown.details.get_by_role("region", name="Faults")
    await expect(faults).to_contain_text("delay port tool.result 0.05 s: up 1")
    await expect(faults).to_contain_text("With seed 0.")
    await expect(faults.get_by_role("button", name="Copy a replay")).to_be_visible()


async def test_what_a_recording_did_not_answer_is_listed(shown: OpenReport) -> None:
    await shown.choose("test_recording, failed")
    [missed] = await shown.details.get_by_role("region", name="Recording").all()
    await expect(missed).to_contain_text("The recording recorded.har does not answer:")
    await expect(missed.get_by_role("listitem")).to_have_count(1)
    await expect(missed.get_by_role("listitem")).to_contain_text(
        "GET http://site.test/api/new?page=22 times"
    )
    await expect(missed.get_by_role("listitem")).to_contain_text("query page: recorded 1, sent 2")


async def test_a_file_that_cannot_be_imported_is_shown(shown: OpenReport) -> None:
    await shown.row("test_uncollectable.py, failed").click()
    await expect(shown.details.locator("h2")).to_contain_text("Cannot be imported")
    await expect(shown.details).to_contain_text("No module named 'no_such_module'")


async def test_what_tests_print_and_raise_is_only_ever_text(shown: OpenReport) -> None:
    await shown.choose("test_hostile[<img src=x>], failed")
    await expect(shown.details).to_contain_text("</script><script>document.title='owned'</script>")
    assert "owned" not in await shown.page.title()
    assert await shown.page.evaluate("document.querySelectorAll('img[src=x]').length") == 0


async def test_files_that_were_kept_are_linked_where_they_are(
    ran: KitRun, shown: OpenReport
) -> None:
    await shown.choose("test_fails, failed")
    files = shown.details.get_by_role("region", name="Files")
    names = ["trace.zip", *(["video.webm"] if HAS_FFMPEG else [])]
    await expect(files.get_by_role("link")).to_have_text(names)
    for link in await files.get_by_role("link").all():
        href = await link.get_attribute("href")
        assert (ran.directory / "out" / str(href)).is_file()
    await expect(files.locator("video")).to_have_count(len(names) - 1)


@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (900, False), (1900, True)])
async def test_nothing_is_wider_than_the_window(
    ran: KitRun, browser: Browser, width: int, dark: bool
) -> None:
    async with open_report(browser, ran.directory / NAME, width=width, dark=dark) as shown:
        for name in ("", "test_fails", "test_flaky", "test_recording", "test_hostile"):
            await shown.page.evaluate("location.hash = '#/tests'")
            await expect(shown.row("test_passes")).to_be_visible()
            if name:
                await shown.choose(name)
            assert await find_too_wide(shown.page) == [], name


async def test_it_is_printed_whole(ran: KitRun, browser: Browser) -> None:
    async with open_report(browser, ran.directory / NAME, height=150) as shown:
        await shown.choose("test_fails")
        await shown.page.evaluate("""() => {
            document.documentElement.style.setProperty("--least", "0px");
            addEventListener("beforeprint", () => {
                window.printed = document.querySelectorAll(".row").length;
            });
        }""")
        rows = shown.page.locator(".row")
        everything = int(await rows.first.get_attribute("aria-setsize") or "")
        await expect(rows).not_to_have_count(everything)
        await shown.page.pdf()
        assert await shown.page.evaluate("printed") == everything
        await expect(rows).not_to_have_count(everything)
        await shown.page.emulate_media(media="print")
        for part in (shown.details, shown.details.locator(".failure").first):
            assert await part.evaluate("(part) => part.scrollHeight - part.clientHeight") <= 0


async def test_it_is_used_with_keys_alone(shown: OpenReport) -> None:
    await shown.page.get_by_role("listbox", name="Tests").focus()
    await shown.page.keyboard.press("End")
    await expect(shown.details.locator("h2")).to_contain_text("Cannot be imported")
    await shown.page.keyboard.press("ArrowUp")
    await shown.page.keyboard.press("ArrowUp")
    await expect(shown.details.locator("h2")).to_contain_text("test_hostile")
    await shown.page.keyboard.press("Escape")
    await expect(shown.details).to_be_hidden()


async def test_everything_that_can_be_used_has_a_name(shown: OpenReport) -> None:
    for name in ("test_fails", "test_flaky", "test_recording"):
        await shown.choose(name)
        assert await find_nameless(shown.page) == [], name


# --- runs ---


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of two workers, without Playwright's trace, which waits for each page's answer."""
    directory = prepare_suite(tmp_path_factory.mktemp("parallel"))
    done = run(directory, *OPTIONS, "-n2", SEEN=str(directory / "seen"))
    assert done.code == 1, done.output
    return read_report(directory / NAME)


def test_workers_report_to_the_same_file(ran: KitRun, parallel: Report) -> None:
    assert states(parallel) == states(read_report(ran.directory / NAME)) == STATES
    assert parallel.runs[0].workers == 2
    [flaky] = [test for test in parallel.tests if test["name"] == "test_flaky"]
    assert [len(each["calls"]) for each in flaky["attempts"]] == [1, 1]
    assert all(each["data"] for each in flaky["attempts"][0]["screenshots"])


def test_a_page_that_answers_nothing_for_some_seconds_still_has_its_screenshots(
    parallel: Report,
) -> None:
    [test] = [test for test in parallel.tests if test["name"] == "test_passes"]
    [attempt] = test["attempts"]
    assert [each["when"] for each in attempt["screenshots"]] == ["before", "after"]


SIMPLE = """
import os, signal
def test_one(): ...
def test_two():
    if "{how}" == "ctrl-c": os.kill(os.getpid(), signal.SIGINT)
    if "{how}" == "exit": os._exit(3)
    if "{how}" == "kill": os.kill(os.getpid(), signal.SIGKILL)
def test_three(): ...
"""


def end(directory: Path, *options: str, **more: str) -> str:
    """Run pytest with its cache; the JUnit report may be unreadable."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"--opentabs-report={NAME}", *options],
        cwd=directory,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # until the report is written, by whichever process
        text=True,
        timeout=RUN_WITHIN,
        check=False,
    )
    return done.stdout


def simple(directory: Path, how: str = "") -> Path:
    (directory / "test_it.py").write_text(SIMPLE.replace("{how}", how))
    return directory


@pytest.mark.parametrize(
    ("how", "second", "why"),
    [
        ("ctrl-c", "idle", "It was interrupted."),
        ("exit", "failed", "pytest crashed, or was killed."),
        ("kill", "failed", "pytest crashed, or was killed."),
    ],
)
def test_a_run_that_does_not_end_has_the_report_of_what_ran(
    tmp_path: Path, how: str, second: str, why: str
) -> None:
    (tmp_path / "tmp").mkdir()
    output = end(simple(tmp_path, how), TMPDIR=str(tmp_path / "tmp"))

    assert str(tmp_path / NAME) in output
    report = read_report(tmp_path / NAME)

    assert states(report) == {"test_one": "passed", "test_two": second, "test_three": "idle"}
    assert report.runs[0].why == why
    assert [*(tmp_path / "tmp").glob("opentabs-report-*")] == []


def test_the_command_ends_when_the_report_is_written_also_if_pytest_is_killed(
    tmp_path: Path,
) -> None:
    simple(tmp_path, "kill")
    command = [sys.executable, "-m", "opentabs_py", "test", "test_it.py", "--report", NAME]
    # Not to a pipe, which would be open until the report is written.
    done = subprocess.run(command, cwd=tmp_path, env=environment(), stderr=DEVNULL, check=False)
    assert done.returncode == 1
    assert states(read_report(tmp_path / NAME))["test_two"] == "failed"


def test_the_command_says_how_a_pytest_ended_that_could_not_say_so_itself(tmp_path: Path) -> None:
    simple(tmp_path, "kill")
    done = run_command(["opentabs", "test", "test_it.py"], tmp_path)
    assert done.returncode == 1
    assert "pytest was ended by signal 9: Killed" in done.stderr


async def test_a_test_that_printed_much_has_failed_with_the_ends_of_it(
    tmp_path: Path, browser: Browser
) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it():\n    print('head' + '\\x01' * 2**23 + 'tail')\n    assert 0, 'y' * 2**25\n"
    )

    assert run(tmp_path, f"--opentabs-report={NAME}").code == 1

    async with open_report(browser, tmp_path / NAME) as shown:
        await expect(shown.page.locator("#verdict")).to_have_text("✗ Failed")
        await expect(shown.groups.get_by_role("button")).to_have_text(["1 failed"])
        printed = shown.details.locator("details", has_text="Captured stdout call")
        for text in ("head", " characters left out ", "tail"):
            await expect(printed).to_contain_text(text)


@pytest.mark.parametrize(
    ("conftest", "why"),
    [
        (
            "def pytest_sessionfinish(session): session.exitstatus = 1",
            "The run is incomplete: pytest exited with 1, but none of these tests has failed.",
        ),
        ("def pytest_runtest_logreport(report): report.outcome = 'unknown'", None),
    ],
    ids=["pytest has failed", "a test has no result"],
)
async def test_a_run_has_not_passed_if_not_all_of_it_has(
    tmp_path: Path, browser: Browser, conftest: str, why: str | None
) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): ...\n")
    (tmp_path / "conftest.py").write_text(
        f"import pytest\n@pytest.hookimpl(tryfirst=True)\n{conftest}\n"
    )

    run(tmp_path, f"--opentabs-report={NAME}")

    async with open_report(browser, tmp_path / NAME) as shown:
        await expect(shown.page.locator("#verdict")).to_have_text("… Incomplete")
        await expect(shown.page.locator(".notice")).to_have_text([] if why is None else [why])


def test_a_worker_that_dies_fails_its_test_and_the_others_are_there(tmp_path: Path) -> None:
    run(simple(tmp_path, "exit"), f"--opentabs-report={NAME}", "-n1")

    report = read_report(tmp_path / NAME)

    assert states(report) == {"test_one": "passed", "test_two": "failed", "test_three": "passed"}
    [died] = [test for test in report.tests if test["name"] == "test_two"]
    assert "crashed while running" in died["why"]


def test_only_the_tests_that_were_selected_are_in_the_report(tmp_path: Path) -> None:
    run(simple(tmp_path), f"--opentabs-report={NAME}", "-k", "one or three", "-x")

    assert states(read_report(tmp_path / NAME)) == {"test_one": "passed", "test_three": "passed"}


def test_repeated_tests_and_those_that_failed_last_are_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_a(): ...\ndef test_b(): assert 0\n")

    end(tmp_path, "--opentabs-repeat=2")
    first = states(read_report(tmp_path / NAME))
    end(tmp_path, "--opentabs-repeat=2", "--last-failed")

    failed = {"test_b[1-of-2]": "failed", "test_b[2-of-2]": "failed"}
    assert first == {"test_a[1-of-2]": "passed", "test_a[2-of-2]": "passed", **failed}
    assert states(read_report(tmp_path / NAME)) == failed


def test_the_ini_file_names_the_report_relative_to_its_directory(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\nopentabs_report = out/report.html\n")

    run(simple(below))

    assert states(read_report(tmp_path / NAME))["test_one"] == "passed"


def test_a_file_that_cannot_be_written_is_an_error_of_use(tmp_path: Path) -> None:
    simple(tmp_path)
    (tmp_path / "file").touch()
    done = run(tmp_path, "--opentabs-report=file/report.html")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--opentabs-report: Cannot write the report" in done.output
    assert "test_it.py" not in done.output


def test_nothing_is_written_when_tests_are_only_collected(tmp_path: Path) -> None:
    done = subprocess.run(
        command(f"--opentabs-report={NAME}", "--collect-only"),
        cwd=simple(tmp_path), env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "3 tests collected" in done.stdout
    assert not (tmp_path / "out").exists()


# --- several reports ---


def merge(directory: Path, *arguments: str) -> tuple[int, str]:
    done = run_command(["opentabs", "report", "merge", *arguments], directory)
    return done.returncode, done.stdout + done.stderr


async def test_the_parts_of_a_suite_become_one_report(tmp_path: Path, browser: Browser) -> None:
    for name in "ab":
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}(): ...\n")
    for part in (1, 2):
        run(tmp_path, f"--opentabs-shard={part}/2", f"--opentabs-report=parts/{part}.html")

    code, output = merge(tmp_path, "parts/1.html", "parts/2.html", "--out", "all.html")

    assert (code, output) == (0, "Wrote all.html: 2 runs, 2 tests\n")
    async with open_report(browser, tmp_path / "all.html") as shown:
        await expect(shown.groups.get_by_role("button")).to_have_text(["2 passed"])
        await shown.page.locator("summary", has_text="About").click()
        await expect(shown.page.locator(".about-runs h2")).to_have_text(
            ["part 1 of 2", "part 2 of 2"]
        )


async def test_a_test_that_failed_and_then_passed_in_another_run_is_flaky(
    tmp_path: Path, browser: Browser
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os\ndef test_it(): assert 'FAIL' not in os.environ\n"
    )
    run(tmp_path, "--opentabs-report=1.html", FAIL="1")
    run(tmp_path, "--opentabs-report=2.html")

    assert merge(tmp_path, "2.html", "1.html", "--out", "all.html")[0] == 0

    async with open_report(browser, tmp_path / "all.html") as shown:
        await shown.choose("test_it, flaky")
        attempt = shown.details.get_by_role("region", name="Attempt 1 of 2")
        await expect(attempt.locator("summary").first).to_contain_text("run 1 · AssertionError")


async def test_a_part_that_is_missing_is_named(tmp_path: Path, browser: Browser) -> None:
    for part in (1, 2):
        run(simple(tmp_path), f"--opentabs-shard={part}/3", f"--opentabs-report={part}.html")

    code, output = merge(tmp_path, "1.html", "2.html", "--out", "all.html")

    assert code == 0
    assert "warning: Part 3 of 3 is missing." in output
    async with open_report(browser, tmp_path / "all.html") as shown:
        await expect(shown.page.locator(".notice")).to_have_text("Part 3 of 3 is missing.")
        await expect(shown.page.locator("#verdict")).to_have_text("… Incomplete")


def test_what_cannot_be_merged_is_an_error_of_use(tmp_path: Path) -> None:
    run(simple(tmp_path), "--opentabs-report=1.html")
    (tmp_path / "other.html").write_text("<p>Hello</p>")

    for files, why in (
        (["1.html", "other.html"], "other.html is not a report that"),
        (["1.html", "1.html"], "Two of these reports are of the same run"),
        (["1.html", "gone.html"], "Cannot read the report gone.html: No such file"),
    ):
        code, output = merge(tmp_path, *files, "--out", "all.html")
        assert (code, re.sub(r"\s+", " ", output).count(why)) == (2, 1), output
    assert not (tmp_path / "all.html").exists()


async def test_of_a_long_report_only_what_is_seen_is_drawn(
    tmp_path: Path, browser: Browser
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(2000))\n"
        "def test_it(n): assert n != 1500\n"
    )
    run(tmp_path, f"--opentabs-report={NAME}")

    page = (tmp_path / NAME).read_text()
    # The details of the tests come after the code that draws the list, which need not wait for
    # them.
    assert page.index('id="report"') < page.index("<script>") < page.index('id="test-0"')
    async with open_report(browser, tmp_path / NAME) as shown:
        await expect(shown.groups.get_by_role("button")).to_have_text(["1 failed", "1,999 passed"])
        await expect(shown.row("test_it[1500], failed")).to_be_visible()  # it is scrolled into view
        assert await shown.page.locator(".row").count() < 60
        await shown.page.get_by_label("Filter tests").fill("[1999]")
        await shown.choose("test_it[1999]")


def test_the_command_passes_the_report_on(short_path: Path) -> None:
    (short_path / "package.json").write_text('{"name": "opentabs-plugin-x", "opentabs": {}}')
    (short_path / "tests").mkdir()
    simple(short_path / "tests")

    done = run_command(["opentabs", "test", "--color=no", "--report", NAME], short_path)

    assert done.returncode == 0, done.stderr
    assert states(read_report(short_path / NAME))["test_one"] == "passed"
    (short_path / "tests" / "test_it.py").unlink()
    (short_path / "tests" / "a.test.js").write_text("")
    none = run_command(["opentabs", "test", "--color=no", "--report", "none.html"], short_path)
    assert "No report was written" in none.stderr
    refused = run_command(["opentabs", "test", "--ui", "--report", NAME], short_path)
    assert refused.returncode == 2
