"""Ranked search over tools, for agents that cannot read hundreds of descriptions."""

import re
import sqlite3
from collections.abc import Iterable
from typing import Final
from weakref import finalize

from opentabs_py.calling.listing import Listing

# A word in a tool's name says more about it than one in its description.
_WEIGHTS: Final = {"name": 6.0, "title": 4.0, "owner": 3.0, "about": 2.0, "arguments": 1.0}

LONGEST_QUERY: Final = 4_000  # characters that are read of a query
MOST_WORDS: Final = 32  # that are searched for; the time grows much faster than their number

_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# Words of a request that say nothing about the tool.
_EMPTY: Final = frozenset(
    """
    a about all am an and any are as at be but by can could did do does for from get give go has
    have how i in into is it its just last let like me my need next not of off on one or our out
    please put said say see should show so some that the their them there these they this those to
    today tomorrow two us was we what when where which who whom why will with would yesterday you
    your
    """.split()  # noqa: SIM905
)


class ToolSearch:
    """An index of tools, in memory.

    Args:
        listings: The tools to find.
    """

    def __init__(self, listings: Iterable[Listing]) -> None:
        self._listings = {listing.name: listing for listing in listings}
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        finalize(self, self._index.close)  # once no server needs it any longer, in any thread
        self._index.execute(
            f"CREATE VIRTUAL TABLE tools USING fts5"
            f"(key UNINDEXED, {', '.join(_WEIGHTS)}, tokenize = 'porter unicode61')"
        )
        self._index.executemany(
            "INSERT INTO tools VALUES (?, ?, ?, ?, ?, ?)", map(_row, self._listings.values())
        )

    def find(self, query: str) -> list[Listing]:
        """Return the tools that match any word of a query, the best first.

        Words match by their stem and by their beginning. A query without words matches nothing;
        of a long one, only the first words count.
        """
        words = _words(query[:LONGEST_QUERY])
        asked = [word for word in words if word not in _EMPTY] or words
        if not asked:
            return []
        terms = [f'"{word}" OR "{word}"*' for word in asked[:MOST_WORDS]]
        weights = ", ".join(["0.0", *map(str, _WEIGHTS.values())])
        found = self._index.execute(
            f"SELECT key FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, {weights}), key",  # noqa: S608
            [" OR ".join(terms)],
        )
        return [self._listings[key] for (key,) in found]


def _row(listing: Listing) -> tuple[str, ...]:
    arguments = " ".join(map(str, listing.input_schema.get("properties", {})))
    about = f"{listing.group} {listing.summary} {listing.description}"
    texts = (listing.name, listing.title, listing.owner, about, arguments)
    return (listing.name, *(" ".join(_words(text)) for text in texts))


def _words(text: str) -> list[str]:
    """Return the words of a string, also those that a name joins: `send_message`, `sendMessage`."""
    return [word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", text))]
