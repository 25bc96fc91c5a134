"""The arguments of `@pytest.mark.opentabs(...)`."""

import re
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.testing.marks import KNOWN, Marks, read_marks


def test_without_a_mark_every_option_has_its_default() -> None:
    assert read_marks([]) == Marks()


def test_the_closest_mark_wins_option_by_option() -> None:
    marks = read_marks([((), {"idle": 2}), ((), {"idle": 9, "ceiling": 5, "clock": "manual"})])

    assert marks == Marks(idle=2, ceiling=5, clock="manual")


def test_a_sign_in_is_that_of_all_browsers_or_of_one() -> None:
    browsers = ["ann", "ben"]
    of_all = read_marks([((), {"browsers": browsers, "signed_in": "work"})])
    of_one = read_marks([((), {"browsers": browsers, "signed_in": {"ben": "home"}})])

    assert [of_all.sign_in_of(name) for name in browsers] == ["work", "work"]
    assert [of_one.sign_in_of(name) for name in browsers] == [None, "home"]


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {"idel": 2}, "does not accept idel=; use one of idle, ceiling, clock, fresh_profile"),
        ((2,), {}, "does not accept 2; use one of idle"),
        ((), {"idle": 0}, "idle=...\\) must be a number of seconds, not 0"),
        ((), {"ceiling": "5m"}, "ceiling=...\\) must be a number of seconds, not '5m'"),
        ((), {"idle": True}, "must be a number of seconds, not True"),
        ((), {"faults_seed": 1.5}, "must be an integer, not 1.5"),
        ((), {"signed_in": 3}, "must be a name, not 3"),
        ((), {"signed_in": {"ann": "a"}}, r"must be a name, not {'ann'"),
        (
            (),
            {"browsers": ["ann"], "signed_in": {"ben": "b"}},
            r"must be a name, or one for each of \['ann'\], not {",
        ),
        (
            (),
            {"browsers": ["ann"], "signed_in": {"ann": 1}},
            r"must be a name, or one for each of \['ann'\], not {",
        ),
        ((), {"browsers": "ann"}, "must be a list of different names"),
        ((), {"browsers": ["ann", "ann"]}, "must be a list of different names"),
        ((), {"browsers": ["../ann"]}, "must be a list of different names"),
        ((), {"browsers": [["ann"]]}, "must be a list of different names"),
        ((), {"browsers": []}, "must name at least one browser; for a single one, leave it out"),
        ((), {"clock": "fast"}, "must be 'real' or 'manual', not 'fast'"),
    ],
)
def test_an_invalid_mark_is_an_error_that_says_why(
    args: tuple[Any, ...], kwargs: Any, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        read_marks([(args, kwargs)])


def test_every_option_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    table = text.partition("## The mark\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(KNOWN)
