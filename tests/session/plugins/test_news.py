"""What is logged about the plugins of a session while it runs."""

import logging

import pytest

from opentabs_py.core.consent import Standing
from opentabs_py.session.plugins.news import PluginNews


def test_a_review_is_logged_when_it_is_missed_and_when_it_is_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    news = PluginNews()
    standings: list[Standing] = ["reviewed", "changed", "changed", "reviewed", "reviewed"]
    said: list[list[str]] = []
    for standing in standings:
        news.log_standings({"chat": standing, "mail": "named"})
        said.append([record.getMessage() for record in caplog.records])
        caplog.clear()
    off = "The plugin chat has changed since it was reviewed, so its tools are off. Run: "
    on = "The plugin chat has been reviewed, so its tools are on"
    assert said == [[], [f"{off}opentabs review chat"], [], [on], []]
