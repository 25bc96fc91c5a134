"""What `--shard` can be."""

import pytest

from opentabs_py.core.runner.shard import parse_shard


@pytest.mark.parametrize(
    ("text", "shard"), [("1/1", (1, 1)), ("1/4", (1, 4)), ("4/4", (4, 4)), ("1/10000", (1, 10_000))]
)
def test_a_shard_is_a_number_of_a_number(text: str, shard: tuple[int, int]) -> None:
    assert parse_shard(text) == shard


@pytest.mark.parametrize(
    "text", ["0/4", "5/4", "4", "/4", "1/", "-1/4", "a/b", "1/2/3", "1/²", "1/10001"]
)
def test_all_else_is_not_a_shard(text: str) -> None:
    assert parse_shard(text) is None
