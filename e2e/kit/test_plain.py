"""Installing the kit changes nothing for tests that do not use it."""

import subprocess
import sys
from pathlib import Path

import pytest

from e2e.kit.runs import KitRun, command, environment, run, run_kit

CHECK = """
import sys
heavy = [name for name in sys.modules if name.split(".")[0] in {"mcp", "starlette", "uvicorn"}]
ours = [name for name in sys.modules if name.startswith("opentabs_py.") and "testing" not in name]
def test_it(): assert (heavy, ours) == ([], ["opentabs_py.version"])
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    options = ["-n", "2", "--opentabs-clock=real"]
    return run_kit(tmp_path_factory.mktemp("plain"), "plain", *options)


def test_other_tests_keep_their_pages_and_contexts(ran: KitRun) -> None:
    assert {name for name in ran.outcomes if "playwright_s_own" in name} == {
        "test_a_page_of_another_test_is_playwright_s_own",
        "test_contexts_of_another_test_are_playwright_s_own",
    }
    assert set(ran.outcomes.values()) == {"passed"}, ran.output


def test_two_workers_have_browsers_and_ports_of_their_own(ran: KitRun) -> None:
    assert "2 workers" in ran.output
    assert len(ran.cases) == 6


def test_with_the_option_advancing_a_clock_waits(ran: KitRun) -> None:
    assert ran["test_a_mark_gives_way_to_the_option"].outcome == "passed", ran.output


def test_a_run_without_our_tests_loads_next_to_nothing_of_us(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(CHECK)

    done = run(tmp_path)

    assert done.outcomes == {"test_it": "passed"}, done.output


def test_without_pytest_playwright_the_fixture_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(opentabs): ...\ndef test_other(): ...\n")

    done = run(tmp_path, "-p", "no:playwright")

    assert done.outcomes == {"test_it": "error", "test_other": "passed"}
    assert "pip install 'opentabs-py[test]'" in done["test_it"].text


def test_a_mark_that_is_not_valid_fails_only_its_own_test(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.opentabs(idel=2)\ndef test_it(): ...\n"
        "def test_other(): ...\n"
        "@pytest.mark.opentabs(browsers=[])\ndef test_nobody(opentabs): ...\n"
    )

    done = run(tmp_path)

    assert done.outcomes == {"test_it": "error", "test_other": "passed", "test_nobody": "error"}
    assert "does not accept idel=; use one of idle, ceiling, clock" in done["test_it"].text
    assert "must name at least one browser" in done["test_nobody"].text
    assert "Traceback" not in done.output


def test_the_mark_and_the_fixtures_are_listed(tmp_path: Path) -> None:
    def listed(*options: str) -> str:
        return subprocess.run(
            command(*options), cwd=tmp_path, env=environment(), capture_output=True, text=True,
            timeout=50, check=True,
        ).stdout  # fmt: skip

    assert "@pytest.mark.opentabs(idle, ceiling, clock, fresh_profile" in listed("--markers")
    fixtures = listed("--fixtures")
    for name in ("opentabs", "opentabs_plugins", "opentabs_settings", "opentabs_limits", "mcp"):
        assert f"\n{name} " in fixtures, name
    assert sys.executable


def test_plugins_that_the_user_has_installed_are_not_served(tmp_path: Path) -> None:
    own = tmp_path / "config" / "opentabs" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('plugins = ["/plugins/chat"]\nplugin_folders = ["/plugins"]\n')
    (tmp_path / "test_it.py").write_text(
        "def test_it(opentabs_settings):\n"
        "    assert opentabs_settings.plugins == opentabs_settings.plugin_folders == ()\n"
    )

    ran = run(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config"))

    assert ran.outcomes == {"test_it": "passed"}, ran.output
