"""`opentabs test`: what its options mean."""

from collections.abc import Sequence

import pytest

from opentabs_py.cli.run_tests import changed_text, is_source, ui_args


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("src/tools/hello.ts", True),
        ("src/icon.svg", True),
        ("tests/site.har", True),
        ("playground/index.html", True),
        ("package.json", True),
        ("conftest.py", True),
        ("junit.xml", False),
        ("trace.zip", False),
        ("kept/test-it/trace.zip", False),
    ],
)
def test_files_that_tests_depend_on_are_sources_and_their_output_is_not(
    file: str, counts: bool
) -> None:
    assert is_source(file) is counts


def test_of_many_changed_files_the_first_are_named() -> None:
    assert changed_text(["a"]) == "a changed"
    assert changed_text(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more changed"


@pytest.mark.parametrize(
    ("given", "slowmo"),
    [([], ["--slowmo=250"]), (["-k", "x", "--slowmo", "9"], []), (["--slowmo=9"], [])],
)
def test_ui_shows_the_browser_slowly_unless_another_pace_is_given(
    given: Sequence[str], slowmo: Sequence[str]
) -> None:
    added = ui_args(given)

    ours = added[: len(added) - len(given)]
    assert added[len(ours) :] == given
    assert ours[:2] == ["--opentabs-ui", "--headed"]
    assert [each for each in ours if each.startswith("--slowmo")] == slowmo
    assert "--timeout=0" in added  # of pytest-timeout, which is there
