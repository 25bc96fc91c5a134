"""`--opentabs-repeat N`: run each test N times, as if it had a parameter more."""

import warnings
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


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Warn about a test that can have no parameter, and so runs only once."""
    parameters: Any = getattr(item, "callspec", None)
    if parameters is None or _NUMBER not in parameters.params:
        warnings.warn(
            f"--opentabs-repeat ran {item.name} only once: it repeats functions and methods that "
            "can have parameters, which those of a unittest.TestCase cannot.",
            pytest.PytestWarning,
            stacklevel=1,
        )
