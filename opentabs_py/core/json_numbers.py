"""The numbers that Python and JavaScript both read alike from JSON."""

from typing import Final

MAX_SAFE_INTEGER: Final = 2**53 - 1  # the largest integer JavaScript represents exactly
