"""Recordings during which their user signed in."""

import re
from collections.abc import Hashable
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from opentabs_py.core.recording.exchange import Exchange, Recording

_PATH: Final = re.compile(r"(^|/)(log|sign)[-_]?(in|on)([/.]|$)", re.IGNORECASE)
_PASSWORD: Final = re.compile(rb"passw|pwd", re.IGNORECASE)


def as_signed_in(recording: Recording) -> Recording:
    """Return a recording as if its user had been signed in from the start.

    It has the cookies and local storage of its end, and lacks what the site answered before the
    sign-in to requests that were made again after it: a replay would begin with that. Of another
    program's, which lacks these too, only what follows the sign-in is left.
    """
    exchanges = recording.exchanges
    sign_ins = [index for index, each in enumerate(exchanges) if _is_sign_in(each)]
    if not sign_ins:
        return recording
    after = exchanges[sign_ins[-1] + 1 :]
    if recording.storage_at_end is None:
        home = next((each.request.url for each in after if _is_page(each)), None)
        return recording if home is None else replace(recording, url=home, exchanges=after)
    if recording.storage_at_end == recording.storage_state:
        return recording
    again = {_key(each) for each in after}
    kept = [
        each
        for index, each in enumerate(exchanges)
        if index >= sign_ins[-1] or _key(each) not in again
    ]
    return replace(recording, exchanges=kept, storage_state=recording.storage_at_end)


def _is_sign_in(exchange: Exchange) -> bool:
    request, response = exchange.request, exchange.response
    if request.method != "POST" or response is None or response.status >= 400:
        return False
    has_password = _PASSWORD.search(request.body) is not None
    return has_password or _PATH.search(urlsplit(request.url).path) is not None


def _is_page(exchange: Exchange) -> bool:
    response = exchange.response
    return exchange.request.is_page and response is not None and response.status == HTTPStatus.OK


def _key(exchange: Exchange) -> Hashable:
    return exchange.request.method, exchange.request.url, exchange.request.body
