"""Reasons why drift is inconclusive, such as being signed out or rate limited."""

import re
from math import inf
from typing import Final
from urllib.parse import urlsplit

from opentabs_py.core.drift.live import LiveRun, StepOutcome
from opentabs_py.core.drift.responses import Responses, page_marks
from opentabs_py.core.drift.site import ComparedSite
from opentabs_py.core.drift.steps import page_at
from opentabs_py.core.recording.exchange import UNFINISHED, Exchange, Recording
from opentabs_py.core.shapes.marks import PASSWORD
from opentabs_py.core.shapes.routes import Route, route_of

_REFUSED: Final = frozenset({401, 403, 407, 419, 440})  # the last two: a session has expired
_CLIENT_ERROR: Final = 400
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
    for route, responses in site.now.items():
        if reason := _obstacle_of(route, site.was.get(route), responses):
            return reason
    if not any(map(_asks_password, site.was.values())):
        for route, responses in site.now.items():
            is_login = route not in site.was and _LOGIN.search(route.path)
            if (is_login and _matters(responses)) or _asks_password(responses):
                return f"The site asks for a sign-in ({route}). {_SIGN_IN}"
    return _why_signed_out(recorded, live)


def _why_signed_out(recorded: Recording, live: LiveRun) -> str:
    """Return how the recording shows that its calls were made signed in, if this run was not."""
    last = page_at(live.traffic, inf)
    if last is not None and _shows_password(last):
        opened = [page for call in recorded.calls if (page := page_at(recorded, call.started))]
        if opened and not any(map(_shows_password, opened)):
            return f"The site asks for a sign-in ({_name(last, live.traffic)}). {_SIGN_IN}"
    if not live.is_anonymous:
        return ""
    if (recorded.storage_state or {}).get("cookies"):
        return f"The recording was made signed in, and this run was not. {_SIGN_IN}"
    if (sign_in := _find_sign_in(recorded)) is not None:
        name = _name(sign_in, recorded)
        return f"The recording signs in ({name}) before its calls, and this run did not. {_SIGN_IN}"
    return ""


def _find_sign_in(recorded: Recording) -> Exchange | None:
    """Return the request by which a user signed in before a call; None if none is known."""
    last_call = max((call.started for call in recorded.calls), default=-inf)
    for each in recorded.exchanges:
        is_accepted = each.response is not None and each.response.status < _CLIENT_ERROR
        path = urlsplit(each.request.url).path
        is_sign_in = each.request.method == "POST" and _LOGIN.search(path)
        if is_accepted and is_sign_in and each.started <= last_call:
            return each
    return None


def why_unknown(outcome: StepOutcome) -> str:
    """Return why a call's error says nothing about the site; empty if it does."""
    return _BY_CATEGORY.get(outcome.category or "", "")


def _obstacle_of(route: Route, was: Responses | None, now: Responses) -> str:
    known = set[int]() if was is None else was.statuses
    if was is not None and was.works and not now.works:
        known = known - _REFUSED  # it was refused until the user had signed in
    matters = _matters(now)
    for status in sorted(now.statuses - known):
        if status in _REFUSED and (matters or (was is not None and was.works)):
            return f"{route} returns {status}, so the browser seems to be signed out. {_SIGN_IN}"
        if status == _RATE_LIMITED:
            return f"{route} returns 429: the site limits the request rate. Try again later."
        if status >= _SERVER_ERROR and matters:
            return f"{route} returns {status}: the site does not work. Try again later."
    lost = now.failures - _OURS - (set[str]() if was is None else was.failures)
    if lost and matters:
        return f"{route} cannot be reached: {min(lost)}."
    return ""


def _matters(responses: Responses) -> bool:
    return responses.is_document or bool(responses.tools)


def _asks_password(responses: Responses) -> bool:
    return any(PASSWORD in marks for marks in responses.marks)


def _shows_password(page: Exchange) -> bool:
    return PASSWORD in page_marks(page)


def _name(exchange: Exchange, recording: Recording) -> str:
    return str(route_of(exchange.request, recording.url))
