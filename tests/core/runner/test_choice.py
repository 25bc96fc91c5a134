"""Which tests run."""

import pytest

from opentabs_py.core.runner.choice import Chosen, after_change, is_chosen

KNOWN = {"/p/tests/test_a.py": "tests/test_a.py", "/p/tests/test_b.py": "tests/test_b.py"}


@pytest.mark.parametrize(
    ("chosen", "is_in"),
    [
        (None, True),
        ((), False),
        (("tests/test_a.py::test_x[1]",), True),
        (("tests/test_a.py",), True),
        (("tests/test_a.py::test_x",), False),
        (("tests/test_b.py",), False),
    ],
)
def test_a_test_is_chosen_by_its_id_or_its_file(chosen: Chosen, is_in: bool) -> None:
    assert is_chosen("tests/test_a.py::test_x[1]", chosen) is is_in


@pytest.mark.parametrize(
    ("files", "last", "again"),
    [
        (["/p/tests/test_a.py"], None, ("tests/test_a.py",)),
        (
            ["/p/tests/test_b.py", "/p/tests/test_a.py"],
            None,
            ("tests/test_b.py", "tests/test_a.py"),
        ),
        (["/p/tests/test_a.py", "/p/src/index.ts"], None, None),
        (["/p/tests/test_new.py"], None, None),
        (["/p/tests/conftest.py"], None, None),
        ([], None, None),
        (["/p/tests/test_a.py"], ("tests/test_b.py::test_y",), ("tests/test_b.py::test_y",)),
        (["/p/src/index.ts"], ("tests/test_b.py::test_y",), ("tests/test_b.py::test_y",)),
    ],
)
def test_a_change_runs_again_what_ran_last_or_only_the_changed_tests_of_all(
    files: list[str], last: Chosen, again: Chosen
) -> None:
    assert after_change(files, KNOWN, last) == again
