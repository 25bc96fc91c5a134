"""`expect_contract` and `opentabs test --fuzz` find broken promises, with the minimal input."""

import json
import re
import shutil
from pathlib import Path

import pytest

from e2e.documents import run as run_command
from e2e.kit.promises import TOOLS, write_promises
from e2e.kit.runs import INI, Case, KitRun, run, run_kit

# The report on each tool, and the minimal arguments that break its promise.
BROKEN = {
    "returns_text": ('returned {"n": "101"}, which violates its output schema', '{"n": 101}'),
    "throws": ("ended with INTERNAL_ERROR: Cannot read properties of undefined", '{"n": 21}'),
    "makes_up_a_code": ("ended with a code that is not documented, ODD", '{"n": 6}'),
    "goes_back": ("progress that did not increase: report 5 says 2, after 3", '{"n": 5}'),
    "fetches": ("fetched http://127.0.0.9:47/, which is outside its", '{"n": 11}'),
    "breaks_when_cancelled": ("the next call ended with INTERNAL_ERROR: the page is", '{"n": 0}'),
    "affects_others": ("affects a later call, which ended with INTERNAL_ERROR", '{"n": 51}'),
    # It is too slow for a call after each, until a failure turns out to depend on earlier ones.
    "breaks_the_page": ("affects a later call, which ended with INTERNAL_ERROR: Cannot read", None),
    "never_ends": ("has not ended within 1 s", '{"n": 31}'),
    "is_deaf": ("was cancelled after", None),  # how long it takes varies
}
SOUND = ("keeps_all", "documents_its_code", "writes")
CONFTEST = """
from pathlib import Path
import pytest

@pytest.fixture(scope="session")
def opentabs_plugins():
    return [Path(__file__).parent / "tried"]
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    directory = tmp_path_factory.mktemp("fuzz")
    write_promises(directory / "tried", *TOOLS)
    return run_kit(directory, "fuzz")


def test_every_tool_is_either_broken_or_sound() -> None:
    assert {*BROKEN, *SOUND} == TOOLS.keys()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found_with_the_minimal_input(tried: KitRun, name: str) -> None:
    case = tried[f"test_contract[chromium-{name}]"]
    what, minimal = BROKEN[name]

    assert case.outcome == "failed", tried.output
    assert f"tried_{name} breaks its contract: it " in case.text
    assert what in case.text
    assert f"Arguments: {minimal or ''}" in case.text
    assert "depends on earlier calls" not in case.text


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_tool_passes(tried: KitRun, name: str) -> None:
    assert tried[f"test_contract[chromium-{name}]"].outcome == "passed", tried.output


def test_a_cancelled_tool_that_continues_gets_advice(tried: KitRun) -> None:
    text = tried["test_contract[chromium-is_deaf]"].text

    assert re.search(r"was cancelled after [\d.]+ s and (still ran|ran on until) [\d.]+ s", text)
    assert "Pass context.signal on" in text


def test_the_report_shows_the_last_call_alone(tried: KitRun) -> None:
    report = tried["test_contract[chromium-throws]"].properties["opentabs_report"]

    assert report.count("tried_throws") == 1


def test_the_test_that_is_printed_fails_as_long_as_the_tool_is_broken(
    tried: KitRun, tmp_path: Path
) -> None:
    plugin = tmp_path / "tried"
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text(INI)
    for name in BROKEN:
        printed = tried[f"test_contract[chromium-{name}]"].properties["opentabs_reproduction"]
        assert printed in tried.output  # as it is, without marks at the start of its lines
        (tmp_path / f"test_{name}.py").write_text(printed)

    write_promises(plugin, *TOOLS)
    before = run(tmp_path)
    write_promises(plugin, *TOOLS, broken=False)
    after = run(tmp_path)

    for name, (what, least) in BROKEN.items():
        case = before[f"test_tried_{name}_keeps_its_contract"]
        assert case.outcome == "failed", before.output
        assert what in case.text
        assert f"Arguments: {least or ''}" in case.text
    assert set(after.outcomes.values()) == {"passed"}, after.output
    assert len(after.cases) == len(BROKEN)


def write_sound_tool(directory: Path, **member: object) -> None:
    """Write the suite's plugin with one sound tool, of whose arguments only `word` varies."""
    tools = write_promises(directory / "tried", "keeps_all") / "dist" / "tools.json"
    described = json.loads(tools.read_text())
    schema = described["tools"][0]["input_schema"]
    schema |= {"properties": {"n": {"const": 1}, "word": member}, "required": ["n", "word"]}
    tools.write_text(json.dumps(described))
    (directory / "pytest.ini").write_text(INI)
    (directory / "conftest.py").write_text(CONFTEST)


