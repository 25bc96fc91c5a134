"""When a browser is tired, as people write it."""

import pytest

from opentabs_py.errors import ConfigError
from opentabs_py.session.recycling import RecycleAfter


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ([], RecycleAfter()),
        (["1000"], RecycleAfter(calls=1000)),
        (["1500MB"], RecycleAfter(memory=1_500_000_000)),
        (["2gb", "10"], RecycleAfter(calls=10, memory=2_000_000_000)),
    ],
)
def test_calls_and_memory_are_distinguished_by_the_unit(
    given: list[str], after: RecycleAfter
) -> None:
    assert RecycleAfter.read(given) == after


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "10 MB", "10kB", "1.5GB"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="such as 1500MB"):
        RecycleAfter.read([text])
