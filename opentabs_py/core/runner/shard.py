"""One part of the tests, as `--shard 1/4` names it."""

from typing import Final

MOST_PARTS: Final = 10_000  # a merged report names each that is missing


def parse_shard(text: str) -> tuple[int, int] | None:
    """Return the part and the number of parts that a string such as `1/4` names.

    None if it is not such a string.
    """
    part, _, count = text.partition("/")
    if not (part.isdecimal() and count.isdecimal() and 1 <= int(part) <= int(count) <= MOST_PARTS):
        return None
    return int(part), int(count)
