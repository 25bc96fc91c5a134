"""Ask the user about a call: whether it may run, and to sign in to its site."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from opentabs_py.bridge.in_page_tool import InPageTool
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.tool import PlacedTool, Tool
from opentabs_py.consent.gate import Gate, PermissionRequest, Permit
from opentabs_py.core import failures
from opentabs_py.core.consent import Decision, GatedTool
from opentabs_py.errors import ChainError


class CallQuestions:
    """The questions to the user about the calls of a tool.

    Args:
        gate: Asks them.
        pages: Where plugin tools run.
        tool: The tool.
        gated: What the decision about it depends on.
    """

    def __init__(self, gate: Gate, pages: Pages, tool: Tool, gated: GatedTool) -> None:
        self._gate = gate
        self._pages = pages
        self._tool = tool
        self._gated = gated

    async def wait_allowed(self, call: ToolCall, decision: Callable[[], Decision]) -> Permit:
        """Wait until a call is allowed, and return what allows it.

        Args:
            call: The call.
            decision: Returns what happens to the tool's calls now.

        Raises:
            CallRefusedError: It is not allowed.
        """
        allowed_by = call.origin.allowed_by
        if allowed_by is not None and decision().permission != "off":
            return Permit(allowed_by)
        return await self._gate.permit(self._request(call), decision)

    def bind(self, call: ToolCall, permit: Permit) -> ToolCall:
        """Return a call that runs only where the user has allowed it.

        Args:
            call: The call; it is returned as it is if they were not asked, or not about a tab.
            permit: What allows it.

        Raises:
            ChainError: The tab is gone.
        """
        place = permit.place
        if place is None or place.tab_id is None or not isinstance(self._tool, PlacedTool):
            return call
        return self._tool.in_place(call, place)

    async def sign_in(self, call: ToolCall, error: ChainError) -> None:
        """Wait until the user has signed in to the site that a call needs.

        Args:
            call: The call.
            error: How it has failed, which is raised again if the user cannot be asked.

        Raises:
            ChainError: The user has not signed in.
        """
        tool = self._tool
        if not isinstance(tool, InPageTool) or not failures.needs_sign_in(error):
            raise error

        async def wait_ready() -> None:
            while tool.find_document(call) is None:
                await self._pages.changed().wait()

        match await self._gate.wait_for_sign_in(self._request(call), wait_ready):
            case None:
                raise error
            case False:
                raise failures.not_signed_in(error) from None
            case True:
                return

    def _request(self, call: ToolCall) -> PermissionRequest:
        tool = self._tool
        request = PermissionRequest(
            self._gated,
            tool.listing.title,
            call.arguments,
            client_name=call.origin.name,
            client=call.origin.client,
            call_id=call.call_id,
            notify_waiting=call.notify_waiting,
            is_nested=call.origin.is_nested,
        )
        if not isinstance(tool, PlacedTool):
            return request
        return replace(
            request,
            find_place=partial(tool.find_place, call),
            wait_gone=tool.wait_gone,
        )
