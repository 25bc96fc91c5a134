"""What the fixtures say where pytest-playwright is not installed, or is switched off."""

import pytest


@pytest.fixture
def opentabs() -> None:
    """Say what is missing."""
    pytest.fail(
        "The opentabs fixtures need pytest-playwright, which is not there, or is switched off "
        "(-p no:playwright). Get it with `pip install 'opentabs-py[test]'`.",
        pytrace=False,
    )