DRAWN = """
from opentabs_py.testing import expect_contract

def test_drawn(opentabs):
    opentabs.open_start_page()
    expect_contract(opentabs.tool("tried_keeps_all"), calls=50)
"""


def test_that_only_a_few_inputs_could_be_drawn_is_a_warning(tmp_path: Path) -> None:
    write_sound_tool(tmp_path, type="integer", allOf=[{"not": {"not": {"multipleOf": 9_973}}}])
    (tmp_path / "test_few.py").write_text(DRAWN)

    cases = run(tmp_path, "-W", "default::UserWarning")

    assert cases["test_drawn[chromium]"].outcome == "passed", cases.output
    few = r"tried_keeps_all: of 50 inputs drawn from its input schema, only \d were different"
    assert re.search(few, cases.output), cases.output


def test_that_there_are_only_a_few_inputs_is_none(tmp_path: Path) -> None:
    write_sound_tool(tmp_path, enum=["a", "b"])
    (tmp_path / "test_few.py").write_text(DRAWN)

    cases = run(tmp_path)

    assert cases["test_drawn[chromium]"].outcome == "passed", cases.output


def run_instead(directory: Path, script: str, *, at_load: str = "") -> Case:
    """Fuzz a tool that does something else than it should, and return the failure."""
    write_sound_tool(directory, type="integer")
    adapter = directory / "tried" / "dist" / "adapter.iife.js"
    adapter.write_text(at_load + adapter.read_text().replace(TOOLS["keeps_all"], script))
    (directory / "test_chance.py").write_text(DRAWN)

    cases = run(directory)

    case = cases["test_drawn[chromium]"]
    assert case.outcome == "failed", cases.output
    assert "INTERNAL_ERROR" in case.text
    return case


def test_each_confirmation_begins_in_a_new_page_as_the_printed_test_does(tmp_path: Path) -> None:
    fifth = "window.calls = (window.calls ?? 0) + 1; if (window.calls % 5 === 0) undefined.field;"

    case = run_instead(tmp_path, fifth)

    assert "With them alone, the contract held each time" in case.text
    assert "calls=50)" in case.properties["opentabs_reproduction"]


def test_a_failure_that_comes_only_now_and_then_is_confirmed(tmp_path: Path) -> None:
    count_loads = "window.loads ??= localStorage.loads = Number(localStorage.loads ?? 0) + 1;\n"
    # Found in the first page, and again in the second or third of those in which it is confirmed:
    # the one in between may be left before the tool is in it.
    script = """
        window.calls = (window.calls ?? 0) + 1;
        if ((window.loads === 1 && window.calls > 5) || window.loads === 4) undefined.field;
    """

    case = run_instead(tmp_path, script, at_load=count_loads)

    held = r"With them alone, the contract held (1 of 2|2 of 3) times: the failure comes only now"
    assert re.search(held, case.text)
    assert "depends on earlier calls" not in case.text


GIVEN = """
from opentabs_py.testing import expect_contract

def test_drawn(opentabs):
    opentabs.open_start_page()
    expect_contract(opentabs.tool("tried_keeps_all"), calls=3)

def test_given(opentabs):
    opentabs.open_start_page()
    expect_contract(opentabs.tool("tried_keeps_all"), calls=3, fixed={"word": "λόγος"})

def test_wrong(opentabs):
    opentabs.open_start_page()
    expect_contract(opentabs.tool("tried_keeps_all"), {"phrase": "λόγος"})

def test_named(opentabs):
    expect_contract("tried_keeps_all")
"""


def test_an_argument_that_cannot_be_drawn_is_named_and_can_be_given(tmp_path: Path) -> None:
    write_sound_tool(tmp_path, type="string", pattern=r"^\p{Script=Greek}+$")
    (tmp_path / "test_given.py").write_text(GIVEN)

    cases = run(tmp_path)

    assert cases["test_given[chromium]"].outcome == "passed", cases.output
    text = cases["test_drawn[chromium]"].text
    assert "few values match that of word" in text, cases.output
    assert 'expect_contract(tool, fixed={"word": ...})' in text
    text = cases["test_wrong[chromium]"].text
    assert "tried_keeps_all cannot be checked. INVALID_ARGUMENTS: The arguments" in text
    assert "a test that reproduces it" not in text
    text = cases["test_named[chromium]"].text
    assert "TypeError: expect_contract() accepts a tool" in text


