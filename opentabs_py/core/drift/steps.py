"""The steps that repeat the calls of a recording."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from opentabs_py.core.recording.exchange import Exchange, RecordedCall, Recording
from opentabs_py.core.shapes.routes import is_same_site


@dataclass(frozen=True, slots=True)
class Step:
    """A call to repeat.

    Attributes:
        call: The recorded call.
        url: The page that was open.
        scrubbed: What its arguments contain in place of a secret; empty if nothing.
    """

    call: RecordedCall
    url: str
    scrubbed: str = ""


def steps_of(recording: Recording, site: str | None = None) -> Sequence[Step]:
    """Return how to make a recording's calls again, in their order.

    Args:
        recording: The recording.
        site: The URL of the same site elsewhere, if it is not to be the recorded one.
    """
    replacements = [each.replacement for each in recording.scrubbed if each.replacement]
    steps: list[Step] = []
    for call in recording.calls:
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        scrubbed = next((each for each in replacements if each in arguments), "")
        steps.append(Step(call, rebased(_page(recording, call), recording.url, site), scrubbed))
    return steps


def rebased(url: str, home: str, site: str | None) -> str:
    """Return a URL at another place of the same site.

    Args:
        url: The URL.
        home: The URL of a page of its site; others are returned as they are.
        site: Any URL of the other place; None if it is at the same one.
    """
    parts, other = urlsplit(url), urlsplit(site or url)
    if parts[:2] != urlsplit(home)[:2]:
        return url
    return urlunsplit((other.scheme, other.netloc, *parts[2:]))


def page_at(recording: Recording, moment: float) -> Exchange | None:
    """Return the request for the page that was open at a moment; None if there was none yet."""
    opened = [
        each
        for each in recording.exchanges
        if each.started <= moment and _is_page(each, recording.url)
    ]
    return opened[-1] if opened else None


def _page(recording: Recording, call: RecordedCall) -> str:
    """Return the URL of the page that was open when a tool was called."""
    page = page_at(recording, call.started)
    return recording.url if page is None else page.request.url


def _is_page(exchange: Exchange, home: str) -> bool:
    request, response = exchange.request, exchange.response
    return (
        request.is_page
        and request.method == "GET"
        and response is not None
        and 200 <= response.status < 300
        and is_same_site(request.url, home)
    )
