"""The sockets that servers listen on."""

import pytest

from opentabs_py.errors import ConfigError
from opentabs_py.server.http.listen import bind


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do() -> None:
    taken = bind("127.0.0.1", 0)
    port = taken.getsockname()[1]
    try:
        with pytest.raises(ConfigError, match=rf"Cannot listen on 127\.0\.0\.1:{port}: .*--port"):
            bind("127.0.0.1", port)
    finally:
        taken.close()


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    with pytest.raises(ConfigError, match=r"Cannot listen on \[2001:db8::1\]:0: "):
        bind("2001:db8::1", 0)


def test_an_address_of_another_machine_is_an_error_that_asks_for_another() -> None:
    why = r"Cannot listen on 192\.0\.2\.1:0: .* Choose an address of this machine\.$"
    with pytest.raises(ConfigError, match=why):
        bind("192.0.2.1", 0)
