"""Properties of every message."""

import pytest

from opentabs_py.core.protocol import AckParams


def test_a_message_cannot_be_changed() -> None:
    params = AckParams(document_id="d" * 32, call_id="c" * 32, seq=3)
    with pytest.raises(ValueError, match="frozen"):
        setattr(params, "seq", 4)  # noqa: B010