INTERRUPTED = """
import gc, os, signal, threading
import anyio, pytest
from opentabs_py.testing import expect_contract

broken = threading.Event()
pressed = threading.Event()

def press(*_):
    # While garbage is collected, Python ignores the exception.
    if broken.is_set() and threading.current_thread() is threading.main_thread():
        if not pressed.is_set():
            pressed.set()
            os.kill(os.getpid(), signal.SIGINT)

async def breaks(n: int) -> int:
    if broken.is_set() and "{when}" == "in a call":
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep_forever()
    if n > 20:
        broken.set()
        raise KeyError(n)
    return n

@pytest.fixture(scope="session")
def opentabs_tools():
    return [breaks]

def test_drawn(opentabs):
    if "{when}" == "while garbage is collected":
        gc.callbacks.append(press)
    expect_contract(opentabs.tool("breaks"), seed=3)
"""


@pytest.mark.parametrize("when", ["in a call", "while garbage is collected"])
@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "in a worker"])
def test_an_interrupted_check_shows_what_it_has_found(
    tmp_path: Path, when: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "pytest.ini").write_text(INI)
    (tmp_path / "test_interrupted.py").write_text(INTERRUPTED.replace("{when}", when))

    cases = run(tmp_path, "-W", "ignore::pytest.PytestUnraisableExceptionWarning", *options)

    assert cases.code == pytest.ExitCode.INTERRUPTED, cases.output
    assert "breaks breaks its contract: it ended with INTERNAL_ERROR" in cases.output
    assert re.search(r'Arguments: \{"n": \d+\}\nFound with seed 3 in \d+ calls?\.', cases.output)
    assert "Smaller ones were still being tried when you interrupted it." in cases.output
    assert re.search(r'expect_contract\(opentabs.tool\("breaks"\), \{"n": \d+\}\)', cases.output)


# --- opentabs test --fuzz ---

SITE = """
import pytest

@pytest.fixture(autouse=True)
def prepared(context):
    context.route("**/prepared", lambda route: route.fulfill(body="ready"))
"""


@pytest.fixture
def plugin(short_path: Path) -> Path:
    write_promises(short_path / "mine", "throws", "keeps_all", "writes")
    (short_path / "mine" / "tests").mkdir()
    (short_path / "mine" / "tests" / "conftest.py").write_text(SITE)
    (short_path / "mine" / "tests" / "test_it.py").write_text("def test_it(): ...\n")
    return short_path / "mine"


def test_the_command_checks_all_tools_that_only_read(plugin: Path) -> None:
    done = run_command(["opentabs", "test", "--fuzz", "40", "--seed", "7", "-v"], plugin)

    assert done.returncode == 1, done.stdout
    assert re.search(r"tests/fuzz::test_mine_throws\S* FAILED", done.stdout)
    assert re.search(r"tests/fuzz::test_mine_keeps_all\S* PASSED", done.stdout)
    assert re.search(r"SKIPPED .*it may change something: it has no readOnlyHint", done.stdout)
    assert "1 failed, 1 passed, 1 skipped" in done.stdout  # and nothing of test_it.py
    assert "it ended with INTERNAL_ERROR" in done.stdout
    assert "All traceback entries are hidden" not in done.stdout
    assert done.stdout.count('Arguments: {"n": 21}') == 1
    assert "Found with seed 7 in " in done.stdout
    assert 'expect_contract(opentabs.tool("mine_throws"), {"n": 21})' in done.stdout


def test_the_command_has_the_exit_codes_of_the_other_tests(plugin: Path) -> None:
    def code(*arguments: str) -> int:
        done = run_command(["opentabs", "test", *arguments], plugin)
        return done.returncode

    assert code("--fuzz", "3", "-k", "keeps_all") == 0
    assert code("--fuzz=3", "--writes", "-k", "writes") == 0
    assert code("--fuzz", "-k", "writes") == 5  # skipped
    assert code("--fuzz", "3", "-k", "nothing") == 5
    assert code("--seed", "3") == 2
    assert code("tests/test_it.py", "--fuzz") == 2


def test_without_a_playground_or_a_homepage_the_command_says_so(plugin: Path) -> None:
    shutil.rmtree(plugin / "playground")

    done = run_command(["opentabs", "test", "--fuzz", "3", "-k", "keeps_all"], plugin)

    assert done.returncode == 1
    assert "mine has no playground/ that its patterns match, and no homepage" in done.stdout
    assert "Traceback" not in done.stdout
