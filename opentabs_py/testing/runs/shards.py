"""`--opentabs-shard I/N`: run one of N parts of the tests.

Which part a test belongs to follows from the names of all tests, so runs that collect the same
tests agree, on whatever machine. The tests of a file share fixtures, so they stay together, unless
there are more of them than a part would have.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heapreplace
from typing import Any, Final

import pytest

_SHOWN: Final = 20  # files that a part leaves out


def parts_of(tests: Sequence[str], count: int) -> list[int]:
    """Return the part of each test, from 1 to `count`; each part has about as many tests.

    Args:
        tests: The node ids of all tests, each once, in any order.
        count: How many parts.
    """
    share = max(1, len(tests) // count)
    by_file: dict[str, list[int]] = {}
    for test, index in sorted(zip(tests, range(len(tests)), strict=True)):
        by_file.setdefault(_file(test), []).append(index)
    groups: list[list[int]] = []
    for _, indexes in sorted(by_file.items()):
        groups += [indexes[at : at + share] for at in range(0, len(indexes), share)]
    groups.sort(key=len, reverse=True)  # the large ones first, so that the small ones fill up
    sizes = [(0, part) for part in range(1, count + 1)]
    heapify(sizes)
    parts = [0] * len(tests)
    for group in groups:
        size, part = sizes[0]
        heapreplace(sizes, (size + len(group), part))
        for index in group:
            parts[index] = part
    return parts


class Sharding:
    """Deselects the tests of other parts, and says which.

    Args:
        part: The part to run, from 1.
        count: How many parts there are.
    """

    def __init__(self, part: int, count: int) -> None:
        self._part = part
        self._count = count
        self._lines: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep the tests of one part."""
        parts = parts_of([item.nodeid for item in items], self._count)
        kept = [item for item, part in zip(items, parts, strict=True) if part == self._part]
        left = [item for item, part in zip(items, parts, strict=True) if part != self._part]
        self._lines = _report(self._part, self._count, kept, left)
        items[:] = kept
        config.hook.pytest_deselected(items=left)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Accept an empty part; in a worker of pytest-xdist, send what was left out to be shown."""
        has_left = len(self._lines) > 1
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and has_left:
            session.exitstatus = pytest.ExitCode.OK
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["opentabs_shard"] = self._lines

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Receive what a worker left out; it is the same in all."""
        self._lines = getattr(node, "workeroutput", {}).get("opentabs_shard", self._lines)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was left out."""
        terminalreporter.section(f"part {self._part} of {self._count}")
        for line in self._lines:
            terminalreporter.write_line(line)


def _report(
    part: int, count: int, kept: Sequence[pytest.Item], left: Sequence[pytest.Item]
) -> list[str]:
    lines = [f"This was part {part} of {count}: {len(kept)} of {len(kept) + len(left)} tests."]
    files = Counter(_file(item.nodeid) for item in left)
    if files:
        lines.append("Left to the other parts:")
        lines += [f"  {number} in {file}" for file, number in [*files.items()][:_SHOWN]]
    if len(files) > _SHOWN:
        lines.append(f"  ... and in {len(files) - _SHOWN} more files")
    return lines


def _file(test: str) -> str:
    return test.partition("::")[0]
