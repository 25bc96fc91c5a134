"""Which user of this machine a request comes from."""

import socket

import pytest
from starlette.types import Scope

from opentabs_py.server.http.peers import is_of_another_user
from tests.another_user import connected_as_another_user, needs_tables

KINDS = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")]


@needs_tables
@pytest.mark.parametrize(("family", "host"), KINDS, ids=["IPv4", "IPv4 by a socket for IPv6"])
def test_another_users_connection_is_told_from_our_own(
    family: socket.AddressFamily, host: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = (host, listening.getsockname()[1])
        with socket.socket(family) as ours:
            ours.connect(address)
            assert not is_of_another_user(scope_of(listening))
        with connected_as_another_user(address, family):
            assert is_of_another_user(scope_of(listening))


def test_a_connection_from_elsewhere_is_of_no_other_user() -> None:
    assert not is_of_another_user({"client": ("192.0.2.1", 50_000), "server": ("192.0.2.2", 80)})
    assert not is_of_another_user({"client": ("2001:db8::1", 50_000), "server": ("::1", 80)})


def scope_of(listening: socket.socket) -> Scope:
    accepted, client = listening.accept()
    with accepted:
        return {"client": client, "server": accepted.getsockname()}
