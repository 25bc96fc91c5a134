"""Notice when the HTTP connection of a running request drops.

In the initialize era such a request goes on, but what is sent on its stream reaches nobody.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio
from starlette.requests import Request
from starlette.types import Scope

_DROP: Final = "opentabs.drop"


class Drop:
    """The loss of one request's connection, which may happen."""

    def __init__(self) -> None:
        self._has_happened = False
        self._scopes: set[anyio.CancelScope] = set()

    def handle(self) -> None:
        """Handle the loss of the connection."""
        self._has_happened = True
        for scope in self._scopes:
            scope.cancel()

    @contextmanager
    def cancelling(self) -> Generator[None]:
        """Leave the context as soon as the connection has dropped."""
        with anyio.CancelScope() as scope:
            if self._has_happened:
                scope.cancel()
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)


def offer_drop(scope: Scope) -> Drop:
    """Let the handler of a request notice that its connection has dropped."""
    drop = scope[_DROP] = Drop()
    return drop


def find_drop(request: object) -> Drop:
    """Return the loss of a request's connection; over stdio, it never happens.

    Args:
        request: What the transport gave the SDK with the message.
    """
    drop = request.scope.get(_DROP) if isinstance(request, Request) else None
    return drop if isinstance(drop, Drop) else Drop()
