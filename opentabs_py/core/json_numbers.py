"""The numbers that Python and JavaScript both read alike from JSON."""

from typing import Final, Never

MAX_SAFE_INTEGER: Final = 2**53 - 1  # the largest integer JavaScript represents exactly


def refuse_constant(name: str) -> Never:
    """Refuse `NaN` and `Infinity`, which Python reads; for `parse_constant` of `json.loads`.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{name} is not a JSON number")
