"""Check the values of tools against their output schemas."""

import logging
from dataclasses import dataclass
from typing import Any

from opentabs_py.calling.listing import Listing
from opentabs_py.calling.tool import Output
from opentabs_py.core import failures
from opentabs_py.core.arguments import MAX_VIOLATIONS
from opentabs_py.core.schemas.checker import Checker
from opentabs_py.core.text import json_kind, shorten

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Checked:
    listing: Listing
    checker: Checker
    is_warned: bool = False


class OutputCheck:
    """Validates what tools return.

    Args:
        strict: Fail a call whose value does not match its tool's output schema; otherwise that is
            only logged, once per tool.
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self._checked: dict[str, _Checked] = {}  # by name, the build that returned a value last

    def clear(self) -> None:
        """Forget all tools, because they may be others now, and warn about each again."""
        self._checked.clear()

    def check(self, listing: Listing, value: Any) -> None:
        """Check a value.

        Args:
            listing: The listing of the tool that returned it, which may no longer be served.
            value: The value.

        Raises:
            BrokenResultError: It does not match, and this is strict, or the tool promises an
                object and this is none, which MCP clients refuse.
        """
        name = listing.name
        if not listing.output_schema:
            return
        structured = value.structured if isinstance(value, Output) else value
        if listing.promises_object and not _is_object(structured):
            kind = "content" if isinstance(value, Output) else json_kind(value)
            hint = "; is a return missing?" if value is None else ""
            violation = ("", f"it is {kind}, not an object{hint}")
            raise failures.result_breaks_schema(name, [violation], value)
        checked = self._checked.get(name)
        if checked is None or checked.listing is not listing:
            # The log does not show what pages returned.
            checker = Checker(listing.output_schema, mask=None if self.strict else "it")
            checked = self._checked[name] = _Checked(listing, checker)
        if not self.strict and checked.is_warned:
            return
        violations = checked.checker.violations(structured, most=MAX_VIOLATIONS)
        if not violations:
            return
        if self.strict:
            raise failures.result_breaks_schema(name, violations, value)
        checked.is_warned = True
        text = failures.schema_violation_text(name, violations)
        logger.warning("%s This is a bug in the tool.", shorten(text, 500))


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
