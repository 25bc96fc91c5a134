"""Keep a browser from reaching any site."""

import json
import socket
from collections.abc import Sequence
from pathlib import Path


class RefusingProxy:
    """A proxy that refuses every connection.

    Routes of Playwright see most of what pages request, but not all: not what a redirect leads to,
    what a worker opens, or a connection that is only opened for later.
    """

    def __init__(self) -> None:
        # Bound, so that nothing else listens there; but it does not listen either.
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))

    def switches(self, extension: Path | None) -> Sequence[str]:
        """Return the switches with which Chromium sends everything here.

        Args:
            extension: The staged extension, whose server the browser does reach.
        """
        reached = ["<-loopback>"]  # by default, what is on this machine is reached directly
        if extension is not None:
            reached.append(json.loads((extension / "config.json").read_bytes())["server"])
        port = self._socket.getsockname()[1]
        return (
            f"--proxy-server=http://127.0.0.1:{port}",
            f"--proxy-bypass-list={';'.join(reached)}",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            "--webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # its older name
        )

    def close(self) -> None:
        """Release the port."""
        self._socket.close()
