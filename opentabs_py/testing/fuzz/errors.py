"""The error of a tool that breaks its contract."""

from opentabs_py.core.text import visible


class ContractError(AssertionError):
    """A tool broke a promise that it makes to agents, or cannot be checked.

    Attributes:
        test: A test that reproduces it, as text; None if there is nothing to reproduce.
    """

    def __init__(self, message: str, test: str | None = None) -> None:
        super().__init__(visible(message))
        self.test = test


def reproduction_of(error: BaseException | None) -> str | None:
    """Return the test that reproduces an error, or the one that was being handled."""
    for each in (error, getattr(error, "__context__", None)):
        if isinstance(each, ContractError):
            return each.test
    return None
