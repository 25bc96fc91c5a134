"""The ids of requests: what both transports require of them, and the SDK does not."""

from opentabs_py.core.text import shorten


def explain_taken(request_id: int | str) -> str:
    """Return why a request is refused whose id another request of its session is using."""
    shown = shorten(request_id) if isinstance(request_id, str) else request_id
    return (
        f"A request of this session with the id {shown!r} is still running; ids must be unique "
        "within a session. Use another one."
    )
