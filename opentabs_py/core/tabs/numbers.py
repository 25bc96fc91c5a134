"""Number tabs across browsers.

Each browser numbers its tabs by itself, with at most ten digits. Among all browsers, those of the
first keep their numbers, and those of the others follow in blocks.
"""

from typing import Final

BLOCK: Final = 10_000_000_000


def numbers_of(browser: int) -> range:
    """Return the numbers of a browser's tabs among those of all; the index is its own number."""
    return range(browser * BLOCK, (browser + 1) * BLOCK)


def browser_of(tab: int) -> int:
    """Return the number of the browser that has a tab."""
    return tab // BLOCK


def own_number(tab: int) -> int:
    """Return a tab's number in its own browser."""
    return tab % BLOCK
