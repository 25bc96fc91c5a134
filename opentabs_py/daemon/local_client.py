"""A client of a running server's local interface, from the standard library alone.

It imports neither Playwright nor the MCP SDK, so a command that uses a running server starts in a
fraction of the time that a browser takes. `session/local_interface.py` is the other side.
"""

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, cast

from opentabs_py.core import codes
from opentabs_py.daemon.state import ServerState, name_flag
from opentabs_py.errors import ChainError, ErrorDetail
from opentabs_py.version import __version__

ANSWER_WITHIN = 10.0  # s; a status takes a few ms, and a loaded machine a hundred times as long
Document = dict[str, Any]


class LocalClient:
    """Talks to one running server.

    Args:
        state: The server, from its state file.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def status(self) -> Document:
        """Return the server's state: its plugins, browser, tabs and running calls.

        Raises:
            ChainError: It does not answer.
        """
        return cast(Document, self._get("/status"))

    def tools(self) -> list[Document]:
        """Return the tools that it serves: `{listing, isOfPlugin}` for each.

        Raises:
            ChainError: It does not answer.
        """
        return cast(list[Document], self._get("/tools"))

    def console_url(self, *, for_own_user: bool) -> str:
        """Return a URL that opens its console, once, within ten minutes.

        Args:
            for_own_user: Whether it opens for no other user of this machine.

        Raises:
            ChainError: It does not answer.
        """
        with self._request("POST", "/console", body={"forOwnUser": for_own_user}) as response:
            return str(json.loads(response.read())["url"])

    def stop(self) -> None:
        """Ask it to stop; it answers at once, and exits when its calls have been cancelled.

        Raises:
            ChainError: It does not answer.
        """
        with self._request("POST", "/stop") as response:
            response.read()

    def answer(self, question_id: str, answer: str) -> str:
        """Answer a question that a call has asked; too late, it does nothing.

        Returns:
            What the user should know about their answer; empty if nothing.

        Raises:
            ChainError: The server does not answer.
        """
        body = {"id": question_id, "answer": answer}
        with self._request("POST", "/answer", body=body) as response:
            # A server that runs since before an update has no notes.
            return str(json.loads(response.read()).get("note", ""))

    def call(self, request: Mapping[str, Any]) -> Generator[Document]:
        """Call a tool, and return what happens as it happens; the last document is the outcome.

        Closing the generator cancels the call.

        Args:
            request: What `LocalCallRequest` of the local interface describes.

        Raises:
            ChainError: The server does not answer, or stopped before the call ended.
        """
        with self._request("POST", "/call", body=request, lasts=True) as response:
            for line in _lines(response):
                yield cast(Document, json.loads(line))

    def _get(self, path: str) -> object:
        with self._request("GET", path) as response:
            return json.loads(response.read())

    @contextmanager
    def _request(
        self, method: str, path: str, *, body: object = None, lasts: bool = False
    ) -> Generator[HTTPResponse]:
        connection = HTTPConnection("127.0.0.1", self._state.local_port, timeout=ANSWER_WITHIN)
        headers = {"Authorization": f"Bearer {self._state.local_token}"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body).encode()
        try:
            try:
                connection.request(method, path, body=content, headers=headers)
                socket = connection.sock
                response = connection.getresponse()
                if lasts:  # the server ends the call, and its death closes the connection
                    socket.settimeout(None)
                if response.status >= 400:
                    why = f"refused the request: {_reason(response)}"
                    raise self._failure(why, answered=True)
                yield response
            except (OSError, HTTPException) as error:
                why = str(error) or type(error).__name__
                raise self._failure(f"did not answer: {why}.") from error
        finally:
            connection.close()

    def _failure(self, why: str, *, answered: bool = False) -> ChainError:
        name, flag = self._state.name, name_flag(self._state.name)
        advice = f"See `opentabs logs{flag}`, or end it: `opentabs stop{flag}`."
        if answered and self._state.version != __version__:
            advice = (
                f"It runs version {self._state.version}, and this command is version "
                f"{__version__}. Restart it: `opentabs restart{flag}`."
            )
        message = f"The running server {name!r} (pid {self._state.pid}) {why} {advice}"
        return ChainError(ErrorDetail(codes.SERVER_UNREACHABLE, message, category="chain"))


def _reason(response: HTTPResponse) -> str:
    """Return why a server refused a request, as a sentence."""
    try:
        return f"{str(json.loads(response.read())['error']).rstrip('.')}."
    except (ValueError, TypeError, KeyError):
        return f"it answered {response.status}."


def _lines(response: HTTPResponse) -> Iterator[bytes]:
    while line := response.readline():
        yield line
