"""Fixtures for when pytest-playwright is not installed, or is disabled."""

import pytest


@pytest.fixture
def opentabs() -> None:
    """Fail with the name of the missing package."""
    pytest.fail(
        "The opentabs fixtures need pytest-playwright, which is not installed, or is disabled "
        "(-p no:playwright). Install it with `pip install 'opentabs-py[test]'`.",
        pytrace=False,
    )
