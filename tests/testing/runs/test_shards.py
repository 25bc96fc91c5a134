"""Which tests belong to each shard of a suite."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.testing.runs.shards import parts_of

SUITES = st.dictionaries(st.from_regex(r"\Atests/test_[a-e]{1,2}\.py\Z"), st.integers(1, 12)).map(
    lambda files: [f"{file}::test_{n}" for file, count in files.items() for n in range(count)]
)


@given(SUITES, st.integers(1, 6))
def test_each_test_is_in_one_part_and_no_part_is_needlessly_empty(
    tests: list[str], count: int
) -> None:
    parts = parts_of(tests, count)

    assert len(parts) == len(tests)
    assert set(parts) <= set(range(1, count + 1))
    if len(tests) >= count:
        assert set(parts) == set(range(1, count + 1))


@given(SUITES, st.integers(1, 6))
def test_no_part_has_more_than_another_by_more_than_a_fair_share(
    tests: list[str], count: int
) -> None:
    sizes = Counter(parts_of(tests, count))

    largest = max(sizes.values(), default=0)
    smallest = min((sizes[part] for part in range(1, count + 1)), default=0)
    assert largest - smallest <= max(1, len(tests) // count)


@given(SUITES, st.integers(1, 6), st.randoms())
def test_the_order_of_the_tests_does_not_matter(tests: list[str], count: int, random: Any) -> None:
    others = random.sample(tests, len(tests))

    assert dict(zip(tests, parts_of(tests, count), strict=True)) == dict(
        zip(others, parts_of(others, count), strict=True)
    )


def test_the_tests_of_a_file_stay_together_unless_they_are_too_many() -> None:
    small = [f"test_{name}.py::test_{n}" for name in "abcd" for n in range(3)]
    large = [f"test_large.py::test_{n:02}" for n in range(12)]

    of_small = parts_of(small, 2)
    of_large = parts_of(large, 3)

    for at in range(0, 12, 3):
        assert len(set(of_small[at : at + 3])) == 1
    assert of_large == [1] * 4 + [2] * 4 + [3] * 4
