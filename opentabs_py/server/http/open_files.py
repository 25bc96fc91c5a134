"""How many files this process may have open; each connection is one."""

import sys
from math import inf
from typing import Final

WANTED: Final = 8192  # more than a server needs; others open a million, which slows some programs
FOR_CONNECTIONS: Final = 0.75  # of all; pipes, databases and the extension's sockets need the rest


def allow_many() -> None:
    """Raise this process's limit of open files, as far as the system permits.

    Programs that it starts inherit the limit. That matters only to those that wait with select(),
    which takes no file beyond 1,023: they could not have opened it before.
    """
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 (not on Windows)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def most_connections() -> float:
    """Return how many connections leave enough files for everything else."""
    if sys.platform == "win32":
        return inf
    import resource  # noqa: PLC0415 (not on Windows)

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return inf if soft == resource.RLIM_INFINITY else soft * FOR_CONNECTIONS
