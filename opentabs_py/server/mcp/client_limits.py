"""Limits for a client that stops reading during a call."""

from typing import Final

HUNG_CLIENT: Final = 1.0  # s; how long a message that must not be lost may wait for it
WAITING_LOGS: Final = 1000  # log entries that wait for it; beyond that, the oldest are dropped
