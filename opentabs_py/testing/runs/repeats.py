"""`--opentabs-repeat N`: run each test N times, as if it had a parameter more."""

from typing import Any, Final

import pytest

_NUMBER: Final = "_opentabs_repetition"


@pytest.fixture
def _opentabs_repetition(request: pytest.FixtureRequest) -> int:  # pyright: ignore[reportUnusedFunction]
    number: int = request.param
    return number


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test a parameter that counts."""
    count: Any = metafunc.config.getoption("opentabs_repeat")
    metafunc.fixturenames.append(_NUMBER)
    ids = [f"{number}-of-{count}" for number in range(1, count + 1)]
    metafunc.parametrize(_NUMBER, range(1, count + 1), indirect=True, ids=ids)
