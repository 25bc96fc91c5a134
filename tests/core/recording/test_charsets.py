"""The charset that a replayed response states."""

import pytest

from opentabs_py.core.recording.charsets import in_utf8
from opentabs_py.core.recording.exchange import Response


@pytest.mark.parametrize(
    ("came", "body", "stated"),
    [
        ("text/html; charset=Shift_JIS", "日本", "text/html; charset=utf-8"),
        ('text/html;charset="shift_jis"; x=y', "日本", "text/html; charset=utf-8; x=y"),
        ("text/html; charset=utf-16", "ascii", "text/html; charset=utf-8"),
        ("text/javascript; charset=UTF-8", "é", "text/javascript; charset=UTF-8"),
        ("application/json; charset=latin1", "é", "application/json; charset=utf-8"),
        ("text/html", "<meta charset=latin1>é", "text/html; charset=utf-8"),
        ("text/html", "<meta charset=latin1>e", "text/html"),
        ("application/json", '"é"', "application/json"),
        ("image/png; charset=latin1", "é", "image/png; charset=latin1"),
        ("text/csv; charset=latin1", b"\xe9", "text/csv; charset=latin1"),
        ("text/css; charset=latin1", None, "text/css; charset=utf-8"),
    ],
)
def test_text_is_in_utf8_whatever_its_charset_was(
    came: str, body: str | bytes | None, stated: str
) -> None:
    raw = body.encode() if isinstance(body, str) else body
    headers = [("X", "charset"), ("Content-Type", came)]
    after = in_utf8(Response(200, "", headers, raw))
    assert after == Response(200, "", [("X", "charset"), ("Content-Type", stated)], raw)


def test_what_states_no_type_is_left_as_it_is() -> None:
    response = Response(200, "", [("x", "y")], "é".encode())
    assert in_utf8(response) == response
