"""Which user of this machine is at the other end of a connection."""

import os
import sys
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Final

from starlette.types import Scope

# Every connection of this machine with its user, which each user may read:
# https://docs.kernel.org/networking/proc_net_tcp.html. Other systems have no such files.
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_Endpoint = tuple[str, int]


def is_of_another_user(scope: Scope) -> bool:
    """Return whether a request comes from a program of another user of this machine.

    Of a connection from elsewhere, or on a system that does not tell, the user is not known, so it
    is not. Nor is root another user: some programs that forward connections run as root.
    """
    if sys.platform == "win32":
        return False
    ends = (_endpoint(*scope["client"]), _endpoint(*scope["server"]))
    users = {user for table in _TABLES for user in _users(table, *ends)}
    return bool(users - {os.geteuid(), 0})


def _users(table: Path, local: _Endpoint, remote: _Endpoint) -> set[int]:
    """Return whose connections have these ends."""
    try:
        rows = [line.split() for line in table.read_text("ascii").splitlines()[1:]]
    except OSError:
        return set()
    return {int(row[7]) for row in rows if (_read(row[1]), _read(row[2])) == (local, remote)}


def _read(written: str) -> _Endpoint:
    """Read `0100007F:1F90`, an address in words of the machine's byte order, and a port."""
    address, _, port = written.partition(":")
    words = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    return _endpoint(str(ip_address(packed)), int(port, 16))


def _endpoint(host: str, port: int) -> _Endpoint:
    """Return an end of a connection, in one form for IPv4 however the program asked for it."""
    address = ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address), port
