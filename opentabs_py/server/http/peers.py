"""Which user of this machine is at the other end of a connection."""

import os
import socket
import struct
import sys
from functools import cache, cached_property
from ipaddress import ip_address
from typing import Final, TypeAlias

from starlette.types import Scope

# Linux tells everyone whose a connection is: https://man7.org/linux/man-pages/man7/sock_diag.7.html
_SOCK_DIAG: Final = 4  # a protocol of netlink
_BY_FAMILY: Final = 20  # a type of message
_REQUEST: Final = 1  # a flag
_ANY: Final = 0xFFFFFFFF  # as a set of states, or as a cookie
_QUESTION: Final = struct.Struct("=IHHII BB2xI 2s2s16s16sIII")
_ANSWER: Final = struct.Struct("=4xH10x xB2x48x12xII")  # type, state, user, inode
_LISTENING: Final = 10  # a state

PEER: Final = "opentabs.peer"  # its name in the state of requests
_Address: TypeAlias = tuple[str, int | None]


class Peer:
    """The program at the other end of a connection.

    Args:
        client: Its address; None if it has disconnected already.
        server: Our address.
    """

    def __init__(self, client: _Address | None, server: _Address | None) -> None:
        self._client = client
        self._server = server

    @cached_property
    def is_of_another_user(self) -> bool:
        """Whether it belongs to another user of this machine, or may: it has disconnected.

        False if it is not on this machine, or if the system does not tell. Root is no other user,
        because some programs that forward connections run as root.
        """
        if not users_are_told():
            return False
        if self._client is None or self._server is None:
            return True
        user = _user_of(self._client, self._server)
        return _is_own(self._client[0]) if user is None else user not in {os.geteuid(), 0}


def is_of_another_user(scope: Scope) -> bool:
    """Return whether a request comes from a program of another user of this machine.

    Only our own HTTP server says where requests come from.
    """
    peer = scope.get("state", {}).get(PEER)
    return isinstance(peer, Peer) and peer.is_of_another_user


@cache
def users_are_told() -> bool:
    """Return whether the system tells whose connections are; some sandboxes do not.

    Ask before anybody can connect: later, it could fail because too many files are open.
    """
    if sys.platform != "linux":
        return False
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        try:
            return _user_of(client.getsockname(), client.getpeername()) == os.geteuid()
        except OSError:
            return False


def _user_of(local: _Address, remote: _Address) -> int | None:
    """Return whose a connection is; None if there is none, or its program has closed it."""
    ends = (local, remote)
    question = _QUESTION.pack(
        *(_QUESTION.size, _BY_FAMILY, _REQUEST, 0, 0),
        *(_family(local[0]), socket.IPPROTO_TCP, _ANY),
        *((port or 0).to_bytes(2, "big") for _, port in ends),
        *(ip_address(host).packed for host, _ in ends),
        *(0, _ANY, _ANY),
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.send(question)
        answer = kernel.recv(4096, socket.MSG_DONTWAIT)
    if len(answer) < _ANSWER.size:
        return None
    kind, state, user, inode = _ANSWER.unpack_from(answer)
    return user if kind == _BY_FAMILY and state != _LISTENING and inode != 0 else None


def _is_own(host: str) -> bool:
    """Return whether an address is one of this machine's."""
    if ip_address(host).is_loopback:
        return True
    with socket.socket(_family(host), socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, 9))  # sends nothing; what is sent to oneself comes from there, too
        except OSError:
            return False
        own: str = probe.getsockname()[0]
    return own == host


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET if ip_address(host).version == 4 else socket.AF_INET6
