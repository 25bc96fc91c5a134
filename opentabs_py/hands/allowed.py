"""What the user has allowed an action to be done to; by then, the page may be another."""

from dataclasses import dataclass

from opentabs_py.core import failures
from opentabs_py.core.questions import Place, host_of


@dataclass(frozen=True, slots=True)
class Allowed:
    """A tool that may act in a place.

    Attributes:
        place: The site and, if the user was asked about one, the element or the dialog.
        tool: The tool's name.
    """

    place: Place
    tool: str

    def check_site(self, url: str) -> None:
        """Check that the page is on the site.

        Raises:
            ChainError: It is not.
        """
        if host_of(url) != (self.place.site or ""):
            raise failures.asked_tab_gone(self.tool)

    def check_element(self, element: str) -> None:
        """Check that the user was asked about an element or a dialog, as questions name it.

        Raises:
            ChainError: They were asked about another.
        """
        if element != self.place.element:
            raise failures.asked_about_other(self.tool, self.place.element, element)
