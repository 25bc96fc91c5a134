"""Access to the console: by a URL that works once, and for our extension.

A browser sends the cookie to every port of this host, where another user's program may listen. So
the cookie alone opens no more than the page; its requests also need a key, which the page has in
its own storage, and a browser gives that to pages of this port only. What changes something must
come from a page of this server as well.

A page of the extension, its side panel, has no cookie: it sends the secret that was staged with it.
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable
from math import inf
from typing import Final, NamedTuple, Protocol

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from opentabs_py.server.http.peers import is_of_another_user

EXPIRES_AFTER: Final = 600.0  # s; from `opentabs ui` to the browser's request, usually one second
MOST_TOKENS: Final = 100  # unused ones; only the user can ask for them
MOST_SESSIONS: Final = 100  # browsers that are let in
HEADER: Final = "x-opentabs-console"


class _Invitation(NamedTuple):
    until: float
    for_own_user: bool


class Extensions(Protocol):
    """The extensions of a server's browsers."""

    @property
    def origin(self) -> str:
        """The Origin of their pages, `chrome-extension://ID`."""
        ...

    def knows(self, secret: str) -> bool:
        """Return whether a secret is that of one of them."""
        ...


class Access:
    """Lets browsers in, and recognizes them.

    Args:
        port: The server's port. It is in the cookie's name, because servers on other ports of this
            host share the browser's cookies.
        now: The clock, in seconds.
        extensions: The extensions whose pages are let in as well.
    """

    def __init__(
        self, port: int, now: Callable[[], float], extensions: Extensions | None = None
    ) -> None:
        self.cookie = f"opentabs-console-{port}"
        self._now = now
        self._extensions = extensions
        self._tokens: OrderedDict[str, _Invitation] = OrderedDict()
        self._sessions: OrderedDict[str, str] = OrderedDict()  # the key of each

    def invite(self, *, expires: bool = True, for_own_user: bool = False) -> str:
        """Return a token that lets one browser in, once.

        Args:
            expires: Whether it has to be used within ten minutes.
            for_own_user: Whether it lets in no program of another user of this machine; for a
                command line, which all users can read.
        """
        token = secrets.token_urlsafe(32)
        until = self._now() + EXPIRES_AFTER if expires else inf
        self._tokens[token] = _Invitation(until, for_own_user)
        if len(self._tokens) > MOST_TOKENS:
            self._tokens.popitem(last=False)
        return token

    def enter(self, token: str, scope: Scope) -> tuple[str, str] | None:
        """Use a token up; return the cookie's value and the key, or None if it is not valid.

        Args:
            token: The token of a request.
            scope: The request's; it says whose program sent it.
        """
        known = _find(token, self._tokens)
        if known is None or (self._tokens[known].for_own_user and is_of_another_user(scope)):
            return None
        if self._tokens.pop(known).until <= self._now():
            return None
        session, key = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._sessions[session] = key
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session, key

    def admits(self, headers: Headers) -> bool:
        """Return whether a request comes from a browser that was let in, or from our extension."""
        if "authorization" in headers or self.extension_origin(headers) is not None:
            return self._admits_extension(headers)
        session = self._session(headers)
        # A browser that enters by two URLs at once has the cookie of one, and the keys of both.
        given = headers.get(HEADER, "").split(" ")
        return session is not None and _find(self._sessions[session], given) is not None

    def shows(self, headers: Headers) -> bool:
        """Return whether a request may get what holds no secret: the page itself, an image."""
        return self.admits(headers) or self._session(headers) is not None

    def extension_origin(self, headers: Headers) -> str | None:
        """Return the Origin of a request if it is our extension's; None if not."""
        wanted = "" if self._extensions is None else self._extensions.origin
        return wanted if wanted and headers.getlist("origin") == [wanted] else None

    def _admits_extension(self, headers: Headers) -> bool:
        # Chrome names no Origin where the extension may read every page anyway; a web page cannot
        # hide its own in a request with an Authorization header.
        if self._extensions is None or (
            headers.getlist("origin") and self.extension_origin(headers) is None
        ):
            return False
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._extensions.knows(given.strip(" "))

    def refusal(self, headers: Headers) -> str | None:
        """Return why a request that changes something is refused; None if it is not.

        Args:
            headers: Those of a request that `admits` lets in.
        """
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return "Send JSON, as Content-Type: application/json."
        # A page of another port has another origin, although it is of the same site.
        own = self.extension_origin(headers) or f"http://{headers.get('host', '')}"
        if headers.getlist("origin") != [own]:
            return "The request does not come from the console's own page."
        return None

    def _session(self, headers: Headers) -> str | None:
        # Not `SimpleCookie`, which reads none if it dislikes one, and those of all ports come.
        given = [cookie_parser(text).get(self.cookie, "") for text in headers.getlist("cookie")]
        found = (_find(each, self._sessions) for each in given)
        return next((each for each in found if each is not None), None)


def _find(given: str, known: Iterable[str]) -> str | None:
    """Return the equal one; takes as long for any that is not equal."""
    wanted = given.encode()
    equal = [each for each in known if hmac.compare_digest(each.encode(), wanted)]
    return equal[0] if equal else None
