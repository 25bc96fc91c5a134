"""Python's cyclic garbage collector, set for programs that load much and keep it.

Left alone it looks through all that is loaded a hundred times while a command starts, and once
more when it ends: half a second of three.
"""

import gc

OBJECTS = 100_000  # made and kept since the last look; Python's own setting is 700 to 2,000

_usual = gc.get_threshold()


def expect_much() -> None:
    """Look seldom, for nearly all that is made now stays."""
    gc.set_threshold(OBJECTS, 20, 20)


def settle() -> None:
    """All is loaded, and will not be looked through again; what is made from now on will, as usual.

    At the end of a program, this makes that a short one.
    """
    gc.freeze()
    gc.set_threshold(*_usual)
