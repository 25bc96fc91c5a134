"""Which user of this machine a request comes from."""

import socket

import pytest

from opentabs_py.server.http import peers
from opentabs_py.server.http.peers import Peer
from tests.another_user import connected_as_another_user, on_linux

ELSEWHERE = "203.0.113.77"  # no machine has it
KINDS = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")]
kinds = pytest.mark.parametrize(("family", "host"), KINDS, ids=["IPv4", "a socket for IPv6"])


def next_peer(listening: socket.socket) -> Peer:
    accepted, client = listening.accept()
    with accepted:
        return Peer(client, accepted.getsockname())


@on_linux
@kinds
def test_another_users_connection_is_told_from_our_own(
    family: socket.AddressFamily, host: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = (host, listening.getsockname()[1])
        with socket.socket(family) as ours:
            ours.connect(address)
            assert not next_peer(listening).is_of_another_user
            with connected_as_another_user(address, family):
                assert next_peer(listening).is_of_another_user


@on_linux
@kinds
def test_whoever_has_disconnected_may_be_another_user(
    family: socket.AddressFamily, host: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with socket.socket(family) as ours:
            ours.connect((host, listening.getsockname()[1]))
        assert next_peer(listening).is_of_another_user
        assert Peer(None, listening.getsockname()).is_of_another_user


@on_linux
def test_whoever_is_on_another_machine_is_no_other_user_of_this_one() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((ELSEWHERE, 9))
        except OSError:
            pytest.skip("this machine has no network")
        us = probe.getsockname()[0]
    assert not Peer((ELSEWHERE, 50_000), (us, 80)).is_of_another_user
    assert Peer((us, 50_000), (us, 80)).is_of_another_user  # it has disconnected
    assert not Peer(("2001:db8::1", 50_000), ("2001:db8::2", 80)).is_of_another_user


def test_nobody_is_another_user_where_the_system_does_not_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "_SOCK_DIAG", 31)  # Linux has no such protocol
    monkeypatch.setattr(peers, "users_are_told", peers.users_are_told.__wrapped__)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        connected_as_another_user(listening.getsockname()),
    ):
        assert not next_peer(listening).is_of_another_user
