"""Tests of which some fail the first time in each run of pytest, and then pass."""

import pytest

SEEN: set[str] = set()


def once(what: str) -> None:
    new = what not in SEEN
    SEEN.add(what)
    assert not new, f"{what} is slow today"


@pytest.fixture
def shaky() -> None:
    once("the fixture")


def test_flaky() -> None:
    once("the site")


@pytest.mark.usefixtures("shaky")
def test_with_a_shaky_fixture() -> None: ...


def test_sound() -> None: ...


def test_broken() -> None:
    pytest.fail("broken")


@pytest.mark.skip
def test_skipped() -> None: ...
