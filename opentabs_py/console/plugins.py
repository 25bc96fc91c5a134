"""The plugins of a server, as the console uses them."""

from http import HTTPStatus
from typing import Any, Protocol

from opentabs_py.consent.reviews import Reviews
from opentabs_py.core.consent import Standing
from opentabs_py.plugins.plugin import Plugin, SkippedPlugin
from opentabs_py.server.http.json_requests import BadRequestError


class ServedPlugins(Protocol):
    """The plugins of a server, and the user's reviews of them."""

    plugins: list[Plugin]
    skipped: list[SkippedPlugin]
    standings: dict[str, Standing]
    reviews: Reviews

    def find(self, name: str) -> Plugin | None:
        """Return a plugin by name; None if it is not served."""
        ...

    async def reload(self) -> Any:
        """Load all plugins again, with their settings."""
        ...


class NoSuchPluginError(BadRequestError):
    """A request names a plugin that the server does not have."""

    def __init__(self) -> None:
        why = "There is no such plugin; it may have been removed. Reload the page."
        super().__init__(why, HTTPStatus.NOT_FOUND)
