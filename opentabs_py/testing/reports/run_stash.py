"""What is kept in pytest's config during a run. Every run of pytest imports this module too."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from opentabs_py.testing.reports.reporting import Reporting
    from opentabs_py.testing.reports.watching import Watching

REPORTING: "pytest.StashKey[Reporting]" = pytest.StashKey()  # if someone is shown what happens
WATCHING: "pytest.StashKey[Watching]" = pytest.StashKey()  # the same, if people watch
