"""A connection of another user of this machine."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

needs_tables = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="only Linux tells whose a connection is"
)
NOBODY: Final = 65534


@contextmanager
def connected_as_another_user(
    address: tuple[str, int], family: socket.AddressFamily = socket.AF_INET
) -> Generator[socket.socket]:
    """Connect as another user; only root can, so that others are another user for this long."""
    us = os.geteuid()
    with pytest.MonkeyPatch.context() as patch:
        if us == 0:
            os.seteuid(NOBODY)
        else:
            patch.setattr(os, "geteuid", lambda: NOBODY)
        connection = socket.socket(family)
        if us == 0:
            os.seteuid(us)
        with connection:
            connection.connect(address)
            yield connection
