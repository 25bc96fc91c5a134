"""How tests wait, and how long."""

from collections.abc import Callable
from pathlib import Path

import anyio
from watchfiles import awatch

PATIENT = 40.0  # s; the bound of every wait, far above what any takes
PATIENT_MS = PATIENT * 1000  # for Playwright


async def until_file(directory: Path, is_true: Callable[[], bool]) -> None:
    """Wait for a condition that depends on a file."""
    with anyio.fail_after(PATIENT):
        changes = awatch(directory, rust_timeout=100, yield_on_timeout=True, recursive=False)
        async for _ in changes:
            if is_true():
                return
