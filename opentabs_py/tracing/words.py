"""Descriptions of a call record in words."""

from typing import Final

from opentabs_py.core import codes
from opentabs_py.core.trace.record import CallRecord, LinkMark

_PLACES: Final = {
    "server": "the server: nothing was sent to the browser",
    "websocket": "the WebSocket: sent, but the service worker did not confirm it",
    "service worker": "the service worker: the page's relay did not confirm it",
    "relay": "the relay in the page: the tool did not start",
    "page": "the page: the tool was started and did not return",
    "answer": "all the way: the tool ended",
}
_IN_FLEET: Final = "a worker of the fleet: how far the call got there is not known"
# The runtime answers with these itself.
_REFUSALS: Final = {codes.PAGE_TOOL_GONE, codes.PLUGIN_NOT_LOADED, codes.TAB_NOT_READY}


def outcome_text(record: CallRecord) -> str:
    """Return how a call ended."""
    outcome = record.outcome.replace("_", " ")
    return outcome if record.timer is None else f"{outcome} ({record.timer})"


def reached_text(record: CallRecord) -> str | None:
    """Return how far a call got on its way to a page.

    None if its tool runs in the server, or if it is not known: only traced calls have timestamps.
    """
    if not record.in_page or (record.reached == "server" and not record.stamps):
        return None
    if record.reached == "page" and record.error and record.error.code in _REFUSALS:
        return "the page: the tool did not start"
    was_sent, has_record = "fleet.sent" in record.stamps, "fleet.down" in record.stamps
    if record.reached == "server" and was_sent and not has_record:
        return _IN_FLEET
    return _PLACES[record.reached]


def link_text(link: LinkMark) -> str:
    """Return what happened to the extension's connection."""
    return "the extension disconnected" if link.boot_id is None else "the extension reconnected"
