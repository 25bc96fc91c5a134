"""What `@pytest.mark.opentabs(...)` can say."""

from typing import Any

import pytest

from opentabs_py.testing.marks import Marks, read_marks


def test_without_a_mark_nothing_is_otherwise() -> None:
    assert read_marks([]) == Marks()


def test_the_closest_mark_wins_and_the_others_say_the_rest() -> None:
    marks = read_marks([((), {"idle": 2}), ((), {"idle": 9, "ceiling": 5, "clock": "manual"})])

    assert marks == Marks(idle=2, ceiling=5, clock="manual")


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {"idel": 2}, "takes no idel=; it takes idle, ceiling, clock, fresh_profile, allow_br"),
        ((2,), {}, "takes no 2; it takes idle"),
        ((), {"idle": 0}, "idle=...\\) takes seconds, not 0"),
        ((), {"ceiling": "5m"}, "ceiling=...\\) takes seconds, not '5m'"),
        ((), {"idle": True}, "takes seconds, not True"),
        ((), {"faults_seed": 1.5}, "takes an integer, not 1.5"),
        ((), {"clock": "fast"}, "takes 'real' or 'manual', not 'fast'"),
    ],
)
def test_what_no_mark_can_say_is_told(args: tuple[Any, ...], kwargs: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_marks([(args, kwargs)])
