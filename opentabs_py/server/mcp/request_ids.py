"""The ids of requests: what both transports require of them, and the SDK does not."""

from typing import Any

from opentabs_py.core.text import shorten


def explain_taken(request_id: int | str) -> str:
    """Return why a request is refused whose id another request of its session is using."""
    shown = shorten(request_id) if isinstance(request_id, str) else request_id
    return (
        f"A request of this session with the id {shown!r} is still running; ids must be unique "
        "within a session. Use another one."
    )


def explain_invalid(message: Any) -> str | None:
    """Return why a request is refused whose id is neither a string nor an integer.

    None for any other message. The SDK takes such a request for a notification, and does not answer
    it. In a notification, an id is ignored: some libraries write one of null.

    Args:
        message: A JSON-RPC message.
    """
    match message:
        case {"method": str() as method, "id": given} if not method.startswith("notifications/"):
            is_valid = isinstance(given, int | str) and not isinstance(given, bool)
            return None if is_valid else "The id of a request must be a string or an integer."
        case _:
            return None
