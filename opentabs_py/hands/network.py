"""The requests of a page, as an agent reads them."""

from collections.abc import Callable
from typing import Any, Final

from playwright.async_api import Request

from opentabs_py.browser.driver import FAILURES
from opentabs_py.core.text import shorten
from opentabs_py.core.tokens import first_tokens, is_longer
from opentabs_py.hands.watching import PageRequest

BODY_TOKENS: Final = 5_000


def describe_request(each: PageRequest, mask: Callable[[str], str]) -> dict[str, Any]:
    """Return what a request was, and how it ended."""
    # Not `response()`, which asks the page; it may be closed.
    response = None if each.failure else each.request.existing_response
    return {
        "request": each.number,
        "method": each.request.method,
        "url": shorten(mask(each.request.url), 300),
        "type": each.request.resource_type,
        "status": None if response is None else response.status,
        **({"failure": each.failure} if each.failure else {}),
    }


async def describe_bodies(request: Request, mask: Callable[[str], str]) -> dict[str, Any]:
    """Return what a request sent and received, cut."""
    try:
        response = await request.response()  # its page may be closed
        text = "" if response is None else await response.text()
    except (*FAILURES, UnicodeDecodeError) as error:
        text = f"(cannot be shown: {type(error).__name__})"
    sent, text = mask(request.post_data or ""), mask(text)
    return {
        "url": shorten(mask(request.url), 500),
        "sent": first_tokens(sent, BODY_TOKENS),
        "received": first_tokens(text, BODY_TOKENS),
        "isCut": is_longer(text, BODY_TOKENS) or is_longer(sent, BODY_TOKENS),
    }
