"""Tune Python's cyclic garbage collector for a program that allocates much and keeps it.

With the default settings it scans everything a hundred times while a command starts, and once more
at exit: half a second out of three.
"""

import gc
from contextlib import suppress

OBJECTS = 1_000_000  # allocations between collections; Python's default is 700 to 2,000

_usual = gc.get_threshold()


def expect_much() -> None:
    """Collect rarely, because nearly everything allocated during startup stays."""
    gc.set_threshold(OBJECTS, 20, 20)


def freeze() -> None:
    """Exclude everything allocated so far from collection, and restore the usual thresholds.

    With them, what calls leave in cycles is soon freed: it may contain values of many MiB.

    Called at the end of a program, it shortens the exit.
    """
    gc.freeze()
    gc.set_threshold(*_usual)


def release() -> None:
    """Return free memory to the system, if the C library can.

    glibc otherwise keeps what loading the modules left: 5 of 106 MB.
    """
    # It is not glibc, or no file can be opened now.
    with suppress(AttributeError, ImportError, OSError, TypeError):
        import ctypes

        ctypes.CDLL(None).malloc_trim(0)
