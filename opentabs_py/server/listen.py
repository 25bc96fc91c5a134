"""The listening socket, bound before all else is loaded: the extension must know its port."""

import socket

from opentabs_py.errors import ConfigError


def bind(host: str, port: int) -> socket.socket:
    """Bind the listening socket; port 0 takes a free one.

    Raises:
        ConfigError: The address is in use or not to be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off (40 ms a call) only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"{host}:{port} cannot be listened on: {error.strerror}. Stop what uses it, or take "
            "another port with --port; 0 takes a free one."
        ) from error
    listener.setblocking(False)
    return listener
