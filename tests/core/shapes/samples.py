"""Random JSON."""

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=3), below),
    max_leaves=12,
)
