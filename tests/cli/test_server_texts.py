"""What several commands say of a server."""

import pytest

from opentabs_py.cli.server_texts import uptime


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-86_400.0, "0 s"),  # the clock was set back, or is another machine's
        (42.4, "42 s"),
        (300.0, "5 min"),
        (12_000.0, "3 h 20 min"),
        (187_200.0, "2 d 4 h"),
    ],
)
def test_a_server_is_up_for_some_time_whatever_the_clock_says(seconds: float, shown: str) -> None:
    assert uptime(seconds) == shown
