"""The tabs that a client may use."""

from collections.abc import Callable, Sequence

from opentabs_py.core import codes
from opentabs_py.core.tabs.owners import SessionKey, TabOwners
from opentabs_py.errors import ToolError
from opentabs_py.hands.pages import HandPages, Tab


class ClientTabs:
    """Finds the tabs of clients.

    Args:
        pages: The pages.
        owners: Returns which tabs belong to which clients.
    """

    def __init__(self, pages: HandPages, owners: Callable[[], TabOwners]) -> None:
        self._pages = pages
        self._owners = owners

    async def find(self, number: int | None, client: SessionKey | None) -> Tab:
        """Return the tab that a call uses.

        Args:
            number: The tab that it names, if it names one.
            client: The session of the client that makes it.

        Raises:
            ToolError: There is none, or it belongs to another client.
        """
        owners, tabs = self._owners(), await self._pages.tabs(number)
        if number is not None:
            found = next((each for each in tabs if each.number == number), None)
            if found is None:
                raise ToolError(
                    f"There is no tab {number}. tabs_list lists the tabs.", codes.TAB_NOT_FOUND,
                    category="tab",
                )  # fmt: skip
            if not owners.may_name(client, number):
                raise ToolError(
                    f"Tab {number} belongs to another client. Leave out tabId, or open your own "
                    "with tabs_open.", codes.TAB_NOT_YOURS, category="tab",
                )  # fmt: skip
            return found
        usable = set(owners.usable(client, [each.number for each in tabs]))
        mine = [each for each in tabs if each.number in usable]
        if not mine:
            raise ToolError(
                "No tab is open. Open one with tabs_open.", codes.TAB_NOT_FOUND, category="tab"
            )
        return max(mine, key=lambda each: (each.active, each.used))

    async def named_by(self, client: SessionKey | None) -> Sequence[Tab]:
        """Return all tabs that a client may name."""
        owners = self._owners()
        return [each for each in await self._pages.tabs() if owners.may_name(client, each.number)]
