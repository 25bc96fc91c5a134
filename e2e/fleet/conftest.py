"""A fleet that several tests share."""

from collections.abc import Generator

import pytest

from e2e.fleet.members import Fleet, Nats, a_fleet


@pytest.fixture(scope="module")
def shared(nats: Nats, tmp_path_factory: pytest.TempPathFactory) -> Generator[Fleet]:
    """A fleet with a worker named one that no test disturbs."""
    with a_fleet(nats, tmp_path_factory.mktemp("shared")) as fleet:
        fleet.worker("one", "--label", "site=eu")
        yield fleet
