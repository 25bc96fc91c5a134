"""What the runtime in a page writes to its console, for the kit, about calls that are recorded."""

import re
from dataclasses import dataclass
from typing import Final

_NOTE: Final = re.compile(
    r"OpenTabs: (?:(?P<cancelled>cancelled while it ran)|stopped after its cancellation): "
    r"(?P<tool>\S+ \S+)"
)


@dataclass(frozen=True, slots=True)
class RuntimeNote:
    """A note about a tool whose call was cancelled, timed out, or has lost its caller.

    Attributes:
        tool: The plugin's name, a space, and the tool's name in the plugin.
        has_stopped: Whether it says that the tool has stopped, rather than that it was asked to.
    """

    tool: str
    has_stopped: bool


def parse_note(text: str) -> RuntimeNote | None:
    """Return the note in a console message of the level `debug`; None if it is another message."""
    found = _NOTE.fullmatch(text)
    if found is None:
        return None
    return RuntimeNote(found["tool"], found["cancelled"] is None)
