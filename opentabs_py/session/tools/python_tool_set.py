"""The tools written in Python of one session, and the application's progress handlers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.calling.clock import AlarmClock
    from opentabs_py.config.settings import Settings
    from opentabs_py.core.tabs.owners import SessionKey
    from opentabs_py.python_tools.collection import PythonTools
    from opentabs_py.python_tools.handlers import ProgressHandlers
    from opentabs_py.python_tools.run import ToolHost
    from opentabs_py.server.tools.tool_calls import ToolCalls


class PythonToolSet:
    """A session's tools written in Python, loaded only if there are any.

    Args:
        given: The tools, as for `OpenTabs`.
        settings: Returns the settings of the session.
        clock: The clock of the calls' timers.
        stream_prefix: What the ids of their streams begin with.

    Attributes:
        tools: The tools; None if none were given.

    Raises:
        ConfigError: Something cannot be served.
    """

    def __init__(
        self,
        given: Sequence[Any],
        settings: Callable[[], Settings],
        clock: AlarmClock,
        *,
        stream_prefix: str,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._stream_prefix = stream_prefix
        self._handlers: ProgressHandlers | None = None
        self._calls: ToolCalls | None = None
        self.tools = self._load(given) if given else None

    @property
    def handlers(self) -> ProgressHandlers:
        """The application's progress handlers."""
        if self._handlers is None:
            from opentabs_py.python_tools.handlers import ProgressHandlers

            self._handlers = ProgressHandlers(self._pass_reports)
        return self._handlers

    def serve(self, calls: ToolCalls) -> None:
        """Serve the tools, and pass the reports of the others to the progress handlers as well.

        Raises:
            ConfigError: Two tools have the same name.
        """
        self._calls = calls
        if self.tools is not None:
            _add_tools(calls, self.tools)
        self._pass_reports()

    def _pass_reports(self) -> None:
        if self._handlers and self._calls is not None:
            self._calls.on_other_report = self._handlers.notify_other_report

    def replace(self, given: Sequence[Any], calls: ToolCalls) -> None:
        """Serve other tools, which share the state of the present ones; running calls continue.

        Raises:
            ConfigError: There are none at present, or something cannot be served; the old tools
                are still served.
        """
        if self.tools is None:
            raise ConfigError(
                "This session was created without Python tools, so none can be replaced. Create it "
                "with tools=[...]."
            )
        new = self._load(given, host=self.tools.host)
        _add_tools(calls, new)
        self.tools.stop_modules()
        self.tools = new

    def handle_client_gone(self, client: SessionKey) -> None:
        """End the streams of a client that has gone."""
        if self.tools is not None:
            self.tools.streams.handle_client_gone(client)

    def close(self) -> None:
        """End all streams, and stop the handlers."""
        if self.tools is not None:
            self.tools.close()

    def _load(self, given: Sequence[Any], *, host: ToolHost | None = None) -> PythonTools:
        from opentabs_py.python_tools.collection import PythonTools
        from opentabs_py.python_tools.run import ToolHost

        settings = self._settings()
        host = host or ToolHost(
            self._clock,
            settings.limits,
            settings.message_limit,
            handlers=self.handlers,
            stream_prefix=self._stream_prefix,
        )
        return PythonTools(given, host)

    @asynccontextmanager
    async def without_pages(self) -> AsyncGenerator[ToolCalls]:
        """Provide the calls of these tools alone, for a call outside of the session's context."""
        from opentabs_py.bridge.pages import Pages
        from opentabs_py.session.tools.setup import create_registry, create_tool_calls

        settings, no_pages = self._settings(), Pages([], clock=self._clock)
        registry = create_registry(settings, no_pages, (), clock=self._clock)
        calls = create_tool_calls(registry, no_pages, settings)
        if self.tools is not None:
            _add_tools(calls, self.tools)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._clock.run)
            yield calls
            tasks.cancel_scope.cancel()


def _add_tools(calls: ToolCalls, python: PythonTools) -> None:
    """Serve Python tools, which may call all other tools."""
    python.host.caller = calls
    calls.registry.set_tools(python.tools)
