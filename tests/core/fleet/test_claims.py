"""Of two workers with one name or number, the later one gives way."""

from opentabs_py.core.fleet.claims import Claims, conflict
from tests.core.fleet.test_pool import worker


def test_of_two_with_one_name_the_later_conflicts() -> None:
    early, late = worker("a", 10), worker("a", 20, instance="f" * 16, started=2.0)
    assert conflict(late, [early, late]) is early
    assert conflict(early, [early, late]) is None


def test_of_two_with_overlapping_numbers_the_later_conflicts() -> None:
    early = worker("a", 10, browsers=3)
    assert conflict(worker("b", 12, started=2.0), [early]) is early
    assert conflict(worker("b", 9, started=2.0, browsers=2), [early]) is early
    assert conflict(worker("b", 13, started=2.0), [early]) is None


def test_one_without_browsers_still_has_its_number() -> None:
    early = worker("a", 10, browsers=0)
    assert conflict(worker("b", 10, started=2.0), [early]) is early


def test_one_that_serves_had_the_name_before_one_that_starts_whatever_their_clocks_say() -> None:
    serving, starting = worker("a", started=9.0), worker("a", state="starting", instance="f" * 16)
    assert conflict(starting, [serving]) is serving
    assert conflict(serving, [starting]) is None


def test_one_that_leaves_conflicts_with_nobody() -> None:
    gone = worker("a", state="leaving")
    assert conflict(worker("a", started=2.0, instance="f" * 16), [gone]) is None


def test_rivals_share_a_name_or_a_number() -> None:
    a, b = worker("a", 10, browsers=3), worker("b", 12)
    same_name, other = worker("a", 20, instance="f" * 16), worker("c", 13)
    claims = Claims()
    for each in (a, b, same_name, other):
        claims.put(each)
    assert claims.rivals(a) == [a, same_name, b]
    assert claims.rivals(other) == [other]


def test_one_that_is_gone_is_not_a_rival() -> None:
    a, b = worker("a", 10), worker("b", 10)
    claims = Claims()
    claims.put(a)
    claims.put(b)
    claims.remove(a)
    assert claims.rivals(b) == [b]
    assert claims.rivals(a) == [b]
