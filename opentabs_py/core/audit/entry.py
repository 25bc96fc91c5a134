"""An audit entry: a few short fields of a call, ready to be a row of its file."""

import re
from typing import Any, Final, NamedTuple

from pydantic.alias_generators import to_camel

from opentabs_py.core import codes
from opentabs_py.core.trace.record import CallRecord, Outcome

_HOST: Final = re.compile(r"[a-z][a-z0-9+.-]*://([^/?#]+)")


class AuditEntry(NamedTuple):  # not a dataclass: SQLite takes it as it is
    """One call that has ended.

    Attributes:
        call_id: Its id.
        started: When the server received it, in seconds since the epoch.
        seconds: How long it took.
        tool: The tool's MCP name, as the caller wrote it.
        plugin: Its plugin or Python module; None if there is no such tool.
        site: The host of the page it ran in, with a port other than the usual one.
        tab_id: The tab it ran in.
        client: Who made it; None if it came from within the process.
        allowed: What let it run, such as "auto"; None if it was refused.
        outcome: How it ended.
        code: The error's code; None if it returned a value.
        message: The error's text; None unless values were asked for.
        arguments: As JSON, truncated and without secrets; None unless values were asked for.
        result: The result, in the same form.
    """

    call_id: str
    started: float
    seconds: float
    tool: str
    plugin: str | None
    site: str | None
    tab_id: int | None
    client: str | None
    allowed: str | None
    outcome: Outcome
    code: str | None
    message: str | None
    arguments: str | None
    result: str | None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with all members."""
        return {to_camel(name): value for name, value in self._asdict().items()}


def entry_of(record: CallRecord, *, with_values: bool = False) -> AuditEntry:
    """Return what is kept of a call.

    Args:
        record: The call; it may have values because another observer wants them.
        with_values: Whether its arguments, its result and the text of its error are kept.
    """
    error = record.error
    code = None if error is None else error.code
    if record.outcome == "cancelled":
        code = codes.CANCELLED
    # It may quote what the page or the caller wrote.
    message = None if error is None else error.message
    return AuditEntry(
        record.call_id,
        record.started,
        record.seconds,
        record.name,
        record.plugin,
        _site(record.url),
        record.tab_id,
        record.client,
        record.allowed,
        record.outcome,
        code,
        message if with_values else None,
        record.arguments if with_values else None,
        record.result if with_values else None,
    )


def _site(url: str | None) -> str | None:
    found = None if url is None else _HOST.match(url)
    return None if found is None else found[1]
