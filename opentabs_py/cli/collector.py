"""Tune Python's cyclic garbage collector for a program that allocates much and keeps it.

With the default settings it scans everything a hundred times while a command starts, and once more
at exit: half a second out of three.
"""

import gc
from contextlib import suppress

# Allocations between collections; Python's default is 700 to 2,000.
STARTING = 1_000_000
SERVING = 20_000


def expect_much() -> None:
    """Collect rarely, because nearly everything allocated during startup stays."""
    gc.set_threshold(STARTING, 20, 20)


def settle() -> None:
    """Exclude everything allocated so far from collection, and collect more often again.

    Called at the end of a program, it shortens the exit.
    """
    gc.freeze()
    gc.set_threshold(SERVING, 10, 10)


def release() -> None:
    """Return free memory to the system, if the C library can.

    glibc otherwise keeps what loading the modules left: 5 of 106 MB.
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # it is not glibc
        ctypes.CDLL(None).malloc_trim(0)
