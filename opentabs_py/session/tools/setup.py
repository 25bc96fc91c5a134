"""Create the registry of a session, its calls, and the tools about its tabs."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio.to_thread

from opentabs_py.bridge.own_tabs import OwnTabs
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.tool import Tool
from opentabs_py.config.settings import Settings
from opentabs_py.config.settings_file import set_permission
from opentabs_py.consent.gate import Gate
from opentabs_py.core.consent import Permission
from opentabs_py.core.tabs.selection import PluginStatus
from opentabs_py.errors import CallError
from opentabs_py.server.tools.local_tab_tools import (
    ListTabs,
    LocalTabsClose,
    LocalTabsList,
    LocalTabsOpen,
)
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.server.tools.tool_calls import ToolCalls


def create_registry(
    settings: Settings,
    pages: Pages,
    built_in: Sequence[Tool],
    *,
    clock: AlarmClock,
    status: Callable[[str], PluginStatus] | None = None,
    why_empty: Callable[[], CallError | None] = lambda: None,
) -> ToolRegistry:
    """Return a registry configured by the settings.

    Args:
        settings: The settings.
        pages: Where plugin tools run.
        built_in: Tools of our own, such as those about tabs.
        clock: The clock on which questions to the user expire.
        status: Returns the status of a plugin; by default, across the tabs of `pages`.
        why_empty: As for `ToolRegistry`.
    """
    return ToolRegistry(
        pages,
        message_limit=settings.message_limit,
        built_in=built_in,
        status=status,
        why_empty=why_empty,
        gate=Gate(clock, settings.permissions, remember=partial(_remember_permission, settings)),
    )


def create_tool_calls(
    registry: ToolRegistry,
    pages: Pages,
    settings: Settings,
    *,
    read_stack: Callable[[str, str], Awaitable[str]] | None = None,
) -> ToolCalls:
    """Return the calls of a registry's tools, configured by the settings.

    Args:
        registry: The tools.
        pages: Where plugin tools run.
        settings: The settings.
        read_stack: Maps a plugin's stack trace to its source, as for `ToolCalls`.
    """
    return ToolCalls(
        registry,
        pages,
        limits=settings.limits,
        strict_output=settings.strict_output,
        debug=settings.debug,
        read_stack=read_stack,
    )


async def _remember_permission(settings: Settings, rule: str, permission: Permission) -> None:
    def remember() -> None:
        set_permission(rule, permission)
        settings.check_counts(rule, permission)

    await anyio.to_thread.run_sync(remember)


def create_tab_tools(
    pages: Pages, own_tabs: OwnTabs, list_all: ListTabs | None = None
) -> Sequence[Tool]:
    """Return the tools about the tabs of our own browsers.

    Args:
        pages: The pages of plugins.
        own_tabs: Opens and closes tabs.
        list_all: Returns the tabs without plugins too, if tools can use those.
    """
    return [
        LocalTabsList(pages, list_all),
        LocalTabsOpen(pages, own_tabs),
        LocalTabsClose(own_tabs),
    ]
