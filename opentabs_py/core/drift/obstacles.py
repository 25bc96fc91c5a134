"""Reasons why drift is inconclusive, such as being signed out or rate limited."""

import re
from typing import Final

from opentabs_py.core.drift.live import LiveRun, Outcome
from opentabs_py.core.drift.responses import Responses
from opentabs_py.core.drift.site import ComparedSite
from opentabs_py.core.recording.exchange import UNFINISHED, Recording
from opentabs_py.core.shapes.endpoints import Endpoint
from opentabs_py.core.shapes.marks import PASSWORD

_REFUSED: Final = frozenset({401, 403, 407, 419, 440})  # the last two: a session has expired
_RATE_LIMITED: Final = 429
_SERVER_ERROR: Final = 500
_LOGIN: Final = re.compile(
    r"(^|/)(log|sign)[-_]?(in|on)(/|\.|$)|(^|/)(auth|sso|session/new)(/|$)", re.IGNORECASE
)
_OURS: Final = frozenset({UNFINISHED, "net::ERR_ABORTED", "net::ERR_BLOCKED_BY_CLIENT"})
_SIGN_IN: Final = "Pass --signed-in NAME, or sign in again with `opentabs login`."
_BY_CATEGORY: Final = {
    "auth": f"The tool says that the user is not signed in. {_SIGN_IN}",
    "rate_limit": "The site limited the request rate. Try again later.",
    "timeout": "The call has timed out.",
    "connection": "The browser's extension was not connected.",
    "lost": "The page went away during the call.",
    "tab": "There was no tab to call the tool in.",
    "permission": "The call was not allowed.",
}


def find_obstacle(site: ComparedSite, recorded: Recording, live: LiveRun) -> str:
    """Return why drift is inconclusive in this run; empty if it is not.

    Args:
        site: The site's responses.
        recorded: The recording.
        live: The run.
    """
    if live.failure:
        return live.failure
    for endpoint, responses in site.now.items():
        if reason := _obstacle_of(endpoint, site.was.get(endpoint), responses):
            return reason
    if not any(map(_asks_password, site.was.values())):
        for endpoint, responses in site.now.items():
            is_login = endpoint not in site.was and _LOGIN.search(endpoint.path)
            if (is_login and _matters(responses)) or _asks_password(responses):
                return f"The site asks for a sign-in ({endpoint}). {_SIGN_IN}"
    if live.is_anonymous and (recorded.storage_state or {}).get("cookies"):
        return f"The recording was made signed in, and this run was not. {_SIGN_IN}"
    return ""


def why_unknown(outcome: Outcome) -> str:
    """Return why a call's error says nothing about the site; empty if it does."""
    return _BY_CATEGORY.get(outcome.category or "", "")


def _obstacle_of(endpoint: Endpoint, was: Responses | None, now: Responses) -> str:
    known = set[int]() if was is None else was.statuses
    matters = _matters(now)
    for status in sorted(now.statuses - known):
        if status in _REFUSED and (matters or (was is not None and was.works)):
            return f"{endpoint} returns {status}, so the browser seems to be signed out. {_SIGN_IN}"
        if status == _RATE_LIMITED:
            return f"{endpoint} returns 429: the site limits the request rate. Try again later."
        if status >= _SERVER_ERROR and matters:
            return f"{endpoint} returns {status}: the site does not work. Try again later."
    lost = now.failures - _OURS - (set[str]() if was is None else was.failures)
    if lost and matters:
        return f"{endpoint} cannot be reached: {min(lost)}."
    return ""


def _matters(responses: Responses) -> bool:
    return responses.is_document or bool(responses.tools)


def _asks_password(responses: Responses) -> bool:
    return any(PASSWORD in marks for marks in responses.marks)
