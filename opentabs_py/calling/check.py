"""Check the values of tools against their output schemas."""

import logging
from collections.abc import Iterable
from typing import Any

from opentabs_py.calling.tool import Listing, Output
from opentabs_py.core import failures
from opentabs_py.core.arguments import MAX_VIOLATIONS
from opentabs_py.core.schemas import Checker
from opentabs_py.core.text import shorten

logger = logging.getLogger(__name__)


class OutputCheck:
    """Validates what tools return.

    Args:
        strict: Fail a call whose value does not match its tool's output schema; otherwise that is
            only logged, once per tool.
    """

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self._checkers: dict[str, Checker] = {}
        self._warned: set[str] = set()

    def set_tools(self, listings: Iterable[Listing]) -> None:
        """Check the values of these tools, and warn about each again."""
        self._checkers = {
            listing.name: Checker(listing.output_schema)
            for listing in listings
            if listing.output_schema
        }
        self._warned.clear()

    def check(self, listing: Listing, value: Any) -> None:
        """Check a value.

        Raises:
            BrokenResultError: It does not match, and this is strict, or the tool promises an
                object and this is none, which MCP clients refuse.
        """
        name = listing.name
        checker = self._checkers.get(name)
        if checker is None:
            return
        structured = value.structured if isinstance(value, Output) else value
        if listing.promises_object and not _is_object(structured):
            kind = "content" if isinstance(value, Output) else type(value).__name__
            violation = ("", f"it is {kind}, not an object")
            raise failures.result_breaks_schema(name, [violation], value)
        if not self.strict and name in self._warned:
            return
        violations = checker.violations(structured, most=MAX_VIOLATIONS)
        if not violations:
            return
        error = failures.result_breaks_schema(name, violations, value)
        if self.strict:
            raise error
        self._warned.add(name)
        logger.warning("%s", shorten(str(error), 500))


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
