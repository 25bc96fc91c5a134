"""Numbers within the bounds of a JSON Schema, and at their edges."""

import sys
from math import ceil, floor, inf, isfinite, nextafter
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from opentabs_py.core.json_numbers import MAX_SAFE_INTEGER
from opentabs_py.testing.fuzz.merging import Schema, without

LARGEST: Final = sys.float_info.max


def _bounds(flat: Schema) -> tuple[float, float, bool, bool]:
    """Return the smallest and the largest number, and whether each is itself excluded.

    An infinite one stands for no bound, and for a bound that every number of JavaScript is within.
    """
    least, most = flat.get("minimum", -inf), flat.get("maximum", inf)
    above, below = flat.get("exclusiveMinimum", -inf), flat.get("exclusiveMaximum", inf)
    if isinstance(above, bool):  # as draft 4 writes it
        above = least if above else -inf
    if isinstance(below, bool):
        below = most if below else inf
    low, high = max(least, above), min(most, below)
    return (
        -inf if low <= -LARGEST else low,
        inf if high >= LARGEST else high,
        above >= least,
        below <= most,
    )


def integers(flat: Schema) -> SearchStrategy[Any]:
    """Draw integers within the bounds of a flat schema."""
    least, most, is_above, is_below = _bounds(flat)
    low = -MAX_SAFE_INTEGER if least == -inf else ceil(least)
    high = MAX_SAFE_INTEGER if most == inf else floor(most)
    low += is_above and low == least
    high -= is_below and high == most
    step = flat.get("multipleOf", 1)
    if float(step).is_integer() and step > 1:
        low, high = ceil(low / step), floor(high / step)
        return st.nothing() if low > high else st.integers(low, high).map(lambda n: n * int(step))
    if low > high:
        return st.nothing()
    edges = [n for n in (0, 1, -1, 2**31 - 1, 2**31, low, high) if low <= n <= high]
    return st.one_of(st.integers(low, high), st.sampled_from(edges))


def numbers(flat: Schema) -> SearchStrategy[Any]:
    """Draw numbers within the bounds of a flat schema."""
    least, most, is_above, is_below = _bounds(flat)
    if least > LARGEST or most < -LARGEST:
        return st.nothing()
    step = flat.get("multipleOf")
    if step is not None:
        first, last = least / step, most / step  # infinite also if the step is tiny
        low = ceil(first) if isfinite(first) else -1000
        high = floor(last) if isfinite(last) else max(low, 0) + 1000
        return st.nothing() if low > high else st.integers(low, high).map(lambda n: n * step)
    low = nextafter(least, inf) if is_above else float(least)
    high = nextafter(most, -inf) if is_below else float(most)
    if low > high:
        return st.nothing()
    floats = st.floats(
        min_value=None if least == -inf else low,
        max_value=None if most == inf else high,
        allow_nan=False,
        allow_infinity=False,
    )
    whole = integers(without(flat, "multipleOf"))
    return floats if whole.is_empty else st.one_of(whole, floats)
