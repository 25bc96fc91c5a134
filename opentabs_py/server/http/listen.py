"""The listening socket, bound before anything else loads: the extension must know its port."""

import socket
from errno import EADDRNOTAVAIL

from opentabs_py.core.hosts import url_host
from opentabs_py.errors import ConfigError


def bind(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Bind the listening socket; port 0 picks a free one.

    Args:
        host: The address.
        port: The port.
        option: The option that chooses the port, for the error.

    Raises:
        ConfigError: The address is in use or not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm (40 ms per call) only if the protocol is explicit.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == EADDRNOTAVAIL:
            advice = "Choose an address of this machine."
        else:
            advice = (
                "Stop the program that uses it, or choose another port "
                f"({option} 0 picks a free one)."
            )
        address = f"{url_host(host)}:{port}"
        raise ConfigError(f"Cannot listen on {address}: {error.strerror}. {advice}") from error
    listener.setblocking(False)
    return listener
