"""Connections of another user of this machine."""

import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio.to_thread
import pytest

on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells whose a connection is"
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


async def get(port: int, path: str, *headers: str, as_another_user: bool = False) -> int:
    """Send a request from a new connection; return the status."""
    connect = connected_as_another_user if as_another_user else socket.create_connection
    lines = (f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers, "", "")
    with connect(("127.0.0.1", port)) as connection:
        connection.sendall("\r\n".join(lines).encode())
        answer = await anyio.to_thread.run_sync(connection.recv, len("HTTP/1.1 200"))
    return int(answer.split()[1])
